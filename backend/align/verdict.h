// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::align {

/// What a run proved about its alignment (ux.md 3.0).
enum class Verdict {
    Aligned,    ///< every index exactly once, in its own place, with its own content
    Incomplete, ///< nothing is wrong, but rows are missing or could not be computed
    Misaligned, ///< an invariant is violated
    Unverified, ///< imported without hashes: nothing contradicts, nothing is proved
    Running     ///< not finished
};

/// The word as screens, files and the last line have it: `ALIGNED`.
[[nodiscard]] std::string_view word(Verdict verdict);
/// Reads what word() wrote; false for anything else.
[[nodiscard]] bool parseVerdict(std::string_view text, Verdict& into);
/// Exit code of the command line: 0 aligned or unverified, 5 incomplete or running, 6 misaligned.
[[nodiscard]] int exitCode(Verdict verdict);

/// The invariants I1 to I8 of ux.md 3.0.
enum class Invariant : std::uint8_t {
    Coverage,
    Identity,
    Range,
    Ownership,
    Position,
    Sums,
    Padding,
    Provenance
};
inline constexpr std::size_t invariantCount = 8;

/// `I1`.
[[nodiscard]] std::string_view idOf(Invariant invariant);
/// `coverage`.
[[nodiscard]] std::string_view nameOf(Invariant invariant);
/// The rule in words.
[[nodiscard]] std::string_view ruleOf(Invariant invariant);

/// How one invariant stands.
struct Finding {
    enum class State { Ok, Violated, NotCheckable };
    Invariant invariant = Invariant::Coverage;
    State state = State::Ok;
    std::uint64_t violations = 0;     ///< distinct (kind, index) pairs
    std::vector<std::uint64_t> first; ///< up to 20 item indices, rising
    std::string label;                ///< of the first violation, such as `foreign sample`
    std::string sentence;             ///< of the first violation, or what was shown; may be empty
};

/// `ok`, `violated`, `not checkable`.
[[nodiscard]] std::string_view word(Finding::State state);

} // namespace muster::align
