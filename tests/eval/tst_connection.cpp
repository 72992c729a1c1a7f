// SPDX-License-Identifier: Apache-2.0
#include "connection.h"

#include "eval/fake_controller.h"
#include "eval/fake_model.h"
#include "eval/loop.h"
#include "eval/stream_sink.h"

#include <QTemporaryDir>
#include <QTest>

#include <atomic>
#include <csignal>
#include <thread>

using namespace muster;
using namespace std::chrono_literals;
using wire::FrameType;

namespace {

constexpr std::uint64_t tag = 0xABCDEF;

wire::RankConfig quickConfig()
{
    wire::RankConfig config;
    config.modelPath = "synthetic";
    config.heartbeatMs = 20;
    config.graceMs = 20000;
    return config;
}

/// A rank as a thread of the test: connection, fake model, loop.
class RankThread final {
public:
    RankThread(const std::string& socket, const wire::Key& key, std::string inject = {})
        : m_line({.socket = socket, .key = key, .runTag = tag, .claim = {0, 0, 0}, .parent = 0},
                 hello(), m_progress),
          m_inject(std::move(inject))
    {
        m_line.start();
        m_thread = std::thread([this] { work(); });
    }
    ~RankThread() { m_thread.join(); }
    RankThread(const RankThread&) = delete;
    RankThread& operator=(const RankThread&) = delete;

    std::atomic<int> computed = 0;
    std::atomic<bool> isDone = false;
    std::string failure;

private:
    static wire::Hello hello()
    {
        wire::Hello hello;
        hello.pid = 1;
        hello.binaryDigest = std::string(32, '0');
        return hello;
    }
    void work()
    {
        const Status done = run();
        if (!done)
            failure = done.error().code;
        isDone = true;
    }
    Status run()
    {
        const auto config = m_line.waitForConfig();
        if (!config)
            return fail(config.error());
        wire::Ready ready;
        ready.modelDigest = std::string(32, '0');
        const auto inject = eval::Inject::parse(m_inject, RankId(0), 1, 0);
        m_line.ready(ready, *inject);
        test::FakeModel model(200us);
        eval::StreamSink sink(
            m_line, m_progress,
            eval::FlushPolicy(config->flushBytes, std::int64_t{config->flushMs} * 1'000'000));
        eval::Loop loop(RankId(0), model, m_line, sink, m_progress, *inject);
        if (Status looped = loop.run(m_line.stopToken()); !looped)
            return looped;
        computed = model.computed;
        if (Status acked = m_line.waitForAcks(); !acked)
            return acked;
        wire::Stats stats;
        stats.own = loop.sums();
        stats.times = m_progress.snapshot().times;
        stats.bytesOut = m_line.bytesOut();
        return m_line.finish(stats);
    }

    eval::Progress m_progress;
    rank::Connection m_line;
    std::string m_inject;
    std::thread m_thread;
};

} // namespace

