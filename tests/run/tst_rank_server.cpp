// SPDX-License-Identifier: Apache-2.0
#include "run/rank_server.h"

#include <QLocalSocket>
#include <QTemporaryDir>
#include <QTest>

#include <optional>

using namespace muster;
using namespace muster::run;

namespace {

constexpr std::uint64_t runTag = 77;

class Book final : public RankServerHandler {
public:
    void onHello(PeerId peer, const wire::Hello& hello) override
    {
        lastPeer = peer;
        hellos.push_back(hello);
    }
    void onReady(PeerId, const wire::Ready&) override {}
    void onOutputs(PeerId, wire::OutputBlock block) override { blocks.push_back(std::move(block)); }
    void onHeartbeat(PeerId, const wire::Heartbeat&) override { ++heartbeats; }
    void onStats(PeerId, const wire::Stats&) override {}
    void onLog(PeerId, const wire::Log&) override {}
    void onBye(PeerId, const wire::Bye&) override {}
    void onGone(PeerId, const std::optional<Error>& fault) override
    {
        ++gone;
        lastFault = fault;
    }
    void onTurnedAway(const std::string& why) override { turnedAway.push_back(why); }

    PeerId lastPeer = 0;
    std::vector<wire::Hello> hellos;
    std::vector<wire::OutputBlock> blocks;
    int heartbeats = 0;
    int gone = 0;
    std::optional<Error> lastFault;
    std::vector<std::string> turnedAway;
};

/// A rank's end of the connection, one step at a time.
class Client final {
public:
    Client(const QString& path, const wire::Key& key, wire::Claim claim)
        : m_claim(claim), m_parser(runTag), m_handshake(key, claim)
    {
        m_socket.connectToServer(path);
    }

    /// Waits for a frame of this type; its payload.
    std::optional<std::vector<std::byte>> wait(wire::FrameType type)
    {
        for (int tries = 0; tries < 200; ++tries) {
            if (auto next = m_parser.next(); next && *next) {
                if ((*next)->type != type)
                    continue;
                return std::vector<std::byte>((*next)->payload.begin(), (*next)->payload.end());
            }
            QTest::qWait(10);
            const QByteArray bytes = m_socket.readAll();
            m_parser.feed(std::as_bytes(std::span(bytes.constData(), std::size_t(bytes.size()))));
        }
        return std::nullopt;
    }
    void send(wire::FrameType type, std::span<const std::byte> payload)
    {
        sendRaw(wire::encodeFrame(type, payload, m_sequence++, runTag));
    }
    void sendRaw(const std::vector<std::byte>& bytes)
    {
        m_socket.write(static_cast<const char*>(static_cast<const void*>(bytes.data())),
                       qint64(bytes.size()));
        m_socket.flush();
    }
    bool prove()
    {
        const auto challenge = wait(wire::FrameType::Challenge);
        if (!challenge)
            return false;
        const auto proof = m_handshake.onChallenge(*challenge);
        if (!proof)
            return false;
        send(wire::FrameType::Proof, *proof);
        const auto answer = wait(wire::FrameType::Proof);
        if (!answer || !m_handshake.onProof(*answer))
            return false;
        m_parser.setAuthenticated();
        return true;
    }
    void sayHello()
    {
        wire::Hello hello;
        hello.rank = m_claim.rank;
        hello.world = 2;
        hello.generation = m_claim.generation;
        hello.node = "here";
        hello.pid = 1234;
        hello.cpus = 1;
        hello.cores = 1;
        hello.version = "0.1.0";
        hello.mpiLibrary = "none";
        hello.architecture = "x86_64";
        hello.affinity = "0";
        hello.binaryDigest = std::string(32, '0');
        send(wire::FrameType::Hello, wire::encode(hello));
    }
    [[nodiscard]] bool isConnected() const
    {
        return m_socket.state() == QLocalSocket::ConnectedState;
    }
    void close() { m_socket.abort(); }

private:
    wire::Claim m_claim;
    QLocalSocket m_socket;
    wire::FrameParser m_parser;
    wire::RankHandshake m_handshake;
    std::uint64_t m_sequence = 0;
};

} // namespace

class TestRankServer : public QObject {
    Q_OBJECT

private:
    QTemporaryDir m_folder;
    wire::Key m_key = wire::makeKey();
    std::unique_ptr<Book> m_books;
    std::unique_ptr<RankServer> m_server;
    QString m_path;

    [[nodiscard]] Client client(std::uint32_t rank = 0, std::uint32_t generation = 3)
    {
        return {m_path, wire::deriveKey(m_key, 0, generation), {0, generation, rank}};
    }

private Q_SLOTS:
    void init()
    {
        m_books = std::make_unique<Book>();
        m_path = m_folder.filePath("s");
        RankServer::Options options;
        options.socketPath = m_path.toStdString();
        options.runTag = runTag;
        options.key = m_key;
        options.expectedRanks = 2;
        m_server = std::make_unique<RankServer>(options, *m_books);
        QVERIFY(m_server->listen());
        m_server->setGeneration(3);
    }
    void cleanup() { m_server.reset(); }

