// SPDX-License-Identifier: Apache-2.0
#include "align/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace muster::align {

std::string_view verdictWord(Verdict verdict)
{
    switch (verdict) {
    case Verdict::Aligned:
        return "ALIGNED";
    case Verdict::Incomplete:
        return "INCOMPLETE";
    case Verdict::Misaligned:
        return "MISALIGNED";
    case Verdict::Unverified:
        return "UNVERIFIED";
    case Verdict::Running:
        break;
    }
    return "RUNNING";
}

std::string_view invariantCode(Invariant invariant)
{
    static constexpr std::array<std::string_view, invariantCount> codes{"I1", "I2", "I3", "I4",
                                                                        "I5", "I6", "I7", "I8"};
    return codes[static_cast<std::size_t>(invariant)];
}

std::string_view invariantName(Invariant invariant)
{
    static constexpr std::array<std::string_view, invariantCount> names{
        "coverage", "identity", "range", "ownership", "position", "sums", "padding", "provenance"};
    return names[static_cast<std::size_t>(invariant)];
}

namespace {

std::int64_t offsetOf(const Displacement& d)
{
    return static_cast<std::int64_t>(d.claimed) - static_cast<std::int64_t>(d.found);
}

std::string lateText(std::int64_t offset)
{
    const auto places = offset < 0 ? -offset : offset;
    const std::string count = places == 1 ? "one place" : fmt::format("{} places", places);
    return count + (offset > 0 ? " late" : " early");
}

} // namespace

std::string diagnose(const std::vector<Displacement>& displaced)
{
    if (displaced.empty())
        return {};
    const Displacement& first = displaced.front();
    const std::int64_t offset = offsetOf(first);
    const bool isShift = std::all_of(displaced.begin(), displaced.end(),
                                     [&](const Displacement& d) { return offsetOf(d) == offset; });
    if (isShift && displaced.size() > 1)
        return fmt::format("from index {} on, {} rows stand {}", first.claimed, displaced.size(),
                           lateText(offset));
    if (displaced.size() == 1)
        return fmt::format("the row at index {} belongs to index {}", first.claimed, first.found);

    std::unordered_map<std::uint64_t, std::uint64_t> foundAt;
    for (const Displacement& d : displaced)
        foundAt[d.claimed] = d.found;
    const bool isExchange =
        std::all_of(displaced.begin(), displaced.end(), [&](const Displacement& d) {
            const auto partner = foundAt.find(d.found);
            return partner != foundAt.end() && partner->second == d.claimed;
        });
    if (isExchange && displaced.size() == 2)
        return fmt::format("the rows of index {} and {} are exchanged", first.claimed, first.found);
    if (isExchange) {
        const auto half = displaced.size() / 2;
        const bool areBlocks =
            std::all_of(displaced.begin(), displaced.begin() + static_cast<std::ptrdiff_t>(half),
                        [&](const Displacement& d) { return offsetOf(d) == offset; });
        if (areBlocks)
            return fmt::format("blocks of {} rows are exchanged, the first from index {} with the "
                               "one from index {}",
                               half, first.claimed, first.found);
        return fmt::format("{} pairs of rows are exchanged, the first are {} and {}", half,
                           first.claimed, first.found);
    }
    // A rank-major chain of strides: position p holds the p-th entry of 0, W, 2W, …, 1, W + 1, …
    const std::uint64_t last = displaced.back().claimed;
    for (std::uint64_t world = 2; world <= 64; ++world) {
        const std::uint64_t total = last + 2;
        std::uint64_t position = 0;
        bool fits = true;
        for (std::uint64_t r = 0; r < world && fits; ++r)
            for (std::uint64_t i = r; i < total && fits; i += world, ++position)
                if (const auto found = foundAt.find(position); found != foundAt.end())
                    fits = found->second == i;
        if (fits)
            return fmt::format("the rows are chained rank by rank: a stride of world size {}",
                               world);
    }
    return fmt::format("{} rows stand at other indices than their content, the first at {} belongs "
                       "to {}",
                       displaced.size(), first.claimed, first.found);
}

} // namespace muster::align
