// SPDX-License-Identifier: Apache-2.0
// The program muster-rank against a fake controller: plain processes, and a few under mpirun.
#include "eval/fake_controller.h"
#include "process.h"

#include <QElapsedTimer>
#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>

#include <csignal>
#include <set>

using namespace muster;
using wire::FrameType;

namespace {

constexpr std::uint64_t tag = 0xABCDEF;
const QString program = QStringLiteral(MUSTER_BIN_DIR "/muster-rank");

wire::RankConfig makeConfig()
{
    wire::RankConfig config;
    config.modelPath = "synthetic";
    config.heartbeatMs = 50;
    config.graceMs = 1000;
    return config;
}

} // namespace

class TestRankProcess : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init()
    {
        m_folder = std::make_unique<QTemporaryDir>();
        m_controller = std::make_unique<test::FakeController>(
            m_folder->filePath(QStringLiteral("s")).toStdString(), tag);
        QVERIFY(m_controller->isListening);
        m_key = wire::makeKey();
        QVERIFY(wire::writeKeyFile(m_folder->filePath(QStringLiteral("k")).toStdString(), m_key)
                    .has_value());
    }

    void factsAboutTheProcessCanBeRead()
    {
        QVERIFY(rank::startTimeTicks() > 0);
        QVERIFY(rank::residentBytes() > 0);
        QVERIFY(rank::ageNs() >= 0);
        const auto cpus = rank::allowedCpus();
        QVERIFY(!cpus.empty());
        std::set<std::uint32_t> inCores;
        for (const auto& core : rank::physicalCores(cpus))
            inCores.insert(core.begin(), core.end());
        QCOMPARE(inCores.size(), cpus.size());
        QCOMPARE(rank::rangesText({0, 1, 2, 5, 7, 8}), std::string("0-2,5,7-8"));
        QCOMPARE(rank::rangesText({}), std::string());
    }

    void coresAreDealtByLocalRank()
    {
        const std::vector<std::vector<std::uint32_t>> cores{{0, 4}, {1, 5}, {2, 6}, {3, 7}};
        QCOMPARE(*rank::coresOf(cores, 1, 4, 1), (std::vector<std::uint32_t>{1, 5}));
        QCOMPARE(*rank::coresOf(cores, 1, 2, 2), (std::vector<std::uint32_t>{2, 3, 6, 7}));
        QVERIFY(!rank::coresOf(cores, 0, 5, 1));
        QVERIFY(!rank::coresOf(cores, 0, 3, 2));
        QVERIFY(!rank::coresOf(cores, 4, 4, 1));
    }

    void theProgramTellsItsVersionAndItsMpi()
    {
        QProcess process;
        process.start(program, {QStringLiteral("--version")});
        QVERIFY(process.waitForFinished());
        QVERIFY(process.readAllStandardOutput().startsWith("muster-rank "));
        process.start(program, {QStringLiteral("--mpi-library")});
        QVERIFY(process.waitForFinished());
        QCOMPARE(process.exitCode(), 0);
        QVERIFY(process.readAllStandardOutput().contains("MPI"));
        process.start(program, {QStringLiteral("--nonsense")});
        QVERIFY(process.waitForFinished());
        QCOMPARE(process.exitCode(), 2);
        QVERIFY(process.readAllStandardError().size() <= 200);
    }

    void aPlainRankDoesItsWork()
    {
        QProcess process;
        start(process);
        auto peer = m_controller->accept();
        QVERIFY(peer);
        const auto hello = peer->join(m_key);
        QVERIFY(hello);
        QCOMPARE(hello->rank, 1U);
        QCOMPARE(hello->world, 3U);
        QCOMPARE(hello->group, 2U);
        QCOMPARE(hello->generation, 5U);
        QCOMPARE(hello->pid, process.processId());
        QVERIFY(hello->startTimeTicks > 0);
        QCOMPARE(hello->mpiLibrary, std::string("none"));
        QCOMPARE(peer->claim, (wire::Claim{2, 5, 1}));
        QVERIFY(work(*peer, 6));
        QVERIFY(process.waitForFinished());
        QCOMPARE(process.exitStatus(), QProcess::NormalExit);
        QCOMPARE(process.exitCode(), 0);
    }

    // F-19
    void aRankEndsWhenItsControllerStaysAway()
    {
        QProcess process;
        start(process);
        auto peer = m_controller->accept();
        QVERIFY(peer && peer->join(m_key));
        peer->say(FrameType::Config, makeConfig());
        QVERIFY(peer->expect(FrameType::Ready, 60000));
        m_controller->stopListening();
        peer.reset();
        QElapsedTimer timer;
        timer.start();
        QVERIFY(process.waitForFinished(10000));
        QVERIFY(timer.elapsed() >= 900);
        QCOMPARE(process.exitCode(), 1);
        QVERIFY(process.readAllStandardError().contains("stayed away"));
    }

    void sigtermEndsARankAndSigintDoesNot()
    {
        QProcess process;
        start(process);
        auto peer = m_controller->accept();
        QVERIFY(peer && peer->join(m_key));
        peer->say(FrameType::Config, makeConfig());
        QVERIFY(peer->expect(FrameType::Ready, 60000));
        ::kill(static_cast<pid_t>(process.processId()), SIGINT);
        QVERIFY(peer->expect(FrameType::Heartbeat));
        QVERIFY(peer->expect(FrameType::Heartbeat));
        QCOMPARE(process.state(), QProcess::Running);
        ::kill(static_cast<pid_t>(process.processId()), SIGTERM);
        QVERIFY(process.waitForFinished(5000));
        QCOMPARE(process.exitCode(), 143);
    }

    void cancelNowEndsARankThatHangs()
    {
        QProcess process;
        start(process);
        auto peer = m_controller->accept();
        QVERIFY(peer && peer->join(m_key));
        auto config = makeConfig();
        config.inject = "hang-unit:0";
        peer->say(FrameType::Config, config);
        QVERIFY(peer->expect(FrameType::Ready, 60000));
        peer->write(FrameType::Unit, encodeUnit(test::makeUnit(0)));
        for (int i = 0; i < 100; ++i) {
            const auto beat = peer->expectMessage<wire::Heartbeat>(FrameType::Heartbeat);
            QVERIFY(beat);
            if (beat->unit == UnitId(0))
                break;
        }
        // F-05: heartbeats go on while the unit hangs.
        QVERIFY(peer->expect(FrameType::Heartbeat));
        peer->say(FrameType::Cancel, wire::Cancel{"deadline", wire::CancelMode::Now});
        QVERIFY(process.waitForFinished(3000));
    }

    void injectedDeathsHappen_data()
    {
        QTest::addColumn<QByteArray>("inject");
        QTest::addColumn<int>("signal");
        QTest::newRow("F-01") << QByteArray("rank-loss") << SIGKILL;
        QTest::newRow("F-02") << QByteArray("crash-unit:1") << SIGSEGV;
    }
    void injectedDeathsHappen()
    {
        QFETCH(QByteArray, inject);
        QFETCH(int, signal);
        QProcess process;
        start(process, QStringLiteral("0"));
        auto peer = m_controller->accept();
        QVERIFY(peer && peer->join(m_key));
        auto config = makeConfig();
        config.inject = inject.toStdString();
        peer->say(FrameType::Config, config);
        QVERIFY(peer->expect(FrameType::Ready, 60000));
        for (std::uint64_t u = 0; u < 3; ++u)
            peer->write(FrameType::Unit, encodeUnit(test::makeUnit(u)));
        QVERIFY(process.waitForFinished(10000));
        QCOMPARE(process.exitStatus(), QProcess::CrashExit);
        QCOMPARE(process.exitCode(), signal);
    }

    void aMissingModelIsSaidOnce()
    {
        QProcess process;
        start(process);
        auto peer = m_controller->accept();
        QVERIFY(peer && peer->join(m_key));
        auto config = makeConfig();
        config.modelPath = m_folder->filePath(QStringLiteral("nothing")).toStdString();
        peer->say(FrameType::Config, config);
        const auto log = peer->expectMessage<wire::Log>(FrameType::Log);
        QVERIFY(log);
        QCOMPARE(log->level, wire::LogLevel::Error);
        QVERIFY(process.waitForFinished());
        QCOMPARE(process.exitCode(), 3);
        QVERIFY(process.readAllStandardError().size() <= 200);
    }

    void ranksUnderAnMpiLauncherWorkInBothGatherModes_data()
    {
        QTest::addColumn<QString>("launcher");
        QTest::addColumn<QString>("suffix");
        QTest::addColumn<bool>("isCollective");
        for (const bool isCollective : {false, true}) {
            const char* mode = isCollective ? "collective" : "stream";
            QTest::addRow("Open MPI, %s", mode)
                << QStringLiteral("mpirun.openmpi") << QString() << isCollective;
            QTest::addRow("MPICH, %s", mode)
                << QStringLiteral("mpirun.mpich") << QStringLiteral("-mpich") << isCollective;
        }
    }
    void ranksUnderAnMpiLauncherWorkInBothGatherModes()
    {
        QFETCH(QString, launcher);
        QFETCH(QString, suffix);
        QFETCH(bool, isCollective);
        const QString path = QStandardPaths::findExecutable(launcher);
        if (path.isEmpty() || !QFile::exists(program + suffix))
            QSKIP("this MPI family is not on the machine");
        QProcess process;
        QStringList words{QStringLiteral("-n"), QStringLiteral("2")};
        if (suffix.isEmpty())
            words = QStringList{QStringLiteral("--oversubscribe"), QStringLiteral("--bind-to"),
                                QStringLiteral("none")} +
                    words;
        auto environment = QProcessEnvironment::systemEnvironment();
        environment.insert(QStringLiteral("OMPI_ALLOW_RUN_AS_ROOT"), QStringLiteral("1"));
        environment.insert(QStringLiteral("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), QStringLiteral("1"));
        process.setProcessEnvironment(environment);
        process.setProcessChannelMode(QProcess::ForwardedChannels);
        process.start(path, words + QStringList{program + suffix} + address());
        std::vector<std::unique_ptr<test::FakePeer>> peers(2);
        for (int i = 0; i < 2; ++i) {
            auto peer = m_controller->accept();
            QVERIFY(peer);
            const auto hello = peer->join(m_key);
            QVERIFY(hello);
            QCOMPARE(hello->world, 2U);
            QCOMPARE(hello->launcherWorld, 2U);
            QCOMPARE(hello->launcherRank, hello->rank);
            auto config = makeConfig();
            config.graceMs = 20000;
            config.roundMs = 20;
            if (isCollective)
                config.gather = wire::GatherMode::Collective;
            peer->say(FrameType::Config, config);
            peers[hello->rank] = std::move(peer);
        }
        for (auto& peer : peers)
            QVERIFY(peer->expect(FrameType::Ready, 60000));
        constexpr std::uint64_t units = 9;
        for (std::uint64_t u = 0; u < units; ++u)
            peers[u % 3 == 0 ? 0 : 1]->write(FrameType::Unit, encodeUnit(test::makeUnit(u)));
        for (auto& peer : peers)
            peer->say(FrameType::Drain, wire::Drain{});
        std::set<std::uint64_t> seen;
        for (std::uint64_t u = 0; u < units; ++u) {
            auto& peer = peers[isCollective || u < 3 ? 0 : 1];
            const auto block = peer->expectBlock();
            QVERIFY(block);
            QVERIFY(seen.insert(block->unit.value).second);
            QCOMPARE(block->rank, RankId(block->unit.value % 3 == 0 ? 0 : 1));
            peer->say(FrameType::Ack, wire::Ack{block->unit, block->attempt});
        }
        for (std::size_t r = 0; r < 2; ++r) {
            const auto stats = peers[r]->expectMessage<wire::Stats>(FrameType::Stats);
            QVERIFY(stats);
            QCOMPARE(stats->own.units, r == 0 ? 3 : 6);
            QCOMPARE(stats->group.has_value(), r == 0);
            if (r == 0)
                QCOMPARE(stats->group->units, 9);
            QVERIFY(peers[r]->expect(FrameType::Bye));
        }
        for (auto& peer : peers)
            peer->say(FrameType::Bye, wire::Bye{});
        QVERIFY(process.waitForFinished(20000));
        QCOMPARE(process.exitCode(), 0);
    }

private:
    QStringList address() const
    {
        return {QStringLiteral("--connect"),
                QStringLiteral("unix:") + m_folder->filePath(QStringLiteral("s")),
                QStringLiteral("--key-file"),
                m_folder->filePath(QStringLiteral("k")),
                QStringLiteral("--run-tag"),
                QString::number(tag, 16)};
    }
    void start(QProcess& process, const QString& generation = QStringLiteral("5")) const
    {
        const bool isFirst = generation == QStringLiteral("0");
        process.start(program,
                      address() + QStringList{QStringLiteral("--plain"), QStringLiteral("1"),
                                              QStringLiteral("3"), QStringLiteral("--group"),
                                              QStringLiteral("2"), QStringLiteral("--generation"),
                                              isFirst ? QStringLiteral("0") : generation});
        QVERIFY(process.waitForStarted());
    }
    static bool work(test::FakePeer& peer, std::uint64_t units)
    {
        peer.say(FrameType::Config, makeConfig());
        if (!peer.expect(FrameType::Ready, 60000))
            return false;
        for (std::uint64_t u = 0; u < units; ++u)
            peer.write(FrameType::Unit, encodeUnit(test::makeUnit(u)));
        peer.say(FrameType::Drain, wire::Drain{});
        for (std::uint64_t u = 0; u < units; ++u) {
            const auto block = peer.expectBlock();
            if (!block || block->unit != UnitId(u))
                return false;
            peer.say(FrameType::Ack, wire::Ack{block->unit, block->attempt});
        }
        if (!peer.expect(FrameType::Stats) || !peer.expect(FrameType::Bye))
            return false;
        peer.say(FrameType::Bye, wire::Bye{});
        return true;
    }

    std::unique_ptr<QTemporaryDir> m_folder;
    std::unique_ptr<test::FakeController> m_controller;
    wire::Key m_key;
};

QTEST_GUILESS_MAIN(TestRankProcess)
#include "tst_rank_process.moc"
