// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "wire/frame.h"
#include "wire/handshake.h"
#include "wire/message.h"
#include "wire/output.h"

#include <QElapsedTimer>
#include <QLocalServer>
#include <QLocalSocket>
#include <QObject>
#include <QTimer>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace muster::run {

/// Number of a connection, never used twice.
using PeerId = std::uint64_t;

/// What a rank's connection reports. Called on the server's thread; may send, refuse and close.
class RankServerHandler {
public:
    virtual ~RankServerHandler() = default;
    RankServerHandler() = default;
    RankServerHandler(const RankServerHandler&) = delete;
    RankServerHandler& operator=(const RankServerHandler&) = delete;

    /// The peer proved the key and says who it is. Its claim in the proof equals the hello.
    virtual void onHello(PeerId peer, const wire::Hello& hello) = 0;
    virtual void onReady(PeerId peer, const wire::Ready& ready) = 0;
    virtual void onOutputs(PeerId peer, wire::OutputBlock block) = 0;
    virtual void onHeartbeat(PeerId peer, const wire::Heartbeat& heartbeat) = 0;
    virtual void onStats(PeerId peer, const wire::Stats& stats) = 0;
    virtual void onLog(PeerId peer, const wire::Log& log) = 0;
    virtual void onBye(PeerId peer, const wire::Bye& bye) = 0;
    /// The connection of a peer that had said hello is gone. `fault` is set when its bytes broke
    /// the protocol (a damaged frame, a wrong message).
    virtual void onGone(PeerId peer, const std::optional<Error>& fault) = 0;
    /// A peer that never proved itself was turned away: for the security log.
    virtual void onTurnedAway(const std::string& why) = 0;
};

/// The controller's end of the ranks' sockets: accepts on a Unix socket in a private folder, checks
/// the peer's user, makes it prove the key, cuts frames and decodes messages.
///
/// Lives on one thread with an event loop. Before the proof a connection has 5 s and 64 KiB; at
/// most 2 × expected + 8 connections may wait for it.
class RankServer final : public QObject {
    Q_OBJECT

public:
    struct Options {
        std::filesystem::path socketPath; ///< at most 107 bytes; the folder is private (0700)
        std::uint64_t runTag = 0;
        wire::Key key; ///< of the run; each launch proves with one derived from it
        std::uint32_t expectedRanks = 1;
    };

    RankServer(Options options, RankServerHandler& handler, QObject* parent = nullptr);
    ~RankServer() override;

    /// Error: Io (`E-RUN-010`) when the socket cannot be made.
    [[nodiscard]] Status listen();
    void close();

    /// Only ranks of this launch may prove themselves from now on, beside those already connected.
    void setGeneration(std::uint32_t generation) { m_generation = generation; }

    void send(PeerId peer, wire::FrameType type, std::span<const std::byte> payload);
    template <typename Message>
    void send(PeerId peer, wire::FrameType type, const Message& message)
    {
        const std::vector<std::byte> payload = wire::encode(message);
        send(peer, type, std::span<const std::byte>(payload));
    }
    /// Tells the peer why and closes after the bytes have left. No onGone() follows.
    void refuse(PeerId peer, const std::string& code, const std::string& text);
    /// Closes at once. No onGone() follows.
    void drop(PeerId peer);

    /// Nanoseconds of monotonicNs() when the peer was last heard; 0 when it is unknown.
    [[nodiscard]] std::int64_t lastHeardNs(PeerId peer) const;
    [[nodiscard]] std::uint64_t bytesIn() const { return m_bytesIn; }
    [[nodiscard]] std::uint64_t bytesOut() const { return m_bytesOut; }

private:
    struct Peer;

    void accept();
    void read(PeerId id);
    void disconnected(PeerId id);
    void expire();
    [[nodiscard]] std::optional<Error> handle(PeerId id, const wire::Frame& frame);
    void fail(PeerId id, const Error& error);
    void retire(PeerId id);
    void write(Peer& peer, wire::FrameType type, std::span<const std::byte> payload);

    Options m_options;
    RankServerHandler& m_handler;
    QLocalServer m_server;
    QTimer m_expiry;
    std::uint32_t m_generation = 0;
    std::unordered_map<PeerId, std::unique_ptr<Peer>> m_peers;
    PeerId m_nextPeer = 1;
    std::uint64_t m_bytesIn = 0;
    std::uint64_t m_bytesOut = 0;
};

} // namespace muster::run
