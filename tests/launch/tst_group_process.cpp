// SPDX-License-Identifier: Apache-2.0
#include "launch/group_process.h"

#include "launch/environment.h"

#include <QFile>
#include <QProcess>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QtTest>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

using namespace muster::launch;

namespace {

LaunchPlan planOf(Family family, const char* program, std::vector<std::string> arguments)
{
    static int count = 0;
    LaunchPlan plan;
    plan.family = family;
    plan.launchId = "test-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
    plan.environment = inheritedEnvironment();
    setVariable(plan.environment, launchIdVariable, plan.launchId);
    plan.commands.push_back({program, std::move(arguments)});
    return plan;
}

/// A group with what it said and how it ended.
struct Watched {
    explicit Watched(LaunchPlan plan, const std::filesystem::path& log = {})
        : group(std::move(plan), log)
    {
        QObject::connect(&group, &GroupProcess::rankOutput, &group,
                         [this](const std::string& line) { lines.push_back(line); });
        QObject::connect(&group, &GroupProcess::processEnded, &group,
                         [this](std::uint32_t, const ProcessExit&) { ++endedCount; });
        QObject::connect(&group, &GroupProcess::finished, &group, [this](const ProcessExit& end) {
            ++finishedCount;
            exit = end;
        });
        group.start();
    }

    GroupProcess group;
    std::vector<std::string> lines;
    int endedCount = 0;
    int finishedCount = 0;
    ProcessExit exit;
};

bool isAlive(std::int64_t pid)
{
    return processRef(pid).has_value();
}

std::int64_t numberIn(const std::string& line)
{
    return std::atoll(line.substr(line.find(' ') + 1).c_str());
}

} // namespace

