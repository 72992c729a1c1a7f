// SPDX-License-Identifier: Apache-2.0
#include "connection.h"

#include "base/clock.h"
#include "process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace muster::rank {

using eval::Pulled;
using wire::FrameType;

namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t firstBackoffNs = 20 * ms;
constexpr std::int64_t maxBackoffNs = 1000 * ms;
constexpr std::int64_t steadyNs = 5000 * ms; ///< a connection this old resets the back-off
constexpr std::int64_t handshakeLimitNs = 10000 * ms;
constexpr std::int64_t graceBeforeConfigNs = 10000 * ms;
constexpr std::int64_t heartbeatBeforeConfigNs = 1000 * ms;
constexpr std::int64_t termFlushNs = 400 * ms;
constexpr std::size_t maxUnackedBytes = std::size_t{64} << 20U;
constexpr std::size_t sendAheadBytes = std::size_t{1} << 20U;
constexpr std::size_t readBytes = std::size_t{256} << 10U;

Error unexpected(FrameType type)
{
    return {Error::Kind::Protocol, "E-RANK-002",
            "a " + std::string(wire::frameTypeName(type)) + " frame came out of turn"};
}

} // namespace

Connection::Connection(Endpoint endpoint, wire::Hello hello, const eval::Progress& progress)
    : m_endpoint(std::move(endpoint)), m_hello(std::move(hello)), m_progress(progress)
{
}

Connection::~Connection()
{
    {
        const std::scoped_lock lock(m_mutex);
        m_isQuitting = true;
    }
    wake();
    if (m_thread.joinable())
        m_thread.join();
    for (const int fd : {m_fd, m_wakeFd, m_signalFd}) {
        if (fd >= 0)
            ::close(fd);
    }
}

void Connection::start()
{
    m_wakeFd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, SIGTERM);
    m_signalFd = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    m_lastJoinedNs = monotonicNs();
    m_thread = std::thread([this] { run(); });
}

void Connection::wake() const
{
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(m_wakeFd, &one, sizeof(one));
}

Status Connection::stopped() const
{
    if (m_refusal)
        return fail(Error::Kind::Launch, m_refusal->code, m_refusal->text);
    return fail(Error::Kind::Cancelled, "E-RANK-003", "the controller ended the run");
}

Result<wire::RankConfig> Connection::waitForConfig()
{
    std::unique_lock lock(m_mutex);
    m_changed.wait(lock, [this] { return m_config || m_stop.stop_requested(); });
    if (m_stop.stop_requested())
        return fail(stopped().error());
    return *m_config;
}

void Connection::ready(wire::Ready ready, eval::Inject inject)
{
    {
        const std::scoped_lock lock(m_mutex);
        m_ready = std::move(ready);
        m_inject = std::move(inject);
    }
    wake();
}

Pulled Connection::next(const std::stop_token& stop, std::chrono::milliseconds limit)
{
    std::unique_lock lock(m_mutex);
    const auto hasNews = [this, &stop] {
        return !m_units.empty() || m_isDrained || stop.stop_requested() || m_stop.stop_requested();
    };
    if (limit.count() > 0)
        m_changed.wait_for(lock, limit, hasNews);
    if (stop.stop_requested() || m_stop.stop_requested())
        return {Pulled::State::Stopped};
    if (!m_units.empty()) {
        Pulled pulled{Pulled::State::Unit, std::move(m_units.front())};
        m_units.pop_front();
        m_inHand.emplace(pulled.unit->id.value, pulled.unit->attempt);
        return pulled;
    }
    return {m_isDrained ? Pulled::State::Drained : Pulled::State::Empty};
}

Status Connection::deliver(wire::OutputBlock block)
{
    const UnitKey key{block.unit.value, block.attempt};
    auto parts = wire::splitBlock(std::move(block), wire::maxFrameBytes);
    if (!parts)
        return fail(parts.error());
    std::vector<std::shared_ptr<Message>> messages;
    for (const wire::OutputBlock& part : *parts) {
        auto message = std::make_shared<Message>();
        message->type = FrameType::Outputs;
        message->payload = encodeBlock(part);
        message->unit = key;
        messages.push_back(std::move(message));
    }
    std::unique_lock lock(m_mutex);
    if (m_unackedBytes > maxUnackedBytes) {
        wake();
        m_changed.wait(
            lock, [this] { return m_unackedBytes <= maxUnackedBytes || m_stop.stop_requested(); });
    }
    if (m_stop.stop_requested())
        return stopped();
    m_inHand.erase(key);
    m_isFlushed = false;
    for (auto& message : messages) {
        message->order = m_order++;
        m_unackedBytes += message->payload.size();
        m_unacked[key].push_back(message);
        m_toSend.push_back(std::move(message));
    }
    return {};
}

