// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "base/sums.h"
#include "metrics/answer_score.h"
#include "metrics/intervals.h"

#include <cstdint>
#include <optional>

namespace muster::metrics {

/// EM and F1 so far, in percent; no values before the first question. Intervals are absent while
/// they are undefined (C-021): Wilson's for EM, the normal one for F1.
struct ScoreSoFar {
    std::uint64_t scored = 0;
    std::optional<double> exact;
    std::optional<double> f1;
    std::optional<Interval> exactInterval;
    std::optional<Interval> f1Interval;
};

/// Adds up question scores while they arrive. Sums are exact, so the value depends neither on the
/// order of arrival nor on how partial sums were merged. The final result is formed by
/// squadV1Totals() or squadV2Totals() in index order and may differ in the last bit.
class RunningScore final {
public:
    void add(const QuestionScore& score);
    /// Adds what another one has summed.
    void add(const RunningScore& other);
    [[nodiscard]] ScoreSoFar soFar(double confidence = 0.95) const;

private:
    std::uint64_t m_scored = 0;
    std::uint64_t m_exact = 0;
    ExactSum m_f1;
    ExactSum m_f1Squares;
};

} // namespace muster::metrics
