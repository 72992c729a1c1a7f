// SPDX-License-Identifier: Apache-2.0
#include "wire/output.h"

#include "base/bytes.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>

namespace muster::wire {

namespace {

constexpr std::size_t blockHeadBytes = 8 + 4 + 4 + 8 + 4 + 4 + 8 + 8 + 8 + 8 + 4;
constexpr std::size_t outputHeadBytes = 8 + 16 + 4 + 4;

tl::unexpected<Error> badBlock(const std::string& why)
{
    return fail(Error::Kind::Protocol, "E-WIRE-011",
                "a block of outputs is not well formed: " + why);
}

tl::unexpected<Error> badQa(const std::string& why)
{
    return fail(Error::Kind::Protocol, "E-WIRE-012",
                "a question-answering output is not well formed: " + why);
}

bool descends(const std::vector<float>& logits)
{
    return std::ranges::none_of(logits, [](float v) { return std::isnan(v); }) &&
           std::ranges::is_sorted(logits, std::ranges::greater{});
}

bool areDistinctBelow(std::vector<std::uint16_t> positions, std::uint32_t tokens)
{
    std::ranges::sort(positions);
    return (positions.empty() || positions.back() < tokens) &&
           std::ranges::adjacent_find(positions) == positions.end();
}

} // namespace

// {u64 unit, u32 rank, u32 attempt, u64 sequence, u32 part, u32 parts, i64 started, i64 finished,
//  u64 real, u64 pad, u32 outputs, outputs × {u64 item, hash, u32 flags, u32 size, bytes}}
std::vector<std::byte> encodeBlock(const OutputBlock& block)
{
    ByteWriter out;
    std::size_t size = blockHeadBytes;
    for (const Output& output : block.outputs)
        size += outputHeadBytes + output.payload.size();
    out.reserve(size);
    out.put(block.unit.value);
    out.put(block.rank.value);
    out.put(block.attempt);
    out.put(block.sequence);
    out.put(block.part);
    out.put(block.parts);
    out.put(block.startedNs);
    out.put(block.finishedNs);
    out.put(block.realTokens);
    out.put(block.padTokens);
    out.put(static_cast<std::uint32_t>(block.outputs.size()));
    for (const Output& output : block.outputs) {
        out.put(output.item.value);
        out.putHash(output.hash);
        out.put(output.flags);
        out.put(static_cast<std::uint32_t>(output.payload.size()));
        out.putBytes(output.payload);
    }
    return out.take();
}

Result<OutputBlock> decodeBlock(std::span<const std::byte> payload)
{
    ByteReader in(payload);
    OutputBlock block;
    block.unit = UnitId(in.get<std::uint64_t>());
    block.rank = RankId(in.get<std::uint32_t>());
    block.attempt = in.get<std::uint32_t>();
    block.sequence = in.get<std::uint64_t>();
    block.part = in.get<std::uint32_t>();
    block.parts = in.get<std::uint32_t>();
    block.startedNs = in.get<std::int64_t>();
    block.finishedNs = in.get<std::int64_t>();
    block.realTokens = in.get<std::uint64_t>();
    block.padTokens = in.get<std::uint64_t>();
    const std::uint32_t count = in.get<std::uint32_t>();
    if (in.failed())
        return badBlock("it ends inside its head");
    if (block.part >= block.parts)
        return badBlock("part " + std::to_string(block.part) + " of " +
                        std::to_string(block.parts));
    if (block.finishedNs < block.startedNs)
        return badBlock("it ended before it began");
    if (count > in.remaining() / outputHeadBytes)
        return badBlock("it says " + std::to_string(count) + " outputs and has room for " +
                        std::to_string(in.remaining() / outputHeadBytes));
    block.outputs.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        Output output;
        output.item = ItemIndex(in.get<std::uint64_t>());
        output.hash = in.getHash();
        output.flags = in.get<std::uint32_t>();
        const auto bytes = in.take(in.get<std::uint32_t>());
        if (in.failed())
            return badBlock("output " + std::to_string(i) + " is cut off");
        if ((output.flags & ~(unsigned{padFlag} | unsigned{errorFlag})) != 0)
            return badBlock("output " + std::to_string(i) + " has unknown flags");
        output.payload.assign(bytes.begin(), bytes.end());
        block.outputs.push_back(std::move(output));
    }
    if (!in.finished())
        return badBlock(std::to_string(in.remaining()) + " bytes after the end");
    return block;
}

Result<std::vector<OutputBlock>> splitBlock(OutputBlock block, std::size_t maxBytes)
{
    std::vector<OutputBlock> parts;
    std::vector<Output> outputs = std::move(block.outputs);
    block.outputs.clear();
    parts.push_back(block);
    std::size_t size = blockHeadBytes;
    for (Output& output : outputs) {
        const std::size_t more = outputHeadBytes + output.payload.size();
        if (blockHeadBytes + more > maxBytes)
            return fail(Error::Kind::Invalid, "E-WIRE-013",
                        "the output of item " + std::to_string(output.item.value) + " has " +
                            std::to_string(output.payload.size()) +
                            " bytes and does not fit into one frame");
        if (size + more > maxBytes) {
            parts.push_back(block);
            size = blockHeadBytes;
        }
        parts.back().outputs.push_back(std::move(output));
        size += more;
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
        parts[i].part = static_cast<std::uint32_t>(i);
        parts[i].parts = static_cast<std::uint32_t>(parts.size());
    }
    return parts;
}

