// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "align/agreement.h"
#include "align/order_test.h"

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::align {

/// Answers that at most this many references accept tell places apart.
inline constexpr std::size_t rareAcceptors = 8;

/// What a row says for or against standing at a reference, in nats against chance.
class RowScores final {
public:
    /// `agreement` must outlive this. `rate`: agreement beyond chance under the right order.
    RowScores(const Agreement& agreement, double rate) : m_agreement(agreement)
    {
        m_miss = static_cast<float>(std::log1p(-rate));
        m_hit.resize(agreement.rows());
        for (std::uint64_t row = 0; row < agreement.rows(); ++row) {
            const double q = agreement.chance(row);
            m_hit[row] =
                q > 0.0 ? static_cast<float>(std::log((rate + (1.0 - rate) * q) / q)) : 0.0F;
        }
    }
    [[nodiscard]] const Agreement& agreement() const { return m_agreement; }
    /// A row whose answer is right nowhere says nothing; one outside the references speaks against.
    [[nodiscard]] float at(std::uint64_t row, std::uint64_t reference) const
    {
        if (m_hit[row] == 0.0F)
            return 0.0F;
        return m_agreement.agrees(row, reference) ? m_hit[row] : m_miss;
    }
    [[nodiscard]] bool isTelling(std::uint64_t row) const { return m_hit[row] != 0.0F; }

private:
    const Agreement& m_agreement;
    std::vector<float> m_hit; // 0: says nothing
    float m_miss = 0.0F;
};

/// Cost of a change of shift in nats: the places where it may happen and the shifts to choose from.
[[nodiscard]] double changeCost(std::uint64_t rows);

/// Shifts that rare answers vote for, and those that win in some part of the file; with 0.
[[nodiscard]] std::vector<std::int64_t> candidateShifts(const RowScores& scores);

/// The most likely pieces of constant shift (Viterbi over the shifts and over "no shift").
/// Neighbouring pieces have different shifts; together they cover all rows.
[[nodiscard]] std::vector<Piece> mostLikelyPieces(const RowScores& scores,
                                                  std::span<const std::int64_t> shifts);

/// Places between which the change between two neighbouring pieces may lie, moved to the repeated
/// rows where rows were repeated.
struct Change {
    std::uint64_t place = 0;
    std::uint64_t low = 0;
    std::uint64_t high = 0;
};
[[nodiscard]] Change placeOfChange(const RowScores& scores, const Piece& before,
                                   const Piece& after);

} // namespace muster::align
