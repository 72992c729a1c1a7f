// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace muster::align {

/// Class of a row that has no prediction: it agrees with nothing and says nothing about the order.
inline constexpr std::uint32_t noAnswer = 0xFFFFFFFFU;
/// Place of a row that belongs to no reference, such as padding.
inline constexpr std::uint64_t noReference = 0xFFFFFFFFFFFFFFFFULL;

/// Which prediction would be right at which reference, over answers that were numbered: equal
/// normalised texts (or labels) have the same number. Built once, then only looked at.
///
/// About 16 bytes a row and 12 a reference answer.
class Agreement final {
public:
    /// \param predictions class of each row in file order, noAnswer for none [rows]
    /// \param starts      where the classes of reference i begin in `classes` [references + 1]
    /// \param classes     accepted classes of all references, without repeats in one reference
    /// Classes are numbered from 0 without large gaps.
    Agreement(std::vector<std::uint32_t> predictions, std::vector<std::uint64_t> starts,
              std::vector<std::uint32_t> classes);

    [[nodiscard]] std::uint64_t rows() const { return m_predictions.size(); }
    [[nodiscard]] std::uint64_t references() const { return m_starts.size() - 1; }
    [[nodiscard]] std::uint32_t prediction(std::uint64_t row) const { return m_predictions[row]; }

    /// Whether the prediction of `row` is right at `reference`; false outside the references.
    [[nodiscard]] bool agrees(std::uint64_t row, std::uint64_t reference) const
    {
        if (reference >= references())
            return false;
        const std::uint32_t wanted = m_predictions[row];
        for (std::uint64_t i = m_starts[reference]; i < m_starts[reference + 1]; ++i) {
            if (m_classes[i] == wanted)
                return true;
        }
        return false;
    }
    /// The references at which the prediction of `row` would be right, rising.
    [[nodiscard]] std::span<const std::uint32_t> acceptors(std::uint64_t row) const;
    /// Share of all references at which the prediction of `row` would be right, 0..1.
    [[nodiscard]] double chance(std::uint64_t row) const;
    /// Share of all rows that predict the same as `row`, 0..1.
    [[nodiscard]] double share(std::uint64_t row) const;
    /// Mean of chance() over the rows with a prediction; 0 without rows.
    [[nodiscard]] double meanChance() const { return m_meanChance; }
    /// Share of the most frequent prediction among the rows, 0..1; 0 without rows.
    [[nodiscard]] double largestShare() const { return m_largestShare; }
    /// Rows that agree when row i is taken for reference i.
    [[nodiscard]] std::uint64_t agreeingInPlace() const;

private:
    std::vector<std::uint32_t> m_predictions;
    std::vector<std::uint64_t> m_starts;
    std::vector<std::uint32_t> m_classes;
    std::vector<std::uint64_t> m_acceptorStarts; // [classes + 1]
    std::vector<std::uint32_t> m_acceptors;      // references by class
    std::vector<std::uint32_t> m_rowsOfClass;    // [classes]
    double m_meanChance = 0.0;
    double m_largestShare = 0.0;
};

} // namespace muster::align