// {f32 nullStart, f32 nullEnd, u32 k, u16 start[k], f32 start[k], u16 end[k], f32 end[k]}
std::vector<std::byte> encodeQa(const QaOutput& output)
{
    assert(output.startLogit.size() == output.startPosition.size());
    assert(output.endLogit.size() == output.startPosition.size());
    assert(output.endPosition.size() == output.startPosition.size());
    ByteWriter out;
    out.reserve(12 + output.startPosition.size() * 12);
    out.put(output.nullStart);
    out.put(output.nullEnd);
    out.put(static_cast<std::uint32_t>(output.startPosition.size()));
    out.putArray(std::span<const std::uint16_t>{output.startPosition});
    out.putArray(std::span<const float>{output.startLogit});
    out.putArray(std::span<const std::uint16_t>{output.endPosition});
    out.putArray(std::span<const float>{output.endLogit});
    return out.take();
}

Result<QaOutput> decodeQa(std::span<const std::byte> payload, std::uint32_t tokens)
{
    ByteReader in(payload);
    QaOutput output;
    output.nullStart = in.get<float>();
    output.nullEnd = in.get<float>();
    const std::uint32_t k = in.get<std::uint32_t>();
    output.startPosition = in.getArray<std::uint16_t>(k);
    output.startLogit = in.getArray<float>(k);
    output.endPosition = in.getArray<std::uint16_t>(k);
    output.endLogit = in.getArray<float>(k);
    if (!in.finished())
        return badQa("its size does not agree with k = " + std::to_string(k));
    if (k == 0)
        return badQa("it has no logits");
    if (std::isnan(output.nullStart) || std::isnan(output.nullEnd))
        return badQa("a logit of position 0 is not a number");
    if (!descends(output.startLogit) || !descends(output.endLogit))
        return badQa("logits are not numbers in descending order");
    if (!areDistinctBelow(output.startPosition, tokens) ||
        !areDistinctBelow(output.endPosition, tokens))
        return badQa("positions repeat or lie outside the " + std::to_string(tokens) + " tokens");
    return output;
}

namespace {

auto badPayload(const char* code, const char* kind, const std::string& what)
{
    return fail(Error::Kind::Protocol, code,
                std::string("A ") + kind + " output is damaged: " + what +
                    ". It was not counted; the unit is computed again.");
}

} // namespace

// {f64 lossSum, u32 scored, u32 greedyHits, u32 losses, f32 loss[losses]}
std::vector<std::byte> encodeLm(const LmOutput& output)
{
    assert(output.losses.empty() || output.losses.size() == output.scored);
    ByteWriter out;
    out.reserve(20 + output.losses.size() * sizeof(float));
    out.put(output.lossSum);
    out.put(output.scored);
    out.put(output.greedyHits);
    out.put(static_cast<std::uint32_t>(output.losses.size()));
    out.putArray(std::span<const float>{output.losses});
    return out.take();
}

Result<LmOutput> decodeLm(std::span<const std::byte> payload, std::uint32_t targets)
{
    const auto bad = [](const std::string& what) {
        return badPayload("E-WIRE-014", "language-model", what);
    };
    ByteReader in(payload);
    LmOutput output;
    output.lossSum = in.get<double>();
    output.scored = in.get<std::uint32_t>();
    output.greedyHits = in.get<std::uint32_t>();
    const std::uint32_t losses = in.get<std::uint32_t>();
    output.losses = in.getArray<float>(losses);
    if (!in.finished())
        return bad("its size does not agree with its " + std::to_string(losses) + " losses");
    if (output.scored != targets)
        return bad("it scores " + std::to_string(output.scored) + " tokens where the plan has " +
                   std::to_string(targets));
    if (output.greedyHits > output.scored)
        return bad("it has more hits than tokens");
    if (!std::isfinite(output.lossSum))
        return bad("its loss sum is not a finite number");
    if (losses != 0) {
        if (losses != targets)
            return bad("it has " + std::to_string(losses) + " losses for " +
                       std::to_string(targets) + " tokens");
        double sum = 0.0;
        for (const float loss : output.losses)
            sum += static_cast<double>(loss);
        if (sum != output.lossSum)
            return bad("its losses do not have its sum");
    }
    return output;
}

LmHead peekLm(std::span<const std::byte> payload)
{
    ByteReader in(payload);
    LmHead head;
    head.lossSum = in.get<double>();
    head.scored = in.get<std::uint32_t>();
    return in.failed() ? LmHead{} : head;
}

// {u32 classes, f32 logit[classes]}
std::vector<std::byte> encodeClass(const ClassOutput& output)
{
    ByteWriter out;
    out.reserve(4 + output.logits.size() * sizeof(float));
    out.put(static_cast<std::uint32_t>(output.logits.size()));
    out.putArray(std::span<const float>{output.logits});
    return out.take();
}

Result<ClassOutput> decodeClass(std::span<const std::byte> payload, std::uint32_t classes)
{
    const auto bad = [](const std::string& what) {
        return badPayload("E-WIRE-015", "classification", what);
    };
    ByteReader in(payload);
    ClassOutput output;
    const std::uint32_t count = in.get<std::uint32_t>();
    output.logits = in.getArray<float>(count);
    if (!in.finished())
        return bad("its size does not agree with its " + std::to_string(count) + " logits");
    if (count != classes)
        return bad("it has " + std::to_string(count) + " logits where the model has " +
                   std::to_string(classes) + " classes");
    if (!std::ranges::all_of(output.logits, [](float x) { return std::isfinite(x); }))
        return bad("a logit is not a finite number");
    return output;
}

} // namespace muster::wire
