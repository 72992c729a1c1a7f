// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "eval/flow.h"
#include "eval/inject.h"
#include "eval/progress.h"
#include "wire/frame.h"
#include "wire/handshake.h"
#include "wire/message.h"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace muster::rank {

/// Where the controller is and how this rank proves itself.
struct Endpoint {
    std::filesystem::path socket;
    wire::Key key;
    std::uint64_t runTag = 0;
    wire::Claim claim;
    pid_t parent = 0; ///< the process ends when it has another parent
};

/// The rank's only line to its controller. Made and used by the main thread as a source of units
/// and a sink of outputs; a thread of its own owns the socket, sends heartbeats while the main
/// thread computes, reconnects, and keeps every output until it is acknowledged.
///
/// On each connection: Hello → (Config) → Ready → what is not yet acknowledged → new outputs. The
/// thread ends the process by itself (`_exit`) when the controller stays away longer than the grace
/// period, when the parent is gone, at SIGTERM (after a short flush), and at Cancel{Now}. It calls
/// neither MPI nor LibTorch.
class Connection final : public eval::UnitSource, public eval::OutputSink {
public:
    Connection(Endpoint endpoint, wire::Hello hello, const eval::Progress& progress);
    ~Connection() override;

    /// Starts the thread. SIGTERM must be blocked in all threads.
    void start();

    /// Waits for the configuration. Errors: Launch with the controller's own code when it refuses;
    /// Cancelled.
    [[nodiscard]] Result<wire::RankConfig> waitForConfig();
    /// Units may come from now on.
    void ready(wire::Ready ready, eval::Inject inject);

    [[nodiscard]] eval::Pulled next(const std::stop_token& stop,
                                    std::chrono::milliseconds limit) override;
    /// Errors: Cancelled; Invalid `E-WIRE-013`. Waits while more than 64 MiB are not acknowledged.
    [[nodiscard]] Status deliver(wire::OutputBlock block) override;
    [[nodiscard]] Result<bool> turn(eval::Supply supply) override;

    /// Waits until everything is acknowledged.
    [[nodiscard]] Status waitForAcks();
    /// Says Stats and Bye and waits for the controller's Bye, or its end of the connection.
    [[nodiscard]] Status finish(const wire::Stats& stats);

    /// One line on standard error and the same as a Log message.
    void log(wire::LogLevel level, const std::string& text);
    /// Gives the thread a moment to send what waits, before the process ends after an error.
    void flush(std::chrono::milliseconds limit);

    [[nodiscard]] std::stop_token stopToken() const { return m_stop.get_token(); }
    /// Bytes of outputs that were handed to the socket, headers included.
    [[nodiscard]] std::uint64_t bytesOut() const;
    /// What the controller said when it sent this rank away.
    [[nodiscard]] std::optional<wire::Refuse> refusal() const;

private:
    using UnitKey = std::pair<std::uint64_t, std::uint32_t>; ///< unit and attempt
    struct Message {
        wire::FrameType type = wire::FrameType::Log;
        std::vector<std::byte> payload;
        UnitKey unit{};
        std::uint64_t order = 0;
    };
    enum class Stage { Away, Challenged, Proving, Joined, Serving };

    void run();
    void connect(std::int64_t now);
    void disconnect(const std::string& why);
    void receive();
    [[nodiscard]] Status handle(const wire::Frame& frame);
    [[nodiscard]] Status handleJoined(const wire::Frame& frame);
    void fill();
    void send();
    void append(const Message& message);
    void appendNow(wire::FrameType type, const std::vector<std::byte>& payload);
    void heartbeat();
    void serve();
    void wake() const;
    [[noreturn]] void leave(int code, const std::string& why);
    void leaveAtSigterm();
    [[nodiscard]] Status stopped() const;

    const Endpoint m_endpoint;
    wire::Hello m_hello;
    const eval::Progress& m_progress;
    std::stop_source m_stop;
    int m_wakeFd = -1;
    int m_signalFd = -1;

    // Shared between the two threads, under m_mutex.
    mutable std::mutex m_mutex;
    std::condition_variable m_changed;
    std::optional<wire::RankConfig> m_config;
    std::optional<wire::Ready> m_ready;
    std::optional<wire::Refuse> m_refusal;
    eval::Inject m_inject;
    std::deque<wire::Unit> m_units;
    std::set<UnitKey> m_inHand; ///< given to the main thread, outputs not yet delivered
    bool m_isDrained = false;
    bool m_isQuitting = false;
    bool m_isFinalSent = false;
    bool m_isFlushed = true; ///< nothing waits and everything was written
    bool m_isOver = false;   ///< the controller said Bye, or closed after ours
    std::deque<std::shared_ptr<Message>> m_toSend;
    std::map<UnitKey, std::vector<std::shared_ptr<Message>>> m_unacked;
    std::size_t m_unackedBytes = 0;
    std::deque<Message> m_control;
    std::vector<Message> m_final;
    std::uint64_t m_order = 0;
    std::uint64_t m_bytesOut = 0;

    // The thread's own.
    int m_fd = -1;
    Stage m_stage = Stage::Away;
    std::unique_ptr<wire::FrameParser> m_parser;
    std::optional<wire::RankHandshake> m_handshake;
    std::vector<std::byte> m_out;
    std::size_t m_outAt = 0;
    std::uint64_t m_sequence = 0;
    std::uint32_t m_connections = 0;
    std::int64_t m_connectedNs = 0;
    std::int64_t m_lastJoinedNs = 0;
    std::int64_t m_nextAttemptNs = 0;
    std::int64_t m_backoffNs = 0;
    std::int64_t m_nextHeartbeatNs = 0;
    bool m_closesAfterSend = false;
    std::uint32_t m_readyOn = 0; ///< number of the connection on which Ready was said
    std::uint32_t m_finalOn = 0; ///< and Stats and Bye

    std::thread m_thread;
};

} // namespace muster::rank
