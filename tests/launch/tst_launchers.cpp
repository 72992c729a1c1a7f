// SPDX-License-Identifier: Apache-2.0
// The real launchers of this machine with a rank program that knows no MPI.
#include "launch/environment.h"
#include "launch/group_process.h"
#include "launch/private_directory.h"
#include "launch/topology.h"

#include <QSignalSpy>
#include <QtTest>

#include <unistd.h>

using namespace muster;
using namespace muster::launch;

class TestLaunchers : public QObject {
    Q_OBJECT

    static void launchers()
    {
        QTest::addColumn<QString>("program");
        for (const char* name :
             {"/usr/bin/mpirun.openmpi", "/usr/bin/mpiexec.hydra", "/usr/bin/mpirun"}) {
            QTest::newRow(name) << name;
        }
    }

    /// Fails the calling test function when the launcher does not take our options.
    static Result<LaunchPlan> planFor(const LauncherInfo& launcher, const std::string& folder,
                                      std::vector<std::string> arguments)
    {
        static int count = 0;
        LaunchRequest request;
        request.launcher = launcher;
        request.rankProgram = MUSTER_FAKE_RANK;
        request.ranks = 3;
        request.physicalCores = machineTopology().usableCores();
        request.isRoot = ::geteuid() == 0;
        request.rankArguments = std::move(arguments);
        request.temporaryFolder = folder;
        request.launchId = "real-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
        request.environment = processEnvironment();
        return buildLaunch(request);
    }

private Q_SLOTS:
    void startsEveryRankUnbound_data() { launchers(); }

    void startsEveryRankUnbound()
    {
        QFETCH(QString, program);
        const auto launcher = inspectLauncher(program.toStdString());
        if (!launcher) {
            QSKIP("this launcher is not installed");
        }
        auto folder = PrivateDirectory::create("x");
        QVERIFY(folder.has_value());
        const auto plan = planFor(*launcher, folder->path(), {"state"});
        QVERIFY2(plan.has_value(), plan ? "" : plan.error().text().c_str());
        GroupProcess group(*plan, {});
        std::vector<std::string> lines;
        bool isFinished = false;
        ProcessExit exit;
        connect(&group, &GroupProcess::rankOutput, &group,
                [&lines](const std::string& line) { lines.push_back(line); });
        connect(&group, &GroupProcess::finished, &group, [&](const ProcessExit& end) {
            exit = end;
            isFinished = true;
        });
        group.start();
        QTRY_VERIFY_WITH_TIMEOUT(isFinished, 30000);
        QVERIFY2(exit.exitCode == 0 && exit.signal == 0,
                 (exit.words + (lines.empty() ? "" : "; " + lines.front())).c_str());
        const std::string wanted = "cpus=" + std::to_string(QThread::idealThreadCount()); // C-058
        QCOMPARE(std::count_if(lines.begin(), lines.end(),
                               [&](const std::string& line) { return line.ends_with(wanted); }),
                 3);
    }

    void aKilledLauncherLeavesNoRank_data() { launchers(); }

    void aKilledLauncherLeavesNoRank()
    {
        QFETCH(QString, program);
        const auto launcher = inspectLauncher(program.toStdString());
        if (!launcher) {
            QSKIP("this launcher is not installed");
        }
        auto folder = PrivateDirectory::create("x");
        QVERIFY(folder.has_value());
        const auto plan = planFor(*launcher, folder->path(), {"stubborn"});
        QVERIFY(plan.has_value());
        GroupProcess group(*plan, {});
        QSignalSpy lines(&group, &GroupProcess::rankOutput);
        QSignalSpy finished(&group, &GroupProcess::finished);
        group.start();
        QTRY_COMPARE_WITH_TIMEOUT(group.liveRanks().size(), std::size_t{3}, 30000);
        group.kill(); // F-10
        QTRY_COMPARE_WITH_TIMEOUT(finished.count(), 1, 10000);
        group.killRanks();
        QTRY_VERIFY_WITH_TIMEOUT(group.liveRanks().empty(), 3000);
    }
};

QTEST_GUILESS_MAIN(TestLaunchers)
#include "tst_launchers.moc"