Result<bool> Connection::turn(eval::Supply)
{
    bool hasWork = false;
    {
        const std::scoped_lock lock(m_mutex);
        hasWork = !m_toSend.empty();
    }
    if (hasWork)
        wake();
    return true;
}

Status Connection::waitForAcks()
{
    wake();
    std::unique_lock lock(m_mutex);
    m_changed.wait(lock, [this] { return m_unacked.empty() || m_stop.stop_requested(); });
    if (m_stop.stop_requested())
        return stopped();
    return {};
}

Status Connection::finish(const wire::Stats& stats)
{
    std::unique_lock lock(m_mutex);
    m_final.push_back({FrameType::Stats, encode(stats), {}, 0});
    m_final.push_back({FrameType::Bye, encode(wire::Bye{"done"}), {}, 0});
    wake();
    m_changed.wait(lock, [this] { return m_isOver || m_stop.stop_requested(); });
    if (!m_isOver)
        return stopped();
    return {};
}

void Connection::log(wire::LogLevel level, const std::string& text)
{
    say(m_hello.rank, text);
    {
        const std::scoped_lock lock(m_mutex);
        m_control.push_back({FrameType::Log, encode(wire::Log{level, text}), {}, 0});
        m_isFlushed = false;
    }
    wake();
}

void Connection::flush(std::chrono::milliseconds limit)
{
    wake();
    std::unique_lock lock(m_mutex);
    m_changed.wait_for(lock, limit, [this] { return m_isFlushed; });
}

std::uint64_t Connection::bytesOut() const
{
    const std::scoped_lock lock(m_mutex);
    return m_bytesOut;
}

std::optional<wire::Refuse> Connection::refusal() const
{
    const std::scoped_lock lock(m_mutex);
    return m_refusal;
}

void Connection::leave(int code, const std::string& why)
{
    say(m_hello.rank, why);
    ::_exit(code);
}

void Connection::leaveAtSigterm()
{
    const std::int64_t until = monotonicNs() + termFlushNs;
    while (m_fd >= 0 && monotonicNs() < until) {
        fill();
        if (m_outAt == m_out.size())
            break;
        pollfd out{m_fd, POLLOUT, 0};
        ::poll(&out, 1, 50);
        send();
    }
    leave(128 + SIGTERM, "ended by SIGTERM");
}

