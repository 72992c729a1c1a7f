// SPDX-License-Identifier: Apache-2.0
// The whole of what a peer can send: the stream of frames, and every payload decoder behind it.
#include "base/crc32c.h"
#include "wire/frame.h"
#include "wire/handshake.h"
#include "wire/message.h"
#include "wire/output.h"
#include "wire/unit.h"

#include <cstdlib>
#include <cstring>
#include <vector>

using namespace muster;
using namespace muster::wire;

namespace {

template <typename Message>
void tryMessage(std::span<const std::byte> payload)
{
    const auto message = decode<Message>(payload);
    if (!message)
        return;
    // What was accepted must come back the same after another transport.
    const auto again = decode<Message>(encode(*message));
    if (!again || !(*again == *message))
        std::abort();
}

void tryAll(std::span<const std::byte> payload)
{
    tryMessage<Hello>(payload);
    tryMessage<RankConfig>(payload);
    tryMessage<Ready>(payload);
    tryMessage<Refuse>(payload);
    tryMessage<Ack>(payload);
    tryMessage<Heartbeat>(payload);
    tryMessage<Stats>(payload);
    tryMessage<Log>(payload);
    tryMessage<Cancel>(payload);
    tryMessage<Drain>(payload);
    tryMessage<Bye>(payload);
    if (const auto unit = decodeUnit(payload)) {
        const auto again = decodeUnit(encodeUnit(*unit));
        if (!again || !(*again == *unit))
            std::abort();
        for (std::size_t i = 0; i < unit->size(); ++i)
            (void)itemHash(*unit, i);
    }
    if (const auto block = decodeBlock(payload)) {
        const auto again = decodeBlock(encodeBlock(*block));
        if (!again || !(*again == *block))
            std::abort();
    }
    (void)decodeQa(payload, 384);
    ServerHandshake server(Key{}, Nonce{});
    (void)server.onProof(payload);
    RankHandshake rank(Key{}, Claim{}, Nonce{});
    (void)rank.onChallenge(payload);
    (void)rank.onProof(payload);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::span<const std::byte> bytes{
        static_cast<const std::byte*>(static_cast<const void*>(data)), size};
    tryAll(bytes);

    // The same bytes as a stream, in pieces whose size the first byte decides.
    FrameParser stream(0);
    stream.setAuthenticated();
    const std::size_t piece = size == 0 ? 1 : 1 + data[0] % 97U;
    for (std::size_t at = 0; at < size; at += piece) {
        stream.feed(bytes.subspan(at, std::min(piece, size - at)));
        for (auto next = stream.next(); next && *next; next = stream.next())
            tryAll((*next)->payload);
    }
    (void)stream.finish();

    // And as a frame with a right header around a payload, so that the checksum is no barrier.
    if (size > 2) {
        auto frame = encodeFrame(static_cast<FrameType>(1 + data[0] % 15U), bytes.subspan(1), 1, 0);
        frame[data[1] % frameHeaderBytes] ^= static_cast<std::byte>(data[2] % 2U);
        FrameParser parser(0);
        if (data[0] >= 128U)
            parser.setAuthenticated();
        parser.feed(frame);
        (void)parser.next();
        (void)parser.finish();
    }
    return 0;
}
