// SPDX-License-Identifier: Apache-2.0
// What a question-answering run reports.
#include "run/qa_job.h"

#include "plan/schedule.h"

#include <fmt/format.h>

namespace muster::run {

namespace {

report::SampleRow rowOf(const data::Dataset& dataset, const data::Sample& sample,
                        const QaSampleResult& from)
{
    report::SampleRow row;
    row.index = sample.index;
    row.original = sample.original;
    row.id = sample.id;
    if (sample.context < dataset.titles.size())
        row.title = dataset.titles[sample.context];
    row.context = dataset.contexts[sample.context];
    row.question = sample.question;
    for (const data::Answer& answer : sample.answers)
        row.targets.push_back(answer.text);
    row.hash = sample.hash;
    row.isComplete = from.isComplete;
    row.error = from.error;
    row.em = from.score.em;
    row.f1 = from.score.f1;
    if (!from.isComplete)
        return row;
    row.prediction = from.prediction.text;
    row.nullOdds = from.prediction.nullOdds;
    row.bestNonNull = from.prediction.bestNonNullText;
    row.nBest.reserve(from.prediction.nBest.size());
    for (const task::NBestAnswer& answer : from.prediction.nBest)
        row.nBest.push_back({answer.text, static_cast<double>(answer.startLogit),
                             static_cast<double>(answer.endLogit), answer.score,
                             answer.probability});
    return row;
}

} // namespace

std::vector<MetricSoFar> QaJob::soFar() const
{
    const metrics::ScoreSoFar score = m_running.soFar(m_config.metrics.confidence);
    return {
        {.key = "exact_match",
         .label = "EM",
         .unit = "%",
         .value = score.exact,
         .interval = score.exactInterval},
        {.key = "f1", .label = "F1", .unit = "%", .value = score.f1, .interval = score.f1Interval}};
}

void QaJob::addMetrics(report::RunResult& result, const QaSummary& summary) const
{
    const config::RunConfig& config = m_config;
    const bool isV2 = summary.version == metrics::SquadVersion::V2;
    const std::string method = fmt::format("squad-{}, {}", isV2 ? "2.0" : "1.1", normalizer());
    const metrics::SquadTotals& totals = summary.totals;
    std::vector<double> em;
    std::vector<double> f1;
    em.reserve(m_scores.size());
    f1.reserve(m_scores.size());
    for (const metrics::QuestionScore& score : m_scores) {
        em.push_back(100.0 * score.em);
        f1.push_back(100.0 * score.f1);
    }
    report::Metric exact =
        percentMetric("exact_match", "EM", totals.all.exact, method, totals.all.total);
    addMeanIntervals(exact, em, config.metrics);
    report::Metric f = percentMetric("f1", "F1", totals.all.f1, method, totals.all.total);
    addMeanIntervals(f, f1, config.metrics);
    exact.isHeadline = true;
    f.isHeadline = true;
    result.metrics.push_back(std::move(exact));
    result.metrics.push_back(std::move(f));
    if (isV2) {
        const auto add = [&](const char* key, const char* label, std::optional<double> value,
                             std::uint64_t n) {
            result.metrics.push_back(percentMetric(key, label, value, method, n));
        };
        add("HasAns_exact", "EM with answer", totals.hasAnswer.exact, totals.hasAnswer.total);
        add("HasAns_f1", "F1 with answer", totals.hasAnswer.f1, totals.hasAnswer.total);
        add("NoAns_exact", "EM without answer", totals.noAnswer.exact, totals.noAnswer.total);
        add("NoAns_f1", "F1 without answer", totals.noAnswer.f1, totals.noAnswer.total);
        if (totals.thresholds) {
            const metrics::ThresholdScores& best = *totals.thresholds;
            const std::uint64_t n = totals.all.total;
            const auto addThreshold = [&](const char* key, const char* label,
                                          std::optional<double> value, const char* rule) {
                report::Metric made = percentMetric(key, label, value, rule, n);
                made.unit.clear();
                made.decimals = 3;
                if (!value)
                    made.reason = "reached by answering nothing";
                result.metrics.push_back(std::move(made));
            };
            constexpr const char* official = "squad-2.0 script: ties are not grouped (T-39)";
            constexpr const char* reachable = "best value that a threshold reaches, ties grouped";
            result.metrics.push_back(
                percentMetric("best_exact", "best EM", best.bestExact, official, n));
            addThreshold("best_exact_thresh", "threshold of best EM", best.bestExactThreshold,
                         official);
            result.metrics.push_back(percentMetric("best_f1", "best F1", best.bestF1, official, n));
            addThreshold("best_f1_thresh", "threshold of best F1", best.bestF1Threshold, official);
            result.metrics.push_back(percentMetric("best_exact_reachable", "best EM, ties grouped",
                                                   best.reachableExact.value, reachable, n));
            addThreshold("best_exact_reachable_thresh", "its threshold",
                         best.reachableExact.threshold, reachable);
            result.metrics.push_back(percentMetric("best_f1_reachable", "best F1, ties grouped",
                                                   best.reachableF1.value, reachable, n));
            addThreshold("best_f1_reachable_thresh", "its threshold", best.reachableF1.threshold,
                         reachable);
        }
    }
    if (config.plan.schedule == config::Schedule::Compat) {
        const auto lists = plan::compatLists(config.plan.compat, samples(), config.cluster.ranks,
                                             config.plan.compatBatch);
        if (lists) {
            double padded = 0.0;
            double meanOfMeans = 0.0;
            std::uint64_t rows = 0;
            std::uint64_t pads = 0;
            std::uint32_t busy = 0;
            for (const auto& list : *lists) {
                double sum = 0.0;
                for (const plan::ListEntry& entry : list) {
                    sum += em[static_cast<std::size_t>(entry.sample.value)];
                    pads += entry.pad ? 1U : 0U;
                }
                padded += sum;
                rows += list.size();
                if (!list.empty()) {
                    meanOfMeans += sum / static_cast<double>(list.size());
                    ++busy;
                }
            }
            const std::string rule = fmt::format("{} on {} ranks, {} flagged copies",
                                                 config.plan.compat, config.cluster.ranks, pads);
            result.counts.emplace_back("compat_pads", pads);
            if (rows > 0) {
                result.metrics.push_back(percentMetric(
                    "compat_padded_exact_match", "EM with copies",
                    padded / static_cast<double>(rows), rule + ", copies scored", rows));
                result.metrics.push_back(percentMetric("compat_mean_of_ranks_exact_match",
                                                       "EM as mean of ranks",
                                                       meanOfMeans / static_cast<double>(busy),
                                                       rule + ", mean of the ranks' means", rows));
            }
        }
    }
    result.counts.emplace_back("missing", totals.missing);
    result.counts.emplace_back("no_valid_span", summary.noValidSpan);
    result.counts.emplace_back("errors", summary.errors);
    result.counts.emplace_back("em_without_f1", totals.emWithoutF1);
    if (isV2) {
        result.counts.emplace_back("HasAns_total", totals.hasAnswer.total);
        result.counts.emplace_back("NoAns_total", totals.noAnswer.total);
    }
    if (const std::string hint = metrics::refusalHint(totals); !hint.empty())
        result.hints.push_back(hint);
}

Status QaJob::summarize(report::RunResult& result,
                        const std::function<void(SampleIndex)>& visit) const
{
    const auto summary =
        score([&](const data::Sample& sample, const QaSampleResult&) { visit(sample.index); });
    if (!summary)
        return fail(summary.error());
    result.task = "qa";
    result.samplesDone = summary->complete;
    result.isSquadV2 = summary->version == metrics::SquadVersion::V2;
    addMetrics(result, *summary);
    return {};
}

Status QaJob::forEachSample(const std::function<void(const report::SampleRow&)>& visit) const
{
    const auto scored = score([&](const data::Sample& sample, const QaSampleResult& from) {
        visit(rowOf(m_dataset, sample, from));
    });
    if (!scored)
        return fail(scored.error());
    return {};
}

Status QaJob::forEachPrediction(
    const std::function<void(SampleIndex, store::PredictionRecord&&)>& visit) const
{
    const auto scored = score([&](const data::Sample& sample, const QaSampleResult& from) {
        store::PredictionRecord record;
        record.text = from.prediction.text;
        if (from.isComplete) {
            record.score = from.score.em;
            record.second = from.score.f1;
        }
        record.nullOdds = from.prediction.nullOdds;
        visit(sample.index, std::move(record));
    });
    if (!scored)
        return fail(scored.error());
    return {};
}

} // namespace muster::run
