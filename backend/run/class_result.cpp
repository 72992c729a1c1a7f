// SPDX-License-Identifier: Apache-2.0
// What a classification run reports.
#include "run/class_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace muster::run {

std::vector<MetricSoFar> ClassJob::soFar() const
{
    MetricSoFar made{.key = "accuracy", .label = "accuracy", .unit = "%"};
    if (m_scoredSoFar > 0) {
        made.value =
            100.0 * static_cast<double>(m_rightSoFar) / static_cast<double>(m_scoredSoFar);
        if (const auto interval = metrics::wilsonInterval(m_rightSoFar, m_scoredSoFar,
                                                          m_config.metrics.confidence)) {
            made.interval = *interval;
            made.interval->low *= 100.0;
            made.interval->high *= 100.0;
        }
    }
    return {std::move(made)};
}

Status ClassJob::summarize(report::RunResult& result,
                           const std::function<void(SampleIndex)>& visit) const
{
    result.task = "classification";
    result.classNames = m_labels.names;
    std::uint64_t errors = 0;
    std::vector<double> right;
    for (std::size_t i = 0; i < m_table.rows.size(); ++i) {
        visit(SampleIndex(i));
        const Scored scored = decode(SampleIndex(i));
        errors += scored.error.empty() ? 0U : 1U;
        result.samplesDone += scored.isComplete ? 1U : 0U;
        right.push_back(scored.isComplete && scored.fields.isRight ? 100.0 : 0.0);
    }
    double sum = 0.0;
    for (const double one : right)
        sum += one;
    report::Metric accuracy = percentMetric(
        "accuracy", "accuracy",
        right.empty() ? std::nullopt : std::optional(sum / static_cast<double>(right.size())),
        "right rows / rows", right.size());
    accuracy.isHeadline = true;
    addMeanIntervals(accuracy, right, m_config.metrics);
    result.metrics.push_back(std::move(accuracy));
    result.counts.emplace_back("missing", m_table.rows.size() - result.samplesDone - errors);
    result.counts.emplace_back("errors", errors);
    result.counts.emplace_back("truncated", m_truncated);
    for (const std::string& note : m_table.notes)
        result.hints.push_back(note);
    return {};
}

} // namespace muster::run
