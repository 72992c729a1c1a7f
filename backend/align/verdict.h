// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::align {

/// What can be said about the order and coverage of a set of results.
enum class Verdict {
    Aligned,    ///< every sample counted exactly once, in its own place, proved by hashes
    Incomplete, ///< nothing is wrong, but rows are missing
    Misaligned, ///< something contradicts the plan
    Unverified, ///< no hashes: order can be tested, not proved
    Running     ///< not decided yet
};

/// `ALIGNED`, `INCOMPLETE`, …; never translated.
[[nodiscard]] std::string_view verdictWord(Verdict verdict);

/// The invariants of ux.md 3.0, in order.
enum class Invariant { Coverage, Identity, Range, Ownership, Position, Sums, Padding, Provenance };
inline constexpr std::size_t invariantCount = 8;

/// `I1` … `I8`.
[[nodiscard]] std::string_view invariantCode(Invariant invariant);
/// `coverage`, `identity`, …
[[nodiscard]] std::string_view invariantName(Invariant invariant);

enum class InvariantState { Ok, Violated, NotChecked };

/// One invariant with what was found.
struct InvariantResult {
    InvariantState state = InvariantState::NotChecked;
    std::uint64_t checked = 0; ///< rows, sums or ranks that were looked at
    std::uint64_t violations = 0;
    std::vector<std::uint64_t> first; ///< the first 20 item indices, ascending
    std::string sentence;             ///< what was found; empty when it holds
    bool operator==(const InvariantResult&) const = default;
};

using Invariants = std::array<InvariantResult, invariantCount>;

/// Verdict with its reasons.
struct Conclusion {
    Verdict verdict = Verdict::Running;
    std::string sentence; ///< what happened, what it changes, what to do
    Invariants invariants;
    std::uint64_t missing = 0; ///< items without an output
    std::uint64_t duplicates =
        0; ///< equal second outputs (legal: a re-send, a copy of a late unit)
    std::uint64_t padsRemoved = 0;
    bool operator==(const Conclusion&) const = default;
};

/// A row that claims one index while its content belongs to another.
struct Displacement {
    std::uint64_t claimed = 0;
    std::uint64_t found = 0;
    bool operator==(const Displacement&) const = default;
};

/// Names the pattern of displaced rows in a sentence: all late or early by k from an index on, two
/// rows or blocks exchanged, the stride of W ranks chained, or strays. Empty for no rows.
/// `displaced` in the order of the claimed index.
[[nodiscard]] std::string diagnose(const std::vector<Displacement>& displaced);

} // namespace muster::align
