// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "wire/frame.h"
#include "wire/handshake.h"
#include "wire/message.h"
#include "wire/output.h"
#include "wire/unit.h"

#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace muster::test {

/// What came from a rank, copied out of the parser.
struct Message {
    wire::FrameType type = wire::FrameType::Bye;
    std::vector<std::byte> payload;
};

/// The controller's end of one connection; every call has a limit and returns nothing after it.
class FakePeer final {
public:
    FakePeer(int fd, std::uint64_t runTag) : m_fd(fd), m_runTag(runTag), m_parser(runTag) {}
    ~FakePeer() { close(); }
    FakePeer(const FakePeer&) = delete;
    FakePeer& operator=(const FakePeer&) = delete;

    void close()
    {
        if (m_fd >= 0)
            ::close(std::exchange(m_fd, -1));
    }

    void write(wire::FrameType type, std::span<const std::byte> payload)
    {
        const auto bytes = wire::encodeFrame(type, payload, ++m_sequence, m_runTag);
        std::size_t done = 0;
        while (done < bytes.size()) {
            const ssize_t put =
                ::send(m_fd, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
            if (put <= 0)
                return;
            done += static_cast<std::size_t>(put);
        }
    }
    template <typename T>
    void say(wire::FrameType type, const T& message)
    {
        write(type, wire::encode(message));
    }

    std::optional<Message> read(int limitMs = 10000)
    {
        const std::int64_t until = monotonicNs() + std::int64_t{limitMs} * 1'000'000;
        for (;;) {
            const auto next = m_parser.next();
            if (!next) {
                error = next.error().code;
                return std::nullopt;
            }
            if (*next)
                return Message{(*next)->type, {(*next)->payload.begin(), (*next)->payload.end()}};
            const auto left = (until - monotonicNs()) / 1'000'000;
            pollfd in{m_fd, POLLIN, 0};
            if (left <= 0 || ::poll(&in, 1, static_cast<int>(left)) <= 0)
                return std::nullopt;
            const auto space = m_parser.space(1U << 16U);
            const ssize_t got = ::recv(m_fd, space.data(), space.size(), 0);
            if (got <= 0) {
                isClosed = true;
                const Status end = m_parser.finish();
                error = end ? "" : end.error().code;
                return std::nullopt;
            }
            m_parser.filled(static_cast<std::size_t>(got));
        }
    }

    /// The next message of the type; others are counted and skipped.
    std::optional<Message> expect(wire::FrameType type, int limitMs = 10000)
    {
        const std::int64_t until = monotonicNs() + std::int64_t{limitMs} * 1'000'000;
        for (;;) {
            auto message = read(
                static_cast<int>(std::max<std::int64_t>((until - monotonicNs()) / 1'000'000, 0)));
            if (!message || message->type == type)
                return message;
            if (message->type == wire::FrameType::Heartbeat)
                ++heartbeats;
            if (message->type == wire::FrameType::Log)
                logs.push_back(wire::decode<wire::Log>(message->payload)->text);
        }
    }
    template <typename T>
    std::optional<T> expectMessage(wire::FrameType type, int limitMs = 10000)
    {
        const auto message = expect(type, limitMs);
        if (!message)
            return std::nullopt;
        auto decoded = wire::decode<T>(message->payload);
        if (!decoded)
            return std::nullopt;
        return *decoded;
    }
    std::optional<wire::OutputBlock> expectBlock(int limitMs = 10000)
    {
        const auto message = expect(wire::FrameType::Outputs, limitMs);
        if (!message)
            return std::nullopt;
        auto block = wire::decodeBlock(message->payload);
        if (!block)
            return std::nullopt;
        return *block;
    }

    /// Challenge and proof; the Hello, or nothing.
    std::optional<wire::Hello> join(const wire::Key& key)
    {
        wire::ServerHandshake handshake(key);
        write(wire::FrameType::Challenge, handshake.challenge());
        const auto proof = expect(wire::FrameType::Proof);
        if (!proof)
            return std::nullopt;
        const auto answer = handshake.onProof(proof->payload);
        if (!answer)
            return std::nullopt;
        write(wire::FrameType::Proof, *answer);
        m_parser.setAuthenticated();
        claim = handshake.claim();
        return expectMessage<wire::Hello>(wire::FrameType::Hello);
    }

    int heartbeats = 0;
    bool isClosed = false;
    std::string error;
    std::vector<std::string> logs;
    wire::Claim claim;

private:
    int m_fd;
    std::uint64_t m_runTag;
    std::uint64_t m_sequence = 0;
    wire::FrameParser m_parser;
};

/// A listening Unix socket.
class FakeController final {
public:
    FakeController(std::filesystem::path path, std::uint64_t runTag)
        : m_path(std::move(path)), m_runTag(runTag)
    {
        listen();
    }
    ~FakeController() { stopListening(); }
    FakeController(const FakeController&) = delete;
    FakeController& operator=(const FakeController&) = delete;

    void listen()
    {
        m_fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strcpy(address.sun_path, m_path.c_str());
        ::unlink(m_path.c_str());
        isListening =
            ::bind(m_fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
            ::listen(m_fd, 16) == 0;
    }
    void stopListening()
    {
        if (m_fd < 0)
            return;
        ::close(std::exchange(m_fd, -1));
        ::unlink(m_path.c_str());
        isListening = false;
    }

    std::unique_ptr<FakePeer> accept(int limitMs = 20000) const
    {
        pollfd in{m_fd, POLLIN, 0};
        if (::poll(&in, 1, limitMs) <= 0)
            return nullptr;
        const int fd = ::accept4(m_fd, nullptr, nullptr, SOCK_CLOEXEC);
        return fd < 0 ? nullptr : std::make_unique<FakePeer>(fd, m_runTag);
    }

    bool isListening = false;

private:
    std::filesystem::path m_path;
    std::uint64_t m_runTag;
    int m_fd = -1;
};

/// A unit of `items` items with a few tokens each; the items of unit u are u·items … .
inline wire::Unit makeUnit(std::uint64_t id, std::uint64_t items = 3, std::uint32_t attempt = 0)
{
    wire::Unit unit;
    unit.id = UnitId(id);
    unit.attempt = attempt;
    unit.offsets.push_back(0);
    for (std::uint64_t i = 0; i < items; ++i) {
        unit.items.push_back(id * items + i);
        for (std::uint64_t t = 0; t < 4 + i % 3; ++t)
            unit.tokens.push_back(static_cast<std::int32_t>(100 + (id * 7 + i * 3 + t) % 1000));
        unit.offsets.push_back(static_cast<std::uint32_t>(unit.tokens.size()));
    }
    return unit;
}

} // namespace muster::test
