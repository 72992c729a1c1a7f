// SPDX-License-Identifier: Apache-2.0
#include "launch/topology.h"

#include <QTemporaryDir>
#include <QtTest>

#include <fstream>

using namespace muster::launch;

namespace fs = std::filesystem;

class TestTopology : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    static void write(const fs::path& file, const std::string& text)
    {
        fs::create_directories(file.parent_path());
        std::ofstream(file) << text << "\n";
    }

    /// Two packages of two cores of two threads each: CPU n and n + 4 share a core.
    fs::path machine(const char* name) const
    {
        const fs::path root = fs::path(m_folder.path().toStdString()) / name;
        for (int cpu = 0; cpu < 8; ++cpu) {
            const fs::path folder =
                root / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu)) / "topology";
            write(folder / "physical_package_id", std::to_string(cpu % 4 / 2));
            write(folder / "core_id", std::to_string(cpu % 2));
        }
        return root;
    }

private Q_SLOTS:
    void hyperthreadsAreOneCore()
    {
        const CpuTopology topology = readTopology(machine("a"), {0, 1, 2, 3, 4, 5, 6, 7});
        const std::vector<std::vector<int>> cores = {{0, 4}, {1, 5}, {2, 6}, {3, 7}};
        QCOMPARE(topology.cores, cores);
        QCOMPARE(topology.usableCores(), 4U);
    }

    void theAffinityMaskCounts()
    {
        const CpuTopology topology = readTopology(machine("b"), {0, 4, 7});
        const std::vector<std::vector<int>> cores = {{0, 4}, {7}};
        QCOMPARE(topology.cores, cores);
    }

    void theQuotaOfTheControlGroupCounts_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<unsigned>("cores");
        QTest::newRow("no limit") << "max 100000" << 4U;
        QTest::newRow("two and a half") << "250000 100000" << 2U;
        QTest::newRow("less than one") << "50000 100000" << 1U;
        QTest::newRow("more than there are") << "6400000 100000" << 4U;
        QTest::newRow("broken") << "what ever" << 4U;
    }

    void theQuotaOfTheControlGroupCounts()
    {
        QFETCH(QString, text);
        QFETCH(unsigned, cores);
        const fs::path root = machine(QTest::currentDataTag());
        write(root / "sys/fs/cgroup/cpu.max", text.toStdString());
        QCOMPARE(readTopology(root, {0, 1, 2, 3}).usableCores(), cores);
    }

    void anUndescribedMachineHasOneCorePerCpu()
    {
        QCOMPARE(readTopology("/absent", {3, 5}).usableCores(), 2U);
        QCOMPARE(readTopology("/absent", {}).usableCores(), 1U);
        QVERIFY(machineTopology().usableCores() >= 1U);
    }
};

QTEST_GUILESS_MAIN(TestTopology)
#include "tst_topology.moc"
