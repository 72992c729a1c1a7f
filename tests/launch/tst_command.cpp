// SPDX-License-Identifier: Apache-2.0
#include "launch/command.h"

#include "launch/environment.h"

#include <QtTest>

using namespace muster;
using namespace muster::launch;

namespace {

LaunchRequest request(Family family, int major, std::uint32_t ranks)
{
    LaunchRequest made;
    made.launcher.family = family;
    made.launcher.major = major;
    made.launcher.path = family == Family::Mpich ? "/usr/bin/mpiexec.hydra" : "/usr/bin/mpirun";
    made.rankProgram = "/opt/m/muster-rank";
    made.ranks = ranks;
    made.physicalCores = 4;
    made.rankArguments = {"--connect", "unix:/run/m/s", "--key-file", "/run/m/key"};
    made.temporaryFolder = "/run/m/tmp";
    made.launchId = "abc";
    made.environment = {"PATH=/usr/bin", "HOME=/home/a", "SECRET=1"};
    return made;
}

} // namespace

class TestCommand : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void buildsTheCommandLineOfEachLauncher_data()
    {
        QTest::addColumn<LaunchRequest>("given");
        QTest::addColumn<QString>("line");
        QTest::addColumn<int>("notices");
        const QString end = " /opt/m/muster-rank --connect unix:/run/m/s --key-file /run/m/key";
        QTest::newRow("Open MPI 4")
            << request(Family::OpenMpi, 4, 2)
            << "/usr/bin/mpirun -n 2 --bind-to none --oversubscribe --mca pml ob1 --mca btl "
               "self,vader --mca plm isolated" +
                   end
            << 0;
        QTest::newRow("Open MPI 5") << request(Family::OpenMpi, 5, 2)
                                    << "/usr/bin/mpirun -n 2 --bind-to none --map-by "
                                       ":OVERSUBSCRIBE --mca pml ob1 --mca btl self,sm" +
                                           end
                                    << 0;
        QTest::newRow("MPICH") << request(Family::Mpich, 4, 2)
                               << "/usr/bin/mpiexec.hydra -n 2 -launcher fork -bind-to none" + end
                               << 0;
        LaunchRequest crowded = request(Family::OpenMpi, 4, 8);
        crowded.isRoot = true;
        QTest::newRow("C-055 root and more ranks than cores, Open MPI 4")
            << crowded
            << "/usr/bin/mpirun -n 8 --bind-to none --oversubscribe --allow-run-as-root --mca pml "
               "ob1 --mca btl self,vader --mca plm isolated" +
                   end
            << 2;
        crowded.launcher.major = 5;
        QTest::newRow("C-055 root and more ranks than cores, Open MPI 5")
            << crowded
            << "/usr/bin/mpirun -n 8 --bind-to none --map-by :OVERSUBSCRIBE --allow-run-as-root "
               "--mca pml ob1 --mca btl self,sm" +
                   end
            << 2;
        LaunchRequest rootMpich = request(Family::Mpich, 4, 2);
        rootMpich.isRoot = true;
        rootMpich.allowRoot = config::Switch::On;
        QTest::newRow("C-055 root with MPICH has no unknown option")
            << rootMpich << "/usr/bin/mpiexec.hydra -n 2 -launcher fork -bind-to none" + end << 0;
        LaunchRequest noSharing = request(Family::OpenMpi, 4, 4);
        noSharing.oversubscribe = config::Switch::Off;
        QTest::newRow("oversubscribe off and enough cores")
            << noSharing
            << "/usr/bin/mpirun -n 4 --bind-to none --mca pml ob1 --mca btl self,vader --mca plm "
               "isolated" +
                   end
            << 0;
    }

    void buildsTheCommandLineOfEachLauncher()
    {
        QFETCH(LaunchRequest, given);
        QFETCH(QString, line);
        QFETCH(int, notices);
        const auto plan = buildLaunch(given);
        QVERIFY2(plan.has_value(), plan ? "" : plan.error().text().c_str());
        QCOMPARE(plan->commands.size(), std::size_t{1});
        QCOMPARE(QString::fromStdString(commandText(plan->commands.front())), line);
        QCOMPARE(plan->notices.size(), static_cast<std::size_t>(notices));
    }

    void plainProcessesGetTheirRankAndWorld()
    {
        const auto plan = buildLaunch(request(Family::Plain, 0, 2));
        QVERIFY(plan.has_value());
        QCOMPARE(plan->commands.size(), std::size_t{2});
        QCOMPARE(commandText(plan->commands[1]),
                 std::string("/opt/m/muster-rank --plain 1 2 --connect unix:/run/m/s --key-file "
                             "/run/m/key"));
    }

    void refusesBeforeTheStart_data()
    {
        QTest::addColumn<LaunchRequest>("given");
        QTest::addColumn<QString>("code");
        QTest::addColumn<QString>("words");
        QTest::newRow("no rank") << request(Family::OpenMpi, 4, 0) << "E-LAUNCH-009"
                                 << "at least one rank";
        LaunchRequest root = request(Family::OpenMpi, 4, 2);
        root.isRoot = true;
        root.allowRoot = config::Switch::Off;
        QTest::newRow("C-055 root, switch off") << root << "E-LAUNCH-010"
                                                << "you are root";
        LaunchRequest crowded = request(Family::Mpich, 4, 5);
        crowded.oversubscribe = config::Switch::Off;
        QTest::newRow("C-056 too few cores") << crowded << "E-LAUNCH-011"
                                             << "5 ranks, 4 cores on this machine";
        QTest::newRow("srun") << request(Family::Slurm, 22, 2) << "E-LAUNCH-012"
                              << "cluster profile";
    }

    void refusesBeforeTheStart()
    {
        QFETCH(LaunchRequest, given);
        QFETCH(QString, code);
        QFETCH(QString, words);
        const auto plan = buildLaunch(given);
        QVERIFY(!plan.has_value());
        QCOMPARE(QString::fromStdString(plan.error().code), code);
        QVERIFY2(plan.error().message.find(words.toStdString()) != std::string::npos,
                 plan.error().message.c_str());
    }

    void theEnvironmentIsBuiltNotInherited()
    {
        LaunchRequest given = request(Family::Mpich, 4, 2);
        given.threadsPerRank = 3;
        given.environment = {"PATH=/usr/bin",
                             "LC_ALL=C",
                             "OMPI_COMM_WORLD_SIZE=7",
                             "PMIX_RANK=3",
                             "PMI_FD=9",
                             "SLURM_PROCID=1",
                             "PRTE_LAUNCHED=1",
                             "HYDRA_TOPO_DEBUG=1",
                             "MPIEXEC_TIMEOUT=1",
                             "OMP_NUM_THREADS=64",
                             "LD_PRELOAD=/x.so",
                             "TMPDIR=/var/x",
                             "CUDA_VISIBLE_DEVICES=1",
                             "SITE_LICENCE=a",
                             "OTHER=b"};
        given.passNames = {"SITE_LICENCE"};
        given.setVariables = {{"MUSTER_TEST", "1"}};
        const auto plan = buildLaunch(given);
        QVERIFY(plan.has_value());
        const std::vector<std::string> expected = {"CUDA_VISIBLE_DEVICES=1", "LC_ALL=C",
                                                   "MKL_NUM_THREADS=3",      "MUSTER_LAUNCH_ID=abc",
                                                   "MUSTER_TEST=1",          "OMP_NUM_THREADS=3",
                                                   "PATH=/usr/bin",          "SITE_LICENCE=a",
                                                   "TMPDIR=/run/m/tmp",      "UCX_TLS=self,sm"};
        QCOMPARE(plan->environment, expected);
    }

    void givesBackTheLibraryPath_data()
    {
        QTest::addColumn<QStringList>("parent");
        QTest::addColumn<QString>("value");
        QTest::newRow("nothing known: kept")
            << QStringList{"LD_LIBRARY_PATH=/site/lib"} << "/site/lib";
        QTest::newRow("C-060 original is set")
            << QStringList{"LD_LIBRARY_PATH=/pkg/lib", "MUSTER_ORIGINAL_LD_LIBRARY_PATH=/site/lib"}
            << "/site/lib";
        QTest::newRow("C-060 original is empty")
            << QStringList{"LD_LIBRARY_PATH=/pkg/lib", "MUSTER_ORIGINAL_LD_LIBRARY_PATH="} << "";
        QTest::newRow("C-060 folders of the package")
            << QStringList{"APPDIR=/pkg", "LD_LIBRARY_PATH=/pkg/usr/lib:/site/lib:/pkg:/pkgs"}
            << "/site/lib:/pkgs";
    }

    void givesBackTheLibraryPath()
    {
        QFETCH(QStringList, parent);
        QFETCH(QString, value);
        std::vector<std::string> entries;
        for (const QString& entry : parent) {
            entries.push_back(entry.toStdString());
        }
        const std::vector<std::string> child = childEnvironment(entries, {});
        if (value.isEmpty()) {
            QVERIFY(child.empty());
        } else {
            QCOMPARE(child, std::vector<std::string>{"LD_LIBRARY_PATH=" + value.toStdString()});
        }
    }

    void quotesForAShell()
    {
        QCOMPARE(commandText({"/a b/c", {"it's", "", "x=y", "*"}}),
                 std::string("'/a b/c' 'it'\\''s' '' x=y '*'"));
    }
};

QTEST_GUILESS_MAIN(TestCommand)
#include "tst_command.moc"