class TestConnection : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        sigset_t blocked;
        ::sigemptyset(&blocked);
        ::sigaddset(&blocked, SIGTERM);
        ::pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
    }
    void init()
    {
        m_folder = std::make_unique<QTemporaryDir>();
        m_path = m_folder->filePath(QStringLiteral("s")).toStdString();
        m_controller = std::make_unique<test::FakeController>(m_path, tag);
        QVERIFY(m_controller->isListening);
        m_key = wire::makeKey();
    }

    void aRankDoesItsUnitsAndTakesItsLeave()
    {
        RankThread rank(m_path, m_key);
        auto peer = m_controller->accept();
        QVERIFY(peer);
        const auto hello = peer->join(m_key);
        QVERIFY(hello);
        QCOMPARE(hello->connection, 0U);
        QVERIFY(hello->holding.empty());
        peer->say(FrameType::Config, quickConfig());
        QVERIFY(peer->expect(FrameType::Ready));
        for (std::uint64_t u = 0; u < 5; ++u)
            peer->write(FrameType::Unit, encodeUnit(test::makeUnit(u)));
        peer->say(FrameType::Drain, wire::Drain{});
        for (std::uint64_t u = 0; u < 5; ++u) {
            const auto block = peer->expectBlock();
            QVERIFY(block);
            QCOMPARE(block->unit, UnitId(u));
            QCOMPARE(block->sequence, u);
            QCOMPARE(block->outputs[0].hash, wire::itemHash(test::makeUnit(u), 0));
            peer->say(FrameType::Ack, wire::Ack{UnitId(u), 0});
        }
        const auto stats = peer->expectMessage<wire::Stats>(FrameType::Stats);
        QVERIFY(stats);
        QCOMPARE(stats->own.units, 5);
        QVERIFY(stats->bytesOut > 0);
        QVERIFY(peer->expect(FrameType::Bye));
        peer->say(FrameType::Bye, wire::Bye{"thanks"});
        QTRY_VERIFY(rank.isDone.load());
        QVERIFY(rank.failure.empty());
    }

    void heartbeatsComeWithoutAnyWork()
    {
        RankThread rank(m_path, m_key);
        auto peer = m_controller->accept();
        QVERIFY(peer && peer->join(m_key));
        peer->say(FrameType::Config, quickConfig());
        QVERIFY(peer->expect(FrameType::Ready));
        for (int i = 0; i < 5; ++i) {
            const auto beat = peer->expectMessage<wire::Heartbeat>(FrameType::Heartbeat, 2000);
            QVERIFY(beat);
            QVERIFY(beat->rssBytes > 0);
        }
        peer->say(FrameType::Drain, wire::Drain{});
        QVERIFY(peer->expect(FrameType::Bye));
        peer->close();
        QTRY_VERIFY(rank.isDone.load());
        QVERIFY(rank.failure.empty());
    }

    // F-20
    void afterALostConnectionOnlyWhatWasNotAcknowledgedIsSentAgain()
    {
        RankThread rank(m_path, m_key);
        {
            auto peer = m_controller->accept();
            QVERIFY(peer && peer->join(m_key));
            peer->say(FrameType::Config, quickConfig());
            QVERIFY(peer->expect(FrameType::Ready));
            for (std::uint64_t u = 0; u < 4; ++u)
                peer->write(FrameType::Unit, encodeUnit(test::makeUnit(u)));
            for (int i = 0; i < 4; ++i)
                QVERIFY(peer->expectBlock());
            peer->say(FrameType::Ack, wire::Ack{UnitId(1), 0});
            // The acknowledgement is read before the end of the connection.
        }
        auto peer = m_controller->accept();
        QVERIFY(peer);
        const auto hello = peer->join(m_key);
        QVERIFY(hello);
        QCOMPARE(hello->connection, 1U);
        QCOMPARE(hello->holding, (std::vector<std::uint64_t>{0, 2, 3}));
        peer->say(FrameType::Config, quickConfig());
        QVERIFY(peer->expect(FrameType::Ready));
        for (const std::uint64_t u : {0U, 2U, 3U}) {
            const auto block = peer->expectBlock();
            QVERIFY(block);
            QCOMPARE(block->unit, UnitId(u));
            peer->say(FrameType::Ack, wire::Ack{UnitId(u), 0});
        }
        peer->say(FrameType::Drain, wire::Drain{});
        QVERIFY(peer->expect(FrameType::Bye));
        peer->say(FrameType::Bye, wire::Bye{});
        QTRY_VERIFY(rank.isDone.load());
        QVERIFY(rank.failure.empty());
        QCOMPARE(rank.computed.load(), 4);
    }

    void aRankComesBackWhenTheListenerDoes()
    {
        RankThread rank(m_path, m_key);
        {
            auto peer = m_controller->accept();
            QVERIFY(peer && peer->join(m_key));
            peer->say(FrameType::Config, quickConfig());
            QVERIFY(peer->expect(FrameType::Ready));
            m_controller->stopListening();
        }
        QTest::qWait(200);
        m_controller->listen();
        auto peer = m_controller->accept();
        QVERIFY(peer && peer->join(m_key));
        peer->say(FrameType::Config, quickConfig());
        QVERIFY(peer->expect(FrameType::Ready));
        peer->say(FrameType::Cancel, wire::Cancel{"enough", wire::CancelMode::Drain});
        QVERIFY(peer->expect(FrameType::Bye));
        peer->say(FrameType::Bye, wire::Bye{});
        QTRY_VERIFY(rank.isDone.load());
    }

    void aControllerWithoutTheKeyGetsNoHello()
    {
        RankThread rank(m_path, m_key);
        {
            auto peer = m_controller->accept();
            QVERIFY(peer);
            QVERIFY(!peer->join(wire::makeKey()));
        }
        auto peer = m_controller->accept();
        QVERIFY(peer);
        wire::Nonce nonce = wire::makeNonce();
        peer->write(FrameType::Challenge, nonce);
        QVERIFY(peer->expect(FrameType::Proof));
        peer->write(FrameType::Proof, nonce);
        QVERIFY(!peer->read());
        QVERIFY(peer->isClosed);
        peer = m_controller->accept();
        QVERIFY(peer && peer->join(m_key));
        peer->say(FrameType::Refuse, wire::Refuse{"E-RUN-007", "two ranks 0"});
        QTRY_VERIFY(rank.isDone.load());
        QVERIFY(rank.failure == "E-RUN-007");
    }

    void aDamagedFrameIsNoticedAndTheRankComesBack_data()
    {
        QTest::addColumn<QString>("fault");
        QTest::addColumn<QString>("code");
        QTest::newRow("flipped bit")
            << QStringLiteral("flipped-bit") << QStringLiteral("E-WIRE-004");
        QTest::newRow("F-02 truncated frame")
            << QStringLiteral("truncated-frame") << QStringLiteral("E-WIRE-008");
    }
    void aDamagedFrameIsNoticedAndTheRankComesBack()
    {
        QFETCH(QString, fault);
        QFETCH(QString, code);
        RankThread rank(m_path, m_key, fault.toStdString());
        for (int round = 0; round < 2; ++round) {
            auto peer = m_controller->accept();
            QVERIFY(peer && peer->join(m_key));
            peer->say(FrameType::Config, quickConfig());
            QVERIFY(peer->expect(FrameType::Ready));
            if (round == 0)
                peer->write(FrameType::Unit, encodeUnit(test::makeUnit(0)));
            QVERIFY(!peer->expectBlock());
            QCOMPARE(QString::fromStdString(peer->error), code);
        }
        auto peer = m_controller->accept();
        QVERIFY(peer && peer->join(m_key));
        peer->say(FrameType::Refuse, wire::Refuse{"E-RUN-009", "broken frames"});
        QTRY_VERIFY(rank.isDone.load());
    }

    void aByeInTheMiddleStopsTheRank()
    {
        RankThread rank(m_path, m_key);
        auto peer = m_controller->accept();
        QVERIFY(peer && peer->join(m_key));
        peer->say(FrameType::Config, quickConfig());
        QVERIFY(peer->expect(FrameType::Ready));
        peer->say(FrameType::Bye, wire::Bye{"enough"});
        QTRY_VERIFY(rank.isDone.load());
        QVERIFY(!rank.failure.empty());
    }

    void anAcknowledgedUnitThatStillWaitsIsDropped()
    {
        RankThread rank(m_path, m_key);
        auto peer = m_controller->accept();
        QVERIFY(peer && peer->join(m_key));
        for (std::uint64_t u = 0; u < 3; ++u)
            peer->write(FrameType::Unit, encodeUnit(test::makeUnit(u)));
        peer->say(FrameType::Ack, wire::Ack{UnitId(1), 0});
        peer->say(FrameType::Config, quickConfig());
        QVERIFY(peer->expect(FrameType::Ready));
        for (const std::uint64_t u : {0U, 2U}) {
            const auto block = peer->expectBlock();
            QVERIFY(block);
            QCOMPARE(block->unit, UnitId(u));
            peer->say(FrameType::Ack, wire::Ack{UnitId(u), 0});
        }
        peer->say(FrameType::Drain, wire::Drain{});
        QVERIFY(peer->expect(FrameType::Bye));
        peer->say(FrameType::Bye, wire::Bye{});
        QTRY_VERIFY(rank.isDone.load());
        QCOMPARE(rank.computed.load(), 2);
    }

private:
    std::unique_ptr<QTemporaryDir> m_folder;
    std::string m_path;
    std::unique_ptr<test::FakeController> m_controller;
    wire::Key m_key;
};

QTEST_GUILESS_MAIN(TestConnection)
#include "tst_connection.moc"
