// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "wire/output.h"
#include "wire/unit.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace muster::eval {

/// Faults that a rank makes on purpose, so that tests and the demo can show that the alarm rings.
///
/// Tampering with outputs always hits unit 0, on whatever rank and in whatever attempt it is
/// computed, so no requeue can hide it:
///
/// | name | what arrives |
/// |---|---|
/// | `drop` | the last output is missing |
/// | `duplicate` | the first output twice |
/// | `swap` | the outputs of two items changed places (units 0 to 15 with at least 2 items) |
/// | `off-by-one` | every output of every unit stands under the next item's index |
/// | `foreign` | the last output under an index far outside the plan |
/// | `wrong-hash` | the first output's content hash is another |
/// | `wrong-owner` | the block names another rank |
/// | `conflict` | the block twice, the second time with another result for its first item |
/// | `pad-scored` | one more row, a copy of an earlier output without the pad flag |
/// | `truncated-frame` | the frame ends early and the connection with it |
/// | `flipped-bit` | one bit of the frame's payload is changed on the way |
///
/// Faults of the process: `rank-loss` (rank 1, or 0 when alone, ends by SIGKILL when it begins its
/// second unit, in generation 0 only), `crash-unit:<id>` (SIGSEGV), `hang-unit:<id>`, `slow` or
/// `slow:<ms>` (50 ms more for each unit).
class Inject final {
public:
    enum class Fault {
        None,
        Drop,
        Duplicate,
        Swap,
        OffByOne,
        Foreign,
        WrongHash,
        WrongOwner,
        Conflict,
        PadScored,
        TruncatedFrame,
        FlippedBit,
        RankLoss,
        CrashUnit,
        HangUnit,
        Slow
    };

    Inject() = default;
    /// Errors: Invalid `E-EVAL-001` for a name that is not in the table. Empty = no fault.
    [[nodiscard]] static Result<Inject> parse(std::string_view text, RankId rank,
                                              std::uint32_t world, std::uint32_t generation);

    /// Called when the computation of a unit begins; `sequence` counts the rank's units from 0. May
    /// not return.
    void beforeCompute(const wire::Unit& unit, std::uint64_t sequence) const;

    /// What is delivered in place of the block.
    [[nodiscard]] std::vector<wire::OutputBlock> tamper(wire::OutputBlock block);

    /// The fault of the frame that carries outputs of this unit: TruncatedFrame, FlippedBit or
    /// None.
    [[nodiscard]] Fault frameFault(UnitId unit) const;

    [[nodiscard]] Fault fault() const { return m_fault; }

private:
    Fault m_fault = Fault::None;
    std::uint64_t m_value = 0;
    RankId m_rank;
    std::uint32_t m_world = 1;
    std::uint32_t m_generation = 0;
    std::optional<wire::Output> m_earlier;
};

} // namespace muster::eval