class TestGroupProcess : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void saysHowItEnded_data()
    {
        QTest::addColumn<int>("family");
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<int>("code");
        QTest::addColumn<int>("signal");
        QTest::addColumn<QString>("words");
        const int open = int(Family::OpenMpi);
        const int mpich = int(Family::Mpich);
        QTest::newRow("ok") << open << QStringList{"ok"} << 0 << 0
                            << "the launcher ended with status 0";
        QTest::newRow("fail") << open << QStringList{"fail"} << 3 << 0
                              << "the launcher ended with status 3";
        QTest::newRow("F-10 launcher killed") << open << QStringList{"crash"} << 0 << 9
                                              << "the launcher was ended by signal 9 (SIGKILL)";
        QTest::newRow("Open MPI: 128 + signal") << open << QStringList{"status", "139"} << 139 << 0
                                                << "a rank was ended by signal 11 (SIGSEGV)";
        QTest::newRow("F-06 Open MPI: killed")
            << open << QStringList{"status", "137"} << 137 << 0 << "memory runs out";
        QTest::newRow("Open MPI: host lost")
            << open << QStringList{"status", "205"} << 205 << 0 << "a host or a daemon";
        QTest::newRow("MPICH: bare signal") << mpich << QStringList{"status", "11"} << 11 << 0
                                            << "perhaps a rank was ended by signal 11 (SIGSEGV)";
        QTest::newRow("MPICH: own code") << mpich << QStringList{"status", "42"} << 42 << 0
                                         << "the launcher ended with status 42";
        QTest::newRow("plain") << int(Family::Plain) << QStringList{"crash"} << 0 << 9
                               << "the rank was ended by signal 9";
    }

    void saysHowItEnded()
    {
        QFETCH(int, family);
        QFETCH(QStringList, arguments);
        QFETCH(int, code);
        QFETCH(int, signal);
        QFETCH(QString, words);
        std::vector<std::string> list;
        for (const QString& argument : arguments) {
            list.push_back(argument.toStdString());
        }
        Watched watched(planOf(static_cast<Family>(family), MUSTER_FAKE_LAUNCHER, list));
        QTRY_COMPARE(watched.finishedCount, 1);
        QCOMPARE(watched.exit.exitCode, code);
        QCOMPARE(watched.exit.signal, signal);
        QVERIFY2(watched.exit.words.find(words.toStdString()) != std::string::npos,
                 watched.exit.words.c_str());
        QVERIFY(!watched.group.isRunning());
    }

    void aMissingProgramEndsWithItsName()
    {
        Watched watched(planOf(Family::OpenMpi, "/absent/mpirun", {}));
        QTRY_COMPARE(watched.finishedCount, 1);
        QVERIFY(!watched.exit.hasStarted);
        QVERIFY(watched.exit.words.starts_with("/absent/mpirun cannot be started"));
    }

    void plainRanksEndOneByOne()
    {
        LaunchPlan plan = planOf(Family::Plain, MUSTER_FAKE_RANK, {"--plain", "0", "3", "ok"});
        plan.commands.push_back({MUSTER_FAKE_RANK, {"--plain", "1", "3", "fail"}});
        plan.commands.push_back({MUSTER_FAKE_RANK, {"--plain", "2", "3", "ok"}});
        Watched watched(plan);
        QTRY_COMPARE(watched.finishedCount, 1);
        QCOMPARE(watched.endedCount, 3);
        QCOMPARE(watched.exit.exitCode, 3);
        for (const char* line :
             {"rank 0 of 3", "rank 1 of 3", "rank 2 of 3", "something is wrong"}) {
            QVERIFY(std::find(watched.lines.begin(), watched.lines.end(), line) !=
                    watched.lines.end());
        }
    }

    void aChildStartsClean()
    {
        // What a controller may have: blocked and ignored signals and an open descriptor.
        sigset_t blocked;
        sigset_t old;
        ::sigemptyset(&blocked);
        ::sigaddset(&blocked, SIGTERM);
        ::sigprocmask(SIG_BLOCK, &blocked, &old);
        const auto oldHandler = ::signal(SIGINT, SIG_IGN);
        const int descriptor = ::open("/dev/null", O_RDONLY);
        {
            Watched watched(planOf(Family::OpenMpi, MUSTER_FAKE_LAUNCHER, {"state"}));
            QTRY_COMPARE(watched.finishedCount, 1);
            QCOMPARE(watched.lines.size(), std::size_t{1});
            QVERIFY2(watched.lines[0].starts_with(
                         "leader=1 death=15 blocked=0 ignored=0 descriptors=0 "),
                     watched.lines[0].c_str());
        }
        ::close(descriptor);
        ::signal(SIGINT, oldHandler);
        ::sigprocmask(SIG_SETMASK, &old, nullptr);
    }

    void theEnvironmentHasNothingOfAnOuterJob()
    {
        qputenv("OMPI_COMM_WORLD_RANK", "3"); // C-060
        qputenv("PMIX_NAMESPACE", "outer");
        qputenv("APPDIR", "/pkg");
        qputenv("LD_LIBRARY_PATH", "/pkg/lib");
        Watched watched(planOf(Family::OpenMpi, MUSTER_FAKE_LAUNCHER, {"environment"}));
        qunsetenv("OMPI_COMM_WORLD_RANK");
        qunsetenv("PMIX_NAMESPACE");
        qunsetenv("APPDIR");
        qunsetenv("LD_LIBRARY_PATH");
        QTRY_COMPARE(watched.finishedCount, 1);
        QVERIFY(!watched.lines.empty());
        for (const std::string& line : watched.lines) {
            QVERIFY2(!line.starts_with("OMPI_") && !line.starts_with("PMIX_") &&
                         !line.starts_with("LD_LIBRARY_PATH=") && !line.starts_with("APPDIR="),
                     line.c_str());
        }
    }

    void aFloodIsKeptInTheLogAndCutIntoLines()
    {
        const QTemporaryDir folder;
        const QString log = folder.filePath("ranks.log");
        Watched watched(planOf(Family::OpenMpi, MUSTER_FAKE_LAUNCHER, {"flood", "20000"}),
                        log.toStdString());
        QTRY_COMPARE_WITH_TIMEOUT(watched.finishedCount, 1, 30000);
        QCOMPARE(watched.lines.size(), std::size_t{20000});
        QCOMPARE(watched.lines.back(), std::string("line 19999"));
        QFile file(log);
        QVERIFY(file.open(QIODevice::ReadOnly));
        QCOMPARE(file.readAll().count('\n'), 20000);
    }

    void aHugeLineIsShownInPart()
    {
        const QTemporaryDir folder;
        const QString log = folder.filePath("ranks.log");
        Watched watched(planOf(Family::OpenMpi, MUSTER_FAKE_LAUNCHER, {"longline", "10000000"}),
                        log.toStdString()); // F-16
        QTRY_COMPARE_WITH_TIMEOUT(watched.finishedCount, 1, 30000);
        QCOMPARE(watched.lines.size(), std::size_t{3});
        QVERIFY(watched.lines[0].size() < 70000);
        QCOMPARE(QString::fromStdString(watched.lines[1]), QString::fromUtf8("␛[2J�� end"));
        QCOMPARE(watched.lines[2], std::string("last without feed"));
        QVERIFY(QFile(log).size() > 10000000);
    }

    void terminateIsSentOnceAndKillEndsTheStubborn()
    {
        Watched watched(planOf(Family::OpenMpi, MUSTER_FAKE_LAUNCHER, {"stubborn"}));
        QTRY_COMPARE(watched.lines.size(), std::size_t{1});
        watched.group.terminate();
        watched.group.terminate();
        QTest::qWait(100);
        QVERIFY(watched.group.isRunning());
        watched.group.kill();
        QTRY_COMPARE(watched.finishedCount, 1);
        QCOMPARE(watched.exit.signal, SIGKILL);
    }

    void ranksThatOutliveTheLauncherAreFoundAndKilled()
    {
        Watched watched(planOf(Family::OpenMpi, MUSTER_FAKE_LAUNCHER,
                               {"spawn", MUSTER_FAKE_RANK, "stubborn"})); // F-10
        QTRY_COMPARE(watched.lines.size(), std::size_t{1});
        const std::int64_t rank = numberIn(watched.lines[0]);
        const auto known = processRef(rank);
        QVERIFY(known.has_value());
        watched.group.kill();
        QTRY_COMPARE(watched.finishedCount, 1);
        QVERIFY(isAlive(rank));
        QCOMPARE(watched.group.liveRanks(), std::vector<ProcessRef>{*known});

        // The same number with another start time is another process.
        QCOMPARE(killRanks({{rank, known->startTicks + 1}}), std::size_t{0});
        // A process that is no rank program is left alone.
        QCOMPARE(killRanks({*processRef(::getpid())}), std::size_t{0});
        QVERIFY(isAlive(rank));
        QCOMPARE(watched.group.killRanks({*known}), std::size_t{1});
        QTRY_VERIFY(!isAlive(rank));
        QCOMPARE(watched.group.killRanks({*known}), std::size_t{0});
    }

    void theDestructorLeavesNoOrphan()
    {
        std::int64_t rank = 0;
        std::int64_t launcher = 0;
        {
            Watched watched(planOf(Family::OpenMpi, MUSTER_FAKE_LAUNCHER,
                                   {"spawn", MUSTER_FAKE_RANK, "stubborn"}));
            QTRY_COMPARE(watched.lines.size(), std::size_t{1});
            rank = numberIn(watched.lines[0]);
            launcher = watched.group.processIds().at(0);
        }
        QTRY_VERIFY(!isAlive(rank));
        QVERIFY(!isAlive(launcher));
    }

    void nothingOutlivesAKilledController()
    {
        QProcess controller;
        controller.start(MUSTER_FAKE_CONTROLLER,
                         {MUSTER_FAKE_LAUNCHER, "spawn", MUSTER_FAKE_RANK, "silent"}); // F-09
        QByteArray said;
        QTRY_VERIFY((said += controller.readAllStandardOutput()).count('\n') >= 2);
        const std::int64_t launcher = said.split('\n').first().toLongLong();
        QVERIFY(isAlive(launcher));
        controller.kill();
        QVERIFY(controller.waitForFinished());
        QTRY_VERIFY_WITH_TIMEOUT(!isAlive(launcher), 3000);
    }

    void readsTheStartTimeBehindAnyName()
    {
        QCOMPARE(
            parseStartTicks("7 (a) b) (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 99 1"),
            std::optional<std::uint64_t>(99));
        QVERIFY(!parseStartTicks("7 (a) S 1 2").has_value());
        QVERIFY(!parseStartTicks("").has_value());
        QVERIFY(!processRef(1).has_value());
        QVERIFY(!processRef(-5).has_value());
    }
};

QTEST_GUILESS_MAIN(TestGroupProcess)
#include "tst_group_process.moc"