void Connection::run()
{
    std::int64_t nextCheckNs = 0;
    for (;;) {
        std::int64_t now = monotonicNs();
        std::int64_t graceNs = graceBeforeConfigNs;
        bool isOver = false;
        {
            const std::scoped_lock lock(m_mutex);
            if (m_isQuitting)
                return;
            if (m_config)
                graceNs = std::int64_t{m_config->graceMs} * ms;
            isOver = m_isOver || m_stop.stop_requested();
        }
        if (now >= nextCheckNs) {
            if (m_endpoint.parent != 0 && ::getppid() != m_endpoint.parent)
                leave(1, "the launcher is gone");
            nextCheckNs = now + heartbeatBeforeConfigNs;
        }
        const bool isJoined = m_stage == Stage::Joined || m_stage == Stage::Serving;
        if (isJoined)
            m_lastJoinedNs = now;
        else if (!isOver && now - m_lastJoinedNs > graceNs)
            leave(1, "the controller stayed away for " + std::to_string(graceNs / ms) + " ms");
        if (m_fd < 0 && !isOver && now >= m_nextAttemptNs)
            connect(now);
        if (m_fd >= 0 && !isJoined && now - m_connectedNs > handshakeLimitNs)
            disconnect("the controller does not answer");
        if (isJoined && now >= m_nextHeartbeatNs)
            heartbeat();
        if (m_fd >= 0) {
            fill();
            send();
        }

        now = monotonicNs();
        std::int64_t wakeNs = nextCheckNs;
        if (m_fd < 0)
            wakeNs = std::min(wakeNs, m_nextAttemptNs);
        if (isJoined)
            wakeNs = std::min(wakeNs, m_nextHeartbeatNs);
        std::array<pollfd, 3> fds{{{m_wakeFd, POLLIN, 0}, {m_signalFd, POLLIN, 0}, {m_fd, 0, 0}}};
        if (m_fd >= 0) {
            fds[2].events = static_cast<short>(POLLIN | (m_outAt < m_out.size() ? POLLOUT : 0));
        }
        const std::int64_t waitMs = std::clamp<std::int64_t>((wakeNs - now) / ms + 1, 0, 1000);
        ::poll(fds.data(), m_fd >= 0 ? 3 : 2, static_cast<int>(waitMs));
        if ((fds[1].revents & POLLIN) != 0)
            leaveAtSigterm();
        if ((fds[0].revents & POLLIN) != 0) {
            std::uint64_t count = 0;
            [[maybe_unused]] const ssize_t got = ::read(m_wakeFd, &count, sizeof(count));
        }
        if (m_fd >= 0 && (fds[2].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
            receive();
    }
}

void Connection::connect(std::int64_t now)
{
    m_backoffNs = std::clamp(m_backoffNs * 2, firstBackoffNs, maxBackoffNs);
    m_nextAttemptNs = now + m_backoffNs;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string& path = m_endpoint.socket.native();
    if (path.size() >= sizeof(address.sun_path))
        leave(2, "the path of the socket is too long");
    std::memcpy(address.sun_path, path.c_str(), path.size());
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    const auto* plain = static_cast<const sockaddr*>(static_cast<const void*>(&address));
    if (::connect(fd, plain, sizeof(address)) != 0) {
        ::close(fd);
        return;
    }
    m_fd = fd;
    m_stage = Stage::Challenged;
    m_connectedNs = now;
    m_parser = std::make_unique<wire::FrameParser>(m_endpoint.runTag);
    m_handshake.emplace(m_endpoint.key, m_endpoint.claim);
    m_out.clear();
    m_outAt = 0;
    m_sequence = 0;
    m_closesAfterSend = false;
}

void Connection::disconnect(const std::string& why)
{
    if (m_fd < 0)
        return;
    ::close(m_fd);
    m_fd = -1;
    m_stage = Stage::Away;
    const std::int64_t now = monotonicNs();
    if (now - m_connectedNs > steadyNs)
        m_backoffNs = 0;
    m_nextAttemptNs = std::max(m_nextAttemptNs, now + firstBackoffNs);
    bool isExpected = false;
    {
        const std::scoped_lock lock(m_mutex);
        // Everything that was not acknowledged goes out again, in the order in which it came.
        m_toSend.clear();
        for (const auto& [unit, messages] : m_unacked)
            m_toSend.insert(m_toSend.end(), messages.begin(), messages.end());
        std::ranges::sort(m_toSend, {}, [](const auto& message) { return message->order; });
        isExpected = m_isFinalSent || m_stop.stop_requested();
        if (m_isFinalSent)
            m_isOver = true;
    }
    m_changed.notify_all();
    if (!isExpected)
        say(m_hello.rank, "lost the controller: " + why);
}

void Connection::receive()
{
    for (;;) {
        const auto space = m_parser->space(readBytes);
        const ssize_t got = ::recv(m_fd, space.data(), space.size(), 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (got <= 0)
            return disconnect(got == 0 ? "it closed the connection" : std::strerror(errno));
        m_parser->filled(static_cast<std::size_t>(got));
        for (;;) {
            const auto frame = m_parser->next();
            if (!frame)
                return disconnect(frame.error().text());
            if (!*frame)
                break;
            if (const Status handled = handle(**frame); !handled)
                return disconnect(handled.error().text());
            if (m_fd < 0)
                return;
        }
        if (static_cast<std::size_t>(got) < space.size())
            return;
    }
}

Status Connection::handle(const wire::Frame& frame)
{
    switch (m_stage) {
    case Stage::Away:
        return {};
    case Stage::Challenged: {
        if (frame.type != FrameType::Challenge)
            break;
        auto proof = m_handshake->onChallenge(frame.payload);
        if (!proof)
            return fail(proof.error());
        m_stage = Stage::Proving;
        appendNow(FrameType::Proof, *proof);
        return {};
    }
    case Stage::Proving: {
        if (frame.type != FrameType::Proof)
            break;
        if (Status proved = m_handshake->onProof(frame.payload); !proved)
            return proved;
        m_parser->setAuthenticated();
        m_stage = Stage::Joined;
        m_hello.connection = m_connections++;
        m_hello.holding.clear();
        {
            const std::scoped_lock lock(m_mutex);
            for (const auto& [unit, messages] : m_unacked)
                m_hello.holding.push_back(unit.first);
            for (const wire::Unit& unit : m_units)
                m_hello.holding.push_back(unit.id.value);
            for (const UnitKey& unit : m_inHand)
                m_hello.holding.push_back(unit.first);
        }
        appendNow(FrameType::Hello, encode(m_hello));
        m_nextHeartbeatNs = monotonicNs();
        return {};
    }
    case Stage::Joined:
    case Stage::Serving:
        return handleJoined(frame);
    }
    if (frame.type == FrameType::Refuse) {
        const auto refuse = wire::decode<wire::Refuse>(frame.payload);
        if (!refuse)
            return fail(refuse.error());
        {
            const std::scoped_lock lock(m_mutex);
            m_refusal = *refuse;
        }
        m_stop.request_stop();
        m_changed.notify_all();
        return {};
    }
    return fail(unexpected(frame.type));
}

Status Connection::handleJoined(const wire::Frame& frame)
{
    switch (frame.type) {
    case FrameType::Config: {
        auto config = wire::decode<wire::RankConfig>(frame.payload);
        if (!config)
            return fail(config.error());
        {
            const std::scoped_lock lock(m_mutex);
            if (!m_config)
                m_config = *std::move(config);
            else if (!(*m_config == *config))
                return fail(Error::Kind::Protocol, "E-RANK-004",
                            "the controller changed the configuration of a running rank");
        }
        m_stage = Stage::Serving;
        m_changed.notify_all();
        serve();
        return {};
    }
    case FrameType::Refuse: {
        const auto refuse = wire::decode<wire::Refuse>(frame.payload);
        if (!refuse)
            return fail(refuse.error());
        {
            const std::scoped_lock lock(m_mutex);
            m_refusal = *refuse;
        }
        m_stop.request_stop();
        m_changed.notify_all();
        return {};
    }
    case FrameType::Unit: {
        auto unit = wire::decodeUnit(frame.payload);
        if (!unit)
            return fail(unit.error());
        const UnitKey key{unit->id.value, unit->attempt};
        {
            const std::scoped_lock lock(m_mutex);
            const bool isHeld = m_unacked.contains(key) || m_inHand.contains(key) ||
                                std::ranges::any_of(m_units, [&key](const wire::Unit& held) {
                                    return held.id.value == key.first && held.attempt == key.second;
                                });
            if (!isHeld)
                m_units.push_back(*std::move(unit));
        }
        m_changed.notify_all();
        return {};
    }
    case FrameType::Ack: {
        const auto ack = wire::decode<wire::Ack>(frame.payload);
        if (!ack)
            return fail(ack.error());
        const UnitKey key{ack->unit.value, ack->attempt};
        {
            const std::scoped_lock lock(m_mutex);
            if (const auto at = m_unacked.find(key); at != m_unacked.end()) {
                for (const auto& message : at->second)
                    m_unackedBytes -= message->payload.size();
                m_unacked.erase(at);
                std::erase_if(m_toSend, [&key](const auto& m) { return m->unit == key; });
            }
            // Somebody else was faster: not needed any more.
            std::erase_if(m_units, [&key](const wire::Unit& unit) {
                return unit.id.value == key.first && unit.attempt == key.second;
            });
        }
        m_changed.notify_all();
        return {};
    }
    case FrameType::Drain: {
        if (const auto drain = wire::decode<wire::Drain>(frame.payload); !drain)
            return fail(drain.error());
        {
            const std::scoped_lock lock(m_mutex);
            m_isDrained = true;
        }
        m_changed.notify_all();
        return {};
    }
    case FrameType::Cancel: {
        const auto cancel = wire::decode<wire::Cancel>(frame.payload);
        if (!cancel)
            return fail(cancel.error());
        if (cancel->mode == wire::CancelMode::Now)
            leave(0, "cancelled: " + cancel->reason);
        {
            const std::scoped_lock lock(m_mutex);
            m_units.clear();
            m_isDrained = true;
        }
        m_changed.notify_all();
        return {};
    }
    case FrameType::Bye: {
        if (const auto bye = wire::decode<wire::Bye>(frame.payload); !bye)
            return fail(bye.error());
        {
            const std::scoped_lock lock(m_mutex);
            if (m_isFinalSent)
                m_isOver = true;
        }
        m_stop.request_stop();
        m_changed.notify_all();
        return {};
    }
    default:
        return fail(unexpected(frame.type));
    }
}

void Connection::serve()
{
    std::optional<wire::Ready> ready;
    {
        const std::scoped_lock lock(m_mutex);
        ready = m_ready;
    }
    if (ready && m_readyOn != m_connections) {
        m_readyOn = m_connections;
        appendNow(FrameType::Ready, encode(*ready));
    }
}

void Connection::appendNow(FrameType type, const std::vector<std::byte>& payload)
{
    appendFrame(m_out, type, payload, ++m_sequence, m_endpoint.runTag);
}

void Connection::append(const Message& message)
{
    const std::size_t at = m_out.size();
    appendNow(message.type, message.payload);
    if (message.type != FrameType::Outputs)
        return;
    m_bytesOut += m_out.size() - at;
    switch (m_inject.frameFault(UnitId(message.unit.first))) {
    case eval::Inject::Fault::FlippedBit:
        m_out.back() ^= std::byte{1};
        break;
    case eval::Inject::Fault::TruncatedFrame:
        m_out.resize(at + (m_out.size() - at) / 2);
        m_closesAfterSend = true;
        break;
    default:
        break;
    }
}

void Connection::fill()
{
    const bool isJoined = m_stage == Stage::Joined || m_stage == Stage::Serving;
    if (!isJoined || m_closesAfterSend)
        return;
    if (m_stage == Stage::Serving)
        serve();
    const std::scoped_lock lock(m_mutex);
    const auto hasRoom = [this] { return m_out.size() - m_outAt < sendAheadBytes; };
    while (!m_control.empty() && hasRoom()) {
        append(m_control.front());
        m_control.pop_front();
    }
    if (m_stage != Stage::Serving || !m_ready)
        return;
    while (!m_toSend.empty() && hasRoom() && !m_closesAfterSend) {
        append(*m_toSend.front());
        m_toSend.pop_front();
    }
    if (!m_final.empty() && m_toSend.empty() && m_unacked.empty() && m_finalOn != m_connections) {
        m_finalOn = m_connections;
        for (const Message& message : m_final)
            append(message);
    }
}

void Connection::send()
{
    while (m_fd >= 0 && m_outAt < m_out.size()) {
        const ssize_t put =
            ::send(m_fd, m_out.data() + m_outAt, m_out.size() - m_outAt, MSG_NOSIGNAL);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (put <= 0)
            return disconnect(std::strerror(errno));
        m_outAt += static_cast<std::size_t>(put);
        if (m_outAt == m_out.size()) {
            m_out.clear();
            m_outAt = 0;
            if (m_closesAfterSend)
                return disconnect("a frame was cut off on purpose");
            fill();
        }
    }
    if (m_fd >= 0 && m_outAt == m_out.size()) {
        {
            const std::scoped_lock lock(m_mutex);
            m_isFlushed = m_control.empty() && m_toSend.empty();
            m_isFinalSent = m_isFinalSent || (m_finalOn > 0 && m_finalOn == m_connections);
        }
        m_changed.notify_all();
    }
    if (m_outAt > sendAheadBytes) {
        m_out.erase(m_out.begin(), m_out.begin() + static_cast<std::ptrdiff_t>(m_outAt));
        m_outAt = 0;
    }
}

void Connection::heartbeat()
{
    const std::int64_t now = monotonicNs();
    std::int64_t everyNs = heartbeatBeforeConfigNs;
    {
        const std::scoped_lock lock(m_mutex);
        if (m_config)
            everyNs = std::int64_t{m_config->heartbeatMs} * ms;
    }
    m_nextHeartbeatNs = now + everyNs;
    // A controller that does not read gets no pile of old heartbeats.
    if (m_out.size() - m_outAt > sendAheadBytes)
        return;
    const eval::Progress::Snapshot snapshot = m_progress.snapshot();
    wire::Heartbeat message;
    message.phase = snapshot.phase;
    message.unit = snapshot.unit;
    message.doneUnits = snapshot.doneUnits;
    message.rssBytes = residentBytes();
    message.memoryLimitBytes = memoryLimitBytes();
    message.monotonicNs = now;
    message.times = snapshot.times;
    appendNow(FrameType::Heartbeat, encode(message));
}

} // namespace muster::rank
