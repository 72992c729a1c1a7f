// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/run_file.h"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::test {

/// Hash of item `index` of a made-up plan.
inline Hash128 syntheticHash(std::uint64_t index)
{
    Hasher hasher;
    hasher.add(std::string_view("item")).add(index);
    return hasher.result();
}

/// Outputs of a unit that has the items first..first+count−1, each with `payloadSize` bytes that
/// depend on the item alone.
inline wire::OutputBlock syntheticBlock(std::uint64_t unit, std::uint64_t first,
                                        std::uint64_t count, std::uint32_t rank = 0,
                                        std::size_t payloadSize = 24)
{
    wire::OutputBlock block;
    block.unit = UnitId(unit);
    block.rank = RankId(rank);
    block.sequence = unit;
    block.startedNs = static_cast<std::int64_t>(unit * 1000);
    block.finishedNs = block.startedNs + 900;
    block.realTokens = count * 10;
    block.padTokens = count;
    for (std::uint64_t i = first; i < first + count; ++i) {
        wire::Output output;
        output.item = ItemIndex(i);
        output.hash = syntheticHash(i);
        output.payload.resize(payloadSize);
        for (std::size_t at = 0; at < payloadSize; ++at)
            output.payload[at] = static_cast<std::byte>((i * 31 + at * 7) & 255U);
        block.outputs.push_back(std::move(output));
    }
    return block;
}

/// Writes a plan of `items` made-up items, one per sample, in units of `perUnit` in rising order.
inline Status writeSyntheticPlan(store::RunFile& file, std::uint64_t items, std::uint64_t perUnit)
{
    auto writer = file.planWriter();
    if (!writer)
        return fail(std::move(writer).error());
    store::ContextRecord context;
    context.id = "context";
    context.text = "Made up, to be evaluated.";
    context.tokenBegin = {0, 5, 8, 10, 13, 16, 24};
    context.tokenEnd = {4, 7, 9, 12, 15, 25, 25};
    if (auto done = writer->addContext(context); !done)
        return done;
    for (std::uint64_t i = 0; i < items; ++i) {
        store::SampleRecord sample;
        sample.id = "q" + std::to_string(i);
        sample.hash = syntheticHash(i);
        sample.question = "What is it that is asked in question " + std::to_string(i) + "?";
        sample.answersJson = R"({"text":["Made up"],"answer_start":[0]})";
        sample.isImpossible = i % 7 == 0;
        sample.source = i;
        if (auto done = writer->addSample(sample); !done)
            return done;
    }
    for (std::uint64_t i = 0; i < items; ++i) {
        const store::ItemRecord item{SampleIndex(i), 0, 7, 12, 20, syntheticHash(i)};
        if (auto done = writer->addItem(item); !done)
            return done;
    }
    std::uint64_t units = 0;
    for (std::uint64_t first = 0; first < items; first += perUnit, ++units) {
        store::UnitRecord unit;
        for (std::uint64_t i = first; i < first + perUnit && i < items; ++i)
            unit.items.push_back(i);
        unit.tokens = unit.items.size() * 20;
        unit.cost = static_cast<double>(unit.tokens);
        if (auto done = writer->addUnit(unit); !done)
            return done;
    }
    store::PlanRecord plan;
    plan.digest = syntheticHash(items);
    plan.schedule = "dynamic";
    plan.detailJson = "{}";
    return writer->finish(plan);
}

} // namespace muster::test
