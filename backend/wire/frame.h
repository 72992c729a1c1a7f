// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace muster::wire {

/// The bytes "MSTR" at the start of each frame, read as a little-endian number.
inline constexpr std::uint32_t frameMagic = 0x5254534DU;
/// Peers of different major versions refuse each other; the smaller minor version counts.
inline constexpr std::uint16_t protocolMajor = 1;
inline constexpr std::uint16_t protocolMinor = 0;
inline constexpr std::uint16_t protocolVersion = (protocolMajor << 8U) | protocolMinor;

inline constexpr std::size_t frameHeaderBytes = 32;
/// Limit of a payload after authentication, and before it.
inline constexpr std::size_t maxFrameBytes = std::size_t{4} << 20U;
inline constexpr std::size_t maxFrameBytesBeforeProof = std::size_t{64} << 10U;

/// What a frame carries. Challenge, Proof and Refuse are the only types before authentication.
enum class FrameType : std::uint16_t {
    Challenge = 1, ///< controller → rank: its nonce (handshake.h)
    Proof = 2,     ///< both directions: who holds the key (handshake.h)
    Hello = 3,     ///< rank → controller: who it is (message.h)
    Config = 4,    ///< controller → rank: what to load (message.h)
    Refuse = 5,    ///< controller → rank: why the rank is sent away (message.h)
    Unit = 6,      ///< controller → rank: encodeUnit()
    Outputs = 7,   ///< rank → controller: encodeBlock()
    Ack = 8,       ///< controller → rank: a unit's outputs are on disk (message.h)
    Heartbeat = 9, ///< rank → controller (message.h)
    Stats = 10,    ///< rank → controller (message.h)
    Log = 11,      ///< rank → controller (message.h)
    Cancel = 12,   ///< controller → rank (message.h)
    Bye = 13,      ///< both directions: the last frame (message.h)
    Drain = 14,    ///< controller → rank: no more units are coming (message.h)
    Ready = 15,    ///< rank → controller: the model is loaded (message.h)
};

/// `Hello`, `Config` … ; `unknown` for a number without a name.
[[nodiscard]] std::string_view frameTypeName(FrameType type);

/// One frame as it stands in the parser's buffer.
struct Frame {
    FrameType type = FrameType::Bye;
    std::uint16_t version = protocolVersion; ///< of the peer; major equal, minor may differ
    std::uint64_t sequence = 0;
    std::span<const std::byte> payload; ///< borrowed until the parser's next feed() or space()
};

/// Header and payload, ready to be sent:
/// {u32 magic, u16 version, u16 type, u32 payload bytes, u32 CRC-32C of the payload, u64 sequence,
/// u64 run tag}, little endian.
///
/// \param payload   at most maxFrameBytes; more is a programmer's error (asserted), because what
///                  may be larger is split before (splitBlock(), planning).
/// \param sequence  rises from frame to frame of one direction of one connection.
[[nodiscard]] std::vector<std::byte> encodeFrame(FrameType type, std::span<const std::byte> payload,
                                                 std::uint64_t sequence, std::uint64_t runTag);
/// The same, appended to a buffer that several frames share.
void appendFrame(std::vector<std::byte>& to, FrameType type, std::span<const std::byte> payload,
                 std::uint64_t sequence, std::uint64_t runTag);

/// Cuts a stream of bytes from a peer into frames. One for each connection, on any one thread.
///
/// Bytes come in through feed(), or without a copy through space() and filled(). After the first
/// error the parser stays failed: the connection is to be closed. The buffer never grows beyond one
/// frame plus what was fed at once, and not at all for a frame that the header already condemns.
///
/// Errors, all of Kind::Protocol: wrong magic `E-WIRE-001`, another major version `E-WIRE-002`, too
/// large `E-WIRE-003`, CRC `E-WIRE-004`, unknown type `E-WIRE-005`, wrong run tag `E-WIRE-006`,
/// sequence not rising `E-WIRE-007`, end of the stream inside a frame `E-WIRE-008`, a type that
/// may not come before authentication `E-WIRE-009`.
class FrameParser final {
public:
    explicit FrameParser(std::uint64_t runTag) : m_runTag(runTag) {}

    /// From now on all types are allowed and the larger limit holds.
    void setAuthenticated() { m_limit = maxFrameBytes; }

    /// Appends bytes that arrived.
    void feed(std::span<const std::byte> bytes);
    /// Room for at least `size` bytes to read into; invalidates earlier frames.
    [[nodiscard]] std::span<std::byte> space(std::size_t size);
    /// `size` bytes were read into space().
    void filled(std::size_t size) { m_end += size; }

    /// The next complete frame, nothing when more bytes are needed, or the error.
    [[nodiscard]] Result<std::optional<Frame>> next();
    /// To be called when the peer has closed: `E-WIRE-008` inside a frame, else the error so far.
    [[nodiscard]] Status finish() const;

    /// Bytes that wait for the rest of their frame.
    [[nodiscard]] std::size_t pending() const { return m_end - m_begin; }

private:
    [[nodiscard]] tl::unexpected<Error> refuse(std::string_view code, std::string message);

    std::uint64_t m_runTag;
    std::size_t m_limit = maxFrameBytesBeforeProof;
    std::vector<std::byte> m_buffer;
    std::size_t m_begin = 0; ///< first byte that is not yet part of a frame handed out
    std::size_t m_end = 0;   ///< end of what was fed
    std::optional<std::uint64_t> m_lastSequence;
    std::optional<Error> m_error;
};

} // namespace muster::wire
