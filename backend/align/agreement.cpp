// SPDX-License-Identifier: Apache-2.0
#include "align/agreement.h"

#include <algorithm>
#include <utility>

namespace muster::align {

Agreement::Agreement(std::vector<std::uint32_t> predictions, std::vector<std::uint64_t> starts,
                     std::vector<std::uint32_t> classes)
    : m_predictions(std::move(predictions)), m_starts(std::move(starts)),
      m_classes(std::move(classes))
{
    if (m_starts.empty())
        m_starts.push_back(0);
    std::uint64_t count = 0;
    for (const std::uint32_t one : m_predictions)
        count = one == noAnswer ? count : std::max<std::uint64_t>(count, one + std::uint64_t{1});
    for (const std::uint32_t one : m_classes)
        count = std::max<std::uint64_t>(count, one + std::uint64_t{1});

    m_acceptorStarts.assign(count + 1, 0);
    for (const std::uint32_t one : m_classes)
        ++m_acceptorStarts[one + 1];
    for (std::uint64_t i = 0; i < count; ++i)
        m_acceptorStarts[i + 1] += m_acceptorStarts[i];
    m_acceptors.resize(m_classes.size());
    auto at = m_acceptorStarts;
    for (std::uint64_t reference = 0; reference < references(); ++reference) {
        for (std::uint64_t i = m_starts[reference]; i < m_starts[reference + 1]; ++i)
            m_acceptors[at[m_classes[i]]++] = static_cast<std::uint32_t>(reference);
    }

    m_rowsOfClass.assign(count, 0);
    std::uint64_t answered = 0;
    double sum = 0.0;
    for (std::uint64_t row = 0; row < rows(); ++row) {
        if (m_predictions[row] == noAnswer)
            continue;
        ++m_rowsOfClass[m_predictions[row]];
        ++answered;
        sum += chance(row);
    }
    if (answered > 0) {
        m_meanChance = sum / static_cast<double>(answered);
        m_largestShare = static_cast<double>(*std::ranges::max_element(m_rowsOfClass)) /
                         static_cast<double>(answered);
    }
}

std::span<const std::uint32_t> Agreement::acceptors(std::uint64_t row) const
{
    const std::uint32_t one = m_predictions[row];
    if (one == noAnswer)
        return {};
    return std::span(m_acceptors)
        .subspan(m_acceptorStarts[one], m_acceptorStarts[one + 1] - m_acceptorStarts[one]);
}

double Agreement::chance(std::uint64_t row) const
{
    return references() == 0
               ? 0.0
               : static_cast<double>(acceptors(row).size()) / static_cast<double>(references());
}

double Agreement::share(std::uint64_t row) const
{
    const std::uint32_t one = m_predictions[row];
    return one == noAnswer ? 0.0
                           : static_cast<double>(m_rowsOfClass[one]) / static_cast<double>(rows());
}

std::uint64_t Agreement::agreeingInPlace() const
{
    std::uint64_t count = 0;
    for (std::uint64_t row = 0; row < rows(); ++row)
        count += agrees(row, row) ? 1U : 0U;
    return count;
}

} // namespace muster::align
