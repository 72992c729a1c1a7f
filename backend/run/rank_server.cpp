// SPDX-License-Identifier: Apache-2.0
#include "run/rank_server.h"

#include "base/clock.h"

#include <fmt/format.h>

#include <sys/socket.h>
#include <unistd.h>

namespace muster::run {

namespace {

constexpr std::int64_t proofLimitNs = 5'000'000'000;
constexpr std::size_t readPiece = std::size_t{256} << 10U;

bool isOwnUser(qintptr descriptor)
{
    ucred peer = {};
    socklen_t size = sizeof peer;
    return ::getsockopt(static_cast<int>(descriptor), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           peer.uid == ::geteuid();
}

} // namespace

struct RankServer::Peer {
    Peer(std::uint64_t runTag, wire::KeyLookup lookup)
        : parser(runTag), handshake(std::move(lookup))
    {
    }

    QLocalSocket* socket = nullptr;
    wire::FrameParser parser;
    wire::ServerHandshake handshake;
    std::uint64_t sequence = 0;
    std::int64_t sinceNs = 0;
    std::int64_t heardNs = 0;
    bool isClosing = false;
    bool saidHello = false;
};

RankServer::RankServer(Options options, RankServerHandler& handler, QObject* parent)
    : QObject(parent), m_options(std::move(options)), m_handler(handler)
{
    m_server.setSocketOptions(QLocalServer::UserAccessOption);
    connect(&m_server, &QLocalServer::newConnection, this, &RankServer::accept);
    m_expiry.setInterval(1000);
    connect(&m_expiry, &QTimer::timeout, this, &RankServer::expire);
}

RankServer::~RankServer()
{
    close();
}

Status RankServer::listen()
{
    const std::string path = m_options.socketPath.string();
    if (path.size() > 107)
        return muster::fail(Error::Kind::Io, "E-RUN-010",
                            fmt::format("the socket path {} is longer than 107 bytes.", path));
    if (!m_server.listen(QString::fromStdString(path)))
        return muster::fail(Error::Kind::Io, "E-RUN-010",
                            fmt::format("the socket {} cannot be made: {}. Nothing was started.",
                                        path, m_server.errorString().toStdString()));
    m_expiry.start();
    return {};
}

void RankServer::close()
{
    m_server.close();
    m_expiry.stop();
    for (auto& [id, peer] : m_peers) {
        peer->socket->disconnect(this);
        peer->socket->abort();
        peer->socket->deleteLater();
    }
    m_peers.clear();
}

void RankServer::accept()
{
    while (QLocalSocket* socket = m_server.nextPendingConnection()) {
        std::size_t waiting = 0;
        for (const auto& [id, peer] : m_peers)
            waiting += peer->handshake.isDone() ? 0U : 1U;
        const bool isFull = waiting >= std::size_t{2} * m_options.expectedRanks + 8;
        if (isFull || !isOwnUser(socket->socketDescriptor())) {
            m_handler.onTurnedAway(isFull ? "too many connections wait for their proof"
                                          : "a connection of another user");
            socket->abort();
            socket->deleteLater();
            continue;
        }
        const PeerId id = m_nextPeer++;
        auto peer = std::make_unique<Peer>(
            m_options.runTag, [this](const wire::Claim& claim) -> std::optional<wire::Key> {
                if (claim.generation != m_generation)
                    return std::nullopt;
                return wire::deriveKey(m_options.key, claim.group, claim.generation);
            });
        peer->socket = socket;
        peer->sinceNs = monotonicNs();
        socket->setParent(this);
        connect(socket, &QLocalSocket::readyRead, this, [this, id] { read(id); });
        connect(socket, &QLocalSocket::disconnected, this, [this, id] { disconnected(id); });
        Peer& kept = *peer;
        m_peers.emplace(id, std::move(peer));
        const auto challenge = kept.handshake.challenge();
        write(kept, wire::FrameType::Challenge, challenge);
        read(id);
    }
}

void RankServer::write(Peer& peer, wire::FrameType type, std::span<const std::byte> payload)
{
    const auto frame = wire::encodeFrame(type, payload, peer.sequence++, m_options.runTag);
    m_bytesOut += frame.size();
    peer.socket->write(static_cast<const char*>(static_cast<const void*>(frame.data())),
                       static_cast<qint64>(frame.size()));
    peer.socket->flush();
}

void RankServer::send(PeerId id, wire::FrameType type, std::span<const std::byte> payload)
{
    const auto peer = m_peers.find(id);
    if (peer != m_peers.end() && !peer->second->isClosing)
        write(*peer->second, type, payload);
}

void RankServer::refuse(PeerId id, const std::string& code, const std::string& text)
{
    const auto found = m_peers.find(id);
    if (found == m_peers.end() || found->second->isClosing)
        return;
    Peer& peer = *found->second;
    const auto payload = wire::encode(wire::Refuse{code, text});
    write(peer, wire::FrameType::Refuse, payload);
    peer.isClosing = true;
    peer.socket->disconnectFromServer();
}

void RankServer::drop(PeerId id)
{
    const auto peer = m_peers.find(id);
    if (peer == m_peers.end())
        return;
    retire(id);
}

void RankServer::retire(PeerId id)
{
    const auto peer = m_peers.find(id);
    if (peer == m_peers.end())
        return;
    QLocalSocket* socket = peer->second->socket;
    socket->disconnect(this);
    socket->abort();
    socket->deleteLater();
    m_peers.erase(peer);
}

std::int64_t RankServer::lastHeardNs(PeerId id) const
{
    const auto peer = m_peers.find(id);
    return peer == m_peers.end() ? 0 : peer->second->heardNs;
}

void RankServer::read(PeerId id)
{
    for (;;) {
        auto found = m_peers.find(id);
        if (found == m_peers.end() || found->second->isClosing)
            return;
        Peer& peer = *found->second;
        if (peer.socket->bytesAvailable() <= 0)
            return;
        const auto space = peer.parser.space(readPiece);
        const qint64 got = peer.socket->read(static_cast<char*>(static_cast<void*>(space.data())),
                                             static_cast<qint64>(readPiece));
        if (got <= 0)
            return;
        m_bytesIn += static_cast<std::uint64_t>(got);
        peer.heardNs = monotonicNs();
        peer.parser.filled(static_cast<std::size_t>(got));
        for (;;) {
            auto frame = peer.parser.next();
            if (!frame) {
                fail(id, frame.error());
                return;
            }
            if (!*frame)
                break;
            if (auto error = handle(id, **frame)) {
                fail(id, *error);
                return;
            }
            found = m_peers.find(id);
            if (found == m_peers.end() || found->second->isClosing)
                return; // the handler dropped the peer
        }
    }
}

std::optional<Error> RankServer::handle(PeerId id, const wire::Frame& frame)
{
    Peer& peer = *m_peers.at(id);
    const auto wrong = [&](const char* when) {
        return Error{Error::Kind::Protocol, "E-RUN-011",
                     fmt::format("a {} frame came {}.", wire::frameTypeName(frame.type), when)};
    };
    if (!peer.handshake.isDone()) {
        if (frame.type != wire::FrameType::Proof)
            return wrong("before the proof");
        auto answer = peer.handshake.onProof(frame.payload);
        if (!answer)
            return answer.error();
        write(peer, wire::FrameType::Proof, *answer);
        peer.parser.setAuthenticated();
        return std::nullopt;
    }
    const auto pass = [&]<typename Message>(auto handler) -> std::optional<Error> {
        auto message = wire::decode<Message>(frame.payload);
        if (!message)
            return message.error();
        handler(*message);
        return std::nullopt;
    };
    if (!peer.saidHello) {
        if (frame.type != wire::FrameType::Hello)
            return wrong("before the hello");
        return pass.operator()<wire::Hello>([&](const wire::Hello& hello) {
            peer.saidHello = true;
            const wire::Claim& claim = peer.handshake.claim();
            if (hello.rank != claim.rank || hello.group != claim.group ||
                hello.generation != claim.generation) {
                refuse(id, "E-RUN-012", "the hello names another rank than the proof.");
                m_handler.onTurnedAway("a hello that differs from its proof");
                return;
            }
            m_handler.onHello(id, hello);
        });
    }
    switch (frame.type) {
    case wire::FrameType::Outputs: {
        auto block = wire::decodeBlock(frame.payload);
        if (!block)
            return block.error();
        m_handler.onOutputs(id, std::move(*block));
        return std::nullopt;
    }
    case wire::FrameType::Heartbeat:
        return pass.operator()<wire::Heartbeat>(
            [&](const auto& message) { m_handler.onHeartbeat(id, message); });
    case wire::FrameType::Ready:
        return pass.operator()<wire::Ready>(
            [&](const auto& message) { m_handler.onReady(id, message); });
    case wire::FrameType::Stats:
        return pass.operator()<wire::Stats>(
            [&](const auto& message) { m_handler.onStats(id, message); });
    case wire::FrameType::Log:
        return pass.operator()<wire::Log>(
            [&](const auto& message) { m_handler.onLog(id, message); });
    case wire::FrameType::Bye:
        return pass.operator()<wire::Bye>(
            [&](const auto& message) { m_handler.onBye(id, message); });
    default:
        return wrong("from a rank");
    }
}

void RankServer::fail(PeerId id, const Error& error)
{
    const auto found = m_peers.find(id);
    if (found == m_peers.end())
        return;
    const bool isKnown = found->second->saidHello;
    if (!isKnown) {
        // The same visible answer for every way to fail before the proof.
        if (!found->second->handshake.isDone())
            refuse(id, "E-RUN-013", "not authenticated.");
        retire(id);
        m_handler.onTurnedAway(error.text());
        return;
    }
    retire(id);
    m_handler.onGone(id, error);
}

void RankServer::disconnected(PeerId id)
{
    read(id);
    const auto found = m_peers.find(id);
    if (found == m_peers.end())
        return;
    const bool isKnown = found->second->saidHello && !found->second->isClosing;
    std::optional<Error> fault;
    if (const Status end = found->second->parser.finish(); !end)
        fault = end.error();
    retire(id);
    if (isKnown)
        m_handler.onGone(id, fault);
}

void RankServer::expire()
{
    const std::int64_t now = monotonicNs();
    std::vector<PeerId> late;
    for (const auto& [id, peer] : m_peers)
        if (!peer->handshake.isDone() && now - peer->sinceNs > proofLimitNs)
            late.push_back(id);
    for (const PeerId id : late) {
        retire(id);
        m_handler.onTurnedAway("no proof within 5 s");
    }
}

} // namespace muster::run
