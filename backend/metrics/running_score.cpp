// SPDX-License-Identifier: Apache-2.0
#include "metrics/running_score.h"

namespace muster::metrics {

namespace {

std::optional<Interval> inPercent(const Result<Interval>& interval)
{
    if (!interval)
        return std::nullopt;
    return Interval{100.0 * interval->value, 100.0 * interval->standardError, 100.0 * interval->low,
                    100.0 * interval->high};
}

} // namespace

void RunningScore::add(const QuestionScore& score)
{
    ++m_scored;
    m_exact += score.em != 0.0 ? 1 : 0;
    m_f1.add(score.f1);
    m_f1Squares.add(score.f1 * score.f1);
}

void RunningScore::add(const RunningScore& other)
{
    m_scored += other.m_scored;
    m_exact += other.m_exact;
    m_f1.add(other.m_f1);
    m_f1Squares.add(other.m_f1Squares);
}

ScoreSoFar RunningScore::soFar(double confidence) const
{
    ScoreSoFar so;
    so.scored = m_scored;
    if (m_scored == 0)
        return so;
    const auto n = static_cast<double>(m_scored);
    so.exact = 100.0 * static_cast<double>(m_exact) / n;
    so.f1 = 100.0 * m_f1.result() / n;
    so.exactInterval = inPercent(wilsonInterval(m_exact, m_scored, confidence));
    so.f1Interval =
        inPercent(normalInterval(m_scored, m_f1.result(), m_f1Squares.result(), confidence));
    return so;
}

} // namespace muster::metrics
