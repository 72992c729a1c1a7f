// SPDX-License-Identifier: Apache-2.0
#include "wire/frame.h"

#include "base/crc32c.h"

#include <cassert>
#include <cstring>
#include <string>

namespace muster::wire {

namespace {

struct Header {
    std::uint32_t magic = frameMagic;
    std::uint16_t version = protocolVersion;
    std::uint16_t type = 0;
    std::uint32_t payloadBytes = 0;
    std::uint32_t crc = 0;
    std::uint64_t sequence = 0;
    std::uint64_t runTag = 0;
};
static_assert(sizeof(Header) == frameHeaderBytes);

std::string versionText(std::uint16_t version)
{
    return std::to_string(version >> 8U) + "." + std::to_string(version & 0xFFU);
}

bool isAllowedBeforeProof(FrameType type)
{
    return type == FrameType::Challenge || type == FrameType::Proof || type == FrameType::Refuse;
}

} // namespace

std::string_view frameTypeName(FrameType type)
{
    switch (type) {
    case FrameType::Challenge:
        return "Challenge";
    case FrameType::Proof:
        return "Proof";
    case FrameType::Hello:
        return "Hello";
    case FrameType::Config:
        return "Config";
    case FrameType::Refuse:
        return "Refuse";
    case FrameType::Unit:
        return "Unit";
    case FrameType::Outputs:
        return "Outputs";
    case FrameType::Ack:
        return "Ack";
    case FrameType::Heartbeat:
        return "Heartbeat";
    case FrameType::Stats:
        return "Stats";
    case FrameType::Log:
        return "Log";
    case FrameType::Cancel:
        return "Cancel";
    case FrameType::Bye:
        return "Bye";
    case FrameType::Drain:
        return "Drain";
    case FrameType::Ready:
        return "Ready";
    }
    return "unknown";
}

void appendFrame(std::vector<std::byte>& to, FrameType type, std::span<const std::byte> payload,
                 std::uint64_t sequence, std::uint64_t runTag)
{
    assert(payload.size() <= maxFrameBytes);
    const Header header{.type = static_cast<std::uint16_t>(type),
                        .payloadBytes = static_cast<std::uint32_t>(payload.size()),
                        .crc = crc32c(payload),
                        .sequence = sequence,
                        .runTag = runTag};
    const auto* from = static_cast<const std::byte*>(static_cast<const void*>(&header));
    to.insert(to.end(), from, from + sizeof(Header));
    to.insert(to.end(), payload.begin(), payload.end());
}

std::vector<std::byte> encodeFrame(FrameType type, std::span<const std::byte> payload,
                                   std::uint64_t sequence, std::uint64_t runTag)
{
    std::vector<std::byte> bytes;
    bytes.reserve(frameHeaderBytes + payload.size());
    appendFrame(bytes, type, payload, sequence, runTag);
    return bytes;
}

std::span<std::byte> FrameParser::space(std::size_t size)
{
    if (m_begin == m_end) {
        m_begin = 0;
        m_end = 0;
    }
    if (m_buffer.size() - m_end < size) {
        if (m_begin > 0) {
            std::memmove(m_buffer.data(), m_buffer.data() + m_begin, pending());
            m_end -= m_begin;
            m_begin = 0;
        }
        if (m_buffer.size() - m_end < size)
            m_buffer.resize(m_end + size);
    }
    return std::span{m_buffer}.subspan(m_end);
}

void FrameParser::feed(std::span<const std::byte> bytes)
{
    if (bytes.empty() || m_error)
        return;
    std::memcpy(space(bytes.size()).data(), bytes.data(), bytes.size());
    filled(bytes.size());
}

tl::unexpected<Error> FrameParser::refuse(std::string_view code, std::string message)
{
    m_error = Error{Error::Kind::Protocol, std::string(code), std::move(message)};
    return fail(*m_error);
}

Result<std::optional<Frame>> FrameParser::next()
{
    if (m_error)
        return fail(*m_error);
    if (pending() < sizeof(Header))
        return std::optional<Frame>{};

    Header header;
    std::memcpy(&header, m_buffer.data() + m_begin, sizeof(Header));
    if (header.magic != frameMagic)
        return refuse("E-WIRE-001", "the peer does not speak Muster's protocol");
    if ((header.version >> 8U) != protocolMajor)
        return refuse("E-WIRE-002", "the peer speaks protocol " + versionText(header.version) +
                                        ", this program speaks " + versionText(protocolVersion) +
                                        "; use programs of the same release");
    const auto type = static_cast<FrameType>(header.type);
    if (header.payloadBytes > m_limit)
        return refuse("E-WIRE-003", "a frame of " + std::to_string(header.payloadBytes) +
                                        " bytes is larger than the limit of " +
                                        std::to_string(m_limit));
    if (frameTypeName(type) == "unknown")
        return refuse("E-WIRE-005", "unknown frame type " + std::to_string(header.type));
    if (header.runTag != m_runTag)
        return refuse("E-WIRE-006", "a frame of another run");
    if (m_limit == maxFrameBytesBeforeProof && !isAllowedBeforeProof(type))
        return refuse("E-WIRE-009", "a frame of type " + std::string(frameTypeName(type)) +
                                        " before the peer proved itself");
    if (m_lastSequence && header.sequence <= *m_lastSequence)
        return refuse("E-WIRE-007", "frame number " + std::to_string(header.sequence) +
                                        " after number " + std::to_string(*m_lastSequence));
    if (pending() - sizeof(Header) < header.payloadBytes)
        return std::optional<Frame>{};

    const auto payload =
        std::span<const std::byte>{m_buffer}.subspan(m_begin + sizeof(Header), header.payloadBytes);
    if (crc32c(payload) != header.crc)
        return refuse("E-WIRE-004",
                      "the checksum of a " + std::string(frameTypeName(type)) + " frame is wrong");
    m_begin += sizeof(Header) + payload.size();
    m_lastSequence = header.sequence;
    return Frame{type, header.version, header.sequence, payload};
}

Status FrameParser::finish() const
{
    if (m_error)
        return fail(*m_error);
    if (pending() > 0)
        return fail(Error::Kind::Protocol, "E-WIRE-008",
                    "the stream ended inside a frame, after " + std::to_string(pending()) +
                        " bytes of it");
    return {};
}

} // namespace muster::wire