    void aRankThatProvesTheKeyIsHeard()
    {
        Client rank = client(1);
        QVERIFY(rank.prove());
        rank.sayHello();
        QTRY_COMPARE(m_books->hellos.size(), std::size_t{1});
        QCOMPARE(m_books->hellos[0].rank, std::uint32_t{1});
        wire::OutputBlock block;
        block.unit = UnitId(5);
        rank.send(wire::FrameType::Outputs, wire::encodeBlock(block));
        rank.send(wire::FrameType::Heartbeat, wire::encode(wire::Heartbeat{}));
        QTRY_COMPARE(m_books->heartbeats, 1);
        QCOMPARE(m_books->blocks.size(), std::size_t{1});
        rank.close();
        QTRY_COMPARE(m_books->gone, 1);
        QVERIFY(!m_books->lastFault);
        QVERIFY(m_books->turnedAway.empty());
    }

    void F23_aWrongKeyIsTurnedAway()
    {
        Client rank(m_path, wire::makeKey(), {0, 3, 0});
        QVERIFY(!rank.prove());
        QTRY_COMPARE(m_books->turnedAway.size(), std::size_t{1});
        QTRY_VERIFY(!rank.isConnected());
        QVERIFY(m_books->hellos.empty());
        QCOMPARE(m_books->gone, 0);
    }

    void F23_aKeyOfAnOlderLaunchIsTurnedAway()
    {
        Client rank = client(0, 2);
        QVERIFY(!rank.prove());
        QTRY_COMPARE(m_books->turnedAway.size(), std::size_t{1});
    }

    void F23_nothingIsReadBeforeTheProof()
    {
        Client rank = client();
        QVERIFY(rank.wait(wire::FrameType::Challenge));
        rank.sayHello();
        QTRY_COMPARE(m_books->turnedAway.size(), std::size_t{1});
        QVERIFY(m_books->hellos.empty());
    }

    void F25_silentConnectionsAreCappedAndEnd()
    {
        std::vector<std::unique_ptr<QLocalSocket>> idle;
        for (int i = 0; i < 40; ++i) {
            idle.push_back(std::make_unique<QLocalSocket>());
            idle.back()->connectToServer(m_path);
            QTest::qWait(1);
        }
        QTRY_VERIFY(m_books->turnedAway.size() >= 40 - (2 * 2 + 8));
        // All of them are closed after 5 s, and a real rank gets in.
        QTRY_COMPARE_WITH_TIMEOUT(m_books->turnedAway.size(), std::size_t{40}, 9000);
        Client rank = client();
        QVERIFY(rank.prove());
    }

    void F26_aDamagedFrameEndsTheConnection_data()
    {
        QTest::addColumn<int>("byte");
        QTest::addColumn<QByteArray>("code");
        QTest::newRow("magic") << 0 << QByteArray("E-WIRE-001");
        QTest::newRow("version") << 5 << QByteArray("E-WIRE-002");
        QTest::newRow("length") << 11 << QByteArray("E-WIRE-003");
        QTest::newRow("payload") << 40 << QByteArray("E-WIRE-004");
    }
    void F26_aDamagedFrameEndsTheConnection()
    {
        QFETCH(int, byte);
        QFETCH(QByteArray, code);
        Client rank = client();
        QVERIFY(rank.prove());
        rank.sayHello();
        QTRY_COMPARE(m_books->hellos.size(), std::size_t{1});
        auto frame = wire::encodeFrame(wire::FrameType::Outputs,
                                       wire::encodeBlock(wire::OutputBlock{}), 9, runTag);
        frame[std::size_t(byte)] ^= std::byte{0x80};
        rank.sendRaw(frame);
        QTRY_COMPARE(m_books->gone, 1);
        QVERIFY(m_books->lastFault.has_value());
        QCOMPARE(QByteArray::fromStdString(m_books->lastFault->code), code);
    }

    void aFrameThatIsCutOffIsAFault()
    {
        Client rank = client();
        QVERIFY(rank.prove());
        rank.sayHello();
        QTRY_COMPARE(m_books->hellos.size(), std::size_t{1});
        auto frame = wire::encodeFrame(wire::FrameType::Outputs,
                                       wire::encodeBlock(wire::OutputBlock{}), 9, runTag);
        frame.resize(frame.size() - 3);
        rank.sendRaw(frame);
        QTest::qWait(50);
        rank.close();
        QTRY_COMPARE(m_books->gone, 1);
        QVERIFY(m_books->lastFault.has_value());
        QCOMPARE(m_books->lastFault->code, std::string("E-WIRE-008"));
    }

    void F30_aPathThatIsTooLongIsAnError()
    {
        RankServer::Options options;
        options.socketPath =
            std::filesystem::path(m_folder.path().toStdString()) / std::string(120, 'x');
        RankServer server(options, *m_books);
        const Status listening = server.listen();
        QVERIFY(!listening);
        QCOMPARE(listening.error().code, std::string("E-RUN-010"));
    }
};

QTEST_GUILESS_MAIN(TestRankServer)
#include "tst_rank_server.moc"
