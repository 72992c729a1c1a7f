// SPDX-License-Identifier: Apache-2.0
#include "align/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace muster::align {

namespace {

constexpr std::uint64_t largestWorld = 4096;

std::string places(std::uint64_t count)
{
    return count == 1 ? "one place" : fmt::format("{} places", count);
}

// Index at position `place` of the concatenation of the strided shares of `world` ranks.
std::uint64_t rankMajor(std::uint64_t place, std::uint64_t total, std::uint64_t world)
{
    const std::uint64_t large = total % world; // ranks with one more
    const std::uint64_t share = total / world;
    const std::uint64_t inLarge = large * (share + 1);
    if (place < inLarge)
        return place / (share + 1) + (place % (share + 1)) * world;
    return large + (place - inLarge) / share + ((place - inLarge) % share) * world;
}

} // namespace

Diagnosis diagnose(std::span<const Misplaced> misplaced, std::uint64_t total)
{
    Diagnosis result;
    if (misplaced.empty())
        return result;
    std::vector<Misplaced> rows(misplaced.begin(), misplaced.end());
    std::ranges::sort(rows, {}, &Misplaced::claimed);
    const auto differenceOf = [](const Misplaced& row) {
        return static_cast<std::int64_t>(row.claimed - row.actual);
    };
    const std::size_t count = rows.size();
    const std::uint64_t first = rows.front().claimed;
    result.firstPlace = first;

    const std::int64_t shift = differenceOf(rows.front());
    if (count >= 2 && std::ranges::all_of(
                          rows, [&](const Misplaced& row) { return differenceOf(row) == shift; })) {
        const bool isContiguous = rows.back().claimed - first + 1 == count;
        const bool isToTheEnd = rows.back().claimed + 1 >= total;
        const auto size = static_cast<std::uint64_t>(shift > 0 ? shift : -shift);
        const char* way = shift > 0 ? "late" : "early";
        result.pattern = Pattern::Shift;
        result.shift = shift;
        if (isContiguous && isToTheEnd)
            result.sentence =
                fmt::format("from index {} on everything is {} {}", first, places(size), way);
        else if (isContiguous)
            result.sentence = fmt::format("indices {} to {} are {} {}", first, rows.back().claimed,
                                          places(size), way);
        else
            result.sentence =
                fmt::format("{} rows from index {} on are {} {}", count, first, places(size), way);
        return result;
    }

    std::unordered_map<std::uint64_t, std::uint64_t> actualOf;
    actualOf.reserve(count);
    for (const auto& row : rows)
        actualOf.emplace(row.claimed, row.actual);
    const bool isMutual = std::ranges::all_of(rows, [&](const Misplaced& row) {
        const auto other = actualOf.find(row.actual);
        return other != actualOf.end() && other->second == row.claimed;
    });
    if (isMutual && count == 2) {
        result.pattern = Pattern::Swap;
        result.sentence =
            fmt::format("indices {} and {} are exchanged", rows[0].claimed, rows[1].claimed);
        return result;
    }
    if (isMutual && count == total - total % 2 && count > 4 &&
        std::ranges::all_of(
            rows, [&](const Misplaced& row) { return row.claimed + row.actual == total - 1; })) {
        result.pattern = Pattern::Reversed;
        result.sentence = "the rows stand in reverse order";
        return result;
    }
    if (isMutual && count % 2 == 0) {
        const std::size_t half = count / 2;
        const bool isBlocks =
            rows[half - 1].claimed - first + 1 == half &&
            rows.back().claimed - rows[half].claimed + 1 == half &&
            std::ranges::all_of(std::span(rows).first(half),
                                [&](const Misplaced& row) { return differenceOf(row) == shift; });
        if (isBlocks) {
            result.pattern = Pattern::Blocks;
            result.sentence =
                fmt::format("the blocks {} to {} and {} to {} are exchanged", first,
                            rows[half - 1].claimed, rows[half].claimed, rows.back().claimed);
            return result;
        }
    }
    if (count >= 2) {
        for (std::uint64_t world = 2; world < std::min(total, largestWorld); ++world) {
            std::size_t moved = 0;
            const bool isIt = std::ranges::all_of(rows, [&](const Misplaced& row) {
                return rankMajor(row.claimed, total, world) == row.actual;
            });
            if (!isIt)
                continue;
            for (std::uint64_t place = 0; place < total; ++place)
                moved += rankMajor(place, total, world) != place ? 1U : 0U;
            if (moved != count)
                continue;
            result.pattern = Pattern::RankMajor;
            result.worldSize = world;
            result.sentence = fmt::format(
                "the rows are rank-major: strided shares of world size {} one after the other",
                world);
            return result;
        }
    }
    if (isMutual) {
        result.pattern = Pattern::Swap;
        result.sentence = fmt::format("{} pairs of indices are exchanged, the first {} and {}",
                                      count / 2, rows[0].claimed, rows[0].actual);
        return result;
    }
    result.pattern = Pattern::Permutation;
    if (count == 1)
        result.sentence =
            fmt::format("index {} has the content of index {}", rows[0].claimed, rows[0].actual);
    else
        result.sentence = fmt::format(
            "{} rows stand at wrong places without a pattern; index {} has the content of index {}",
            count, rows[0].claimed, rows[0].actual);
    return result;
}

} // namespace muster::align
