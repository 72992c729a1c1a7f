// SPDX-License-Identifier: Apache-2.0
// Speed of the ledger: rows checked and accepted. Usage: bench_align [items] [items per unit]
// [payload]
#include "align/ledger.h"
#include "base/clock.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

using namespace muster;

int main(int count, char** words)
{
    const auto argumentOr = [&](int place, std::uint64_t otherwise) {
        return count > place ? std::strtoull(words[place], nullptr, 10) : otherwise;
    };
    const std::uint64_t items = argumentOr(1, 1'000'000);
    const std::uint64_t perUnit = argumentOr(2, 256);
    const std::uint64_t payload = argumentOr(3, 248);
    align::PlanFacts facts;
    facts.samples = items;
    facts.units = (items + perUnit - 1) / perUnit;
    for (std::uint64_t i = 0; i < items; ++i) {
        facts.itemSample.push_back(i);
        facts.itemUnit.push_back(static_cast<std::uint32_t>(i / perUnit));
        facts.itemHash.push_back(hash128(std::to_string(i)));
    }
    align::Ledger ledger(facts);
    double seconds = 0.0;
    for (std::uint64_t unit = 0; unit < facts.units; ++unit) {
        wire::OutputBlock block;
        block.unit = UnitId(unit);
        for (std::uint64_t i = unit * perUnit; i < std::min(items, (unit + 1) * perUnit); ++i)
            block.outputs.push_back(
                {ItemIndex(i), facts.itemHash[i], 0,
                 std::vector<std::byte>(static_cast<std::size_t>(payload), std::byte{7})});
        const std::int64_t start = monotonicNs();
        ledger.assigned(block.unit, RankId(0));
        if (!ledger.block(block, RankId(0)).isUsable)
            return 1;
        seconds += static_cast<double>(monotonicNs() - start) * 1e-9;
    }
    std::printf("ledger    %.0f rows in %.3f s = %.0f rows/s\n", static_cast<double>(items),
                seconds, static_cast<double>(items) / seconds);
    const std::int64_t start = monotonicNs();
    const auto proof = ledger.proof();
    std::printf("proof     %s in %.3f s\n", std::string(word(proof.verdict)).c_str(),
                static_cast<double>(monotonicNs() - start) * 1e-9);
    return proof.verdict == align::Verdict::Aligned ? 0 : 1;
}
