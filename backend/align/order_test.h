// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "align/agreement.h"
#include "align/dealing.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace muster::align {

/// The ways in which files of other programs are out of order.
enum class Disorder {
    None,            ///< in order, or nothing speaks against it
    Late,            ///< from a place on everything is k rows late: rows were repeated or put in
    Early,           ///< from a place on everything is k rows early: rows were dropped
    RankMajor,       ///< strided shares one after the other
    BatchMajor,      ///< shares of batches dealt in turn, one after the other
    StepMajor,       ///< strided shares gathered batch by batch
    BlocksExchanged, ///< two blocks stand in each other's place; of ranks when worldSize > 0
    RanksExchanged,  ///< strided shares of two ranks stand in each other's place
    PaddingAtEnd,    ///< the last rows are copies that evened out ranks
    SamplerCopies,   ///< the first k samples stand twice, then everything is k late
    PadsInFront,     ///< k rows that are no samples stand in front
    Reversed,        ///< last to first
    Sorted,          ///< in the order of something else, which `key` names
    Shuffled,        ///< out of order without a pattern
    Pieces           ///< several pieces at different shifts
};

/// `late`, `rank-major`, … as it stands in JSON.
[[nodiscard]] std::string_view word(Disorder disorder);

/// A stretch of rows at one shift.
struct Piece {
    std::uint64_t first = 0; ///< row
    std::uint64_t end = 0;   ///< behind the last row
    std::int64_t shift = 0;  ///< reference − row
    bool operator==(const Piece&) const = default;
};

/// Another order in which the samples may stand.
struct NamedOrder {
    std::string name;                 ///< `length of the question, longest first`
    std::vector<std::uint64_t> order; ///< reference of each row [rows or fewer]
};

/// What the order of a file is, by likelihood.
struct OrderDiagnosis {
    Disorder disorder = Disorder::None;
    std::uint64_t count = 0;     ///< k of Late, Early, PaddingAtEnd, SamplerCopies, PadsInFront
    std::uint64_t place = 0;     ///< first row that is out of place
    std::uint64_t placeLow = 0;  ///< `place` lies in [placeLow, placeHigh]
    std::uint64_t placeHigh = 0; ///< with answers alone it cannot be told more exactly
    std::uint64_t worldSize = 0;
    std::uint64_t batch = 0;
    std::uint64_t rankA = 0;
    std::uint64_t rankB = 0;
    std::uint64_t copies = 0; ///< rows that repeat another row's sample
    std::string key;          ///< Sorted
    std::vector<Piece> pieces;
    std::string sentence;    ///< one sentence with place and pattern; empty for None
    std::string cause;       ///< what usually does that; may be empty
    double gainNats = 0.0;   ///< log-likelihood above the order as it stands
    double confidence = 0.0; ///< 0..1, against the next best explanation
    /// Rows that agree in place, and in the order found.
    std::uint64_t agreedBefore = 0;
    std::uint64_t agreedAfter = 0;
    /// Reference of each row, noReference for rows without one [rows]: the inverse permutation. A
    /// reference that occurs again is a copy. Row i has i when nothing is wrong.
    std::vector<std::uint64_t> referenceOf;
    /// The order could be tested: answers in place agree far more often than by chance, or another
    /// order does. When false, `sentence` is empty and `doubt` says why nothing can be said.
    bool isTestable = false;
    std::string doubt;
};

/// Finds the order in which the rows of a file stand.
///
/// Each hypothesis (identity; shifts by pieces, found by dynamic programming over the shifts for
/// which rare answers vote; dealings to 2 … 512 ranks with their padding; exchanged ranks; copies
/// in front or at the end; reversed; the orders given) is scored by its log-likelihood ratio
/// against chance. A row whose prediction is accepted at a share q of the references gives
/// log((a + (1 − a) q) / q) where it agrees and log(1 − a) where it does not, with a the agreement
/// beyond chance under the right order. An order other than the one at hand is named only when it
/// is at least e^25 times as likely and agrees beyond chance by itself.
///
/// Takes about a second for 10^6 rows. Rows beyond the references are copies or strangers.
[[nodiscard]] OrderDiagnosis testOrder(const Agreement& agreement,
                                       std::span<const NamedOrder> orders = {});

} // namespace muster::align
