// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace muster::align {

/// A row that claims place `claimed` but has the content of place `actual`.
struct Misplaced {
    std::uint64_t claimed = 0;
    std::uint64_t actual = 0;
    bool operator==(const Misplaced&) const = default;
};

/// The patterns that have a name.
enum class Pattern {
    None,       ///< nothing is out of place
    Shift,      ///< everything from an index on is k places late (or early)
    Swap,       ///< pairs of single rows are exchanged
    Blocks,     ///< two runs of neighbours are exchanged
    RankMajor,  ///< rows of a strided share concatenated rank by rank
    Reversed,   ///< last to first
    Permutation ///< out of place without a pattern
};

/// A mis-order in words.
struct Diagnosis {
    Pattern pattern = Pattern::None;
    std::int64_t shift = 0;       ///< Shift: claimed − actual, positive = late
    std::uint64_t worldSize = 0;  ///< RankMajor
    std::uint64_t firstPlace = 0; ///< lowest claimed place
    std::string sentence;         ///< empty for None
};

/// Names the pattern of the rows that are out of place. `misplaced` has each claimed place at most
/// once, in any order, and only entries whose two places differ; `total` is the number of places.
[[nodiscard]] Diagnosis diagnose(std::span<const Misplaced> misplaced, std::uint64_t total);

} // namespace muster::align
