// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "config/run_config.h"
#include "data/dataset.h"
#include "metrics/answer_score.h"
#include "metrics/running_score.h"
#include "metrics/squad.h"
#include "plan/items.h"
#include "plan/units.h"
#include "run/job.h"
#include "task/qa_decode.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace muster::run {

/// One window over a context: what connects an item's outputs with the text.
struct QaItem {
    std::uint64_t sample = 0;
    std::uint32_t firstContextToken = 0; ///< of the whole context's tokens
    std::uint32_t contextTokens = 0;
    std::uint32_t contextAt = 0; ///< place of the first context token in the item
    std::uint32_t tokens = 0;    ///< of the item
};

/// Byte offsets of the tokens of one context.
struct ContextTokens {
    std::vector<std::uint32_t> begin;
    std::vector<std::uint32_t> end;
};

/// What one sample came to.
struct QaSampleResult {
    task::QaPrediction prediction;
    metrics::QuestionScore score;
    bool isComplete = false; ///< all items came back without an error
    std::string error;       ///< of an item that could not be computed
};

/// The result of the whole set, without the samples.
struct QaSummary {
    metrics::SquadVersion version = metrics::SquadVersion::V1;
    metrics::SquadTotals totals;
    std::uint64_t samples = 0;
    std::uint64_t complete = 0;
    std::uint64_t noValidSpan = 0;
    std::uint64_t errors = 0;
};

/// A question-answering run: questions over contexts, windows, extractive answers (semantics.md 3).
class QaJob final : public Job {
public:
    /// An empty one, for load(); see prepared().
    explicit QaJob(const config::RunConfig& config) : Job(config) {}
    /// Reads, tokenises and plans. Errors as Job::prepare(), and `E-TASK-001` with the id of the
    /// sample.
    [[nodiscard]] static Result<std::unique_ptr<Job>> prepared(const config::RunConfig& config);

    [[nodiscard]] const data::Dataset& dataset() const { return m_dataset; }
    [[nodiscard]] const std::vector<QaItem>& qaItems() const { return m_qaItems; }
    [[nodiscard]] metrics::SquadVersion version() const { return m_version; }
    [[nodiscard]] std::string_view normalizer() const;

    /// Decodes and scores all samples in index order and hands each to `visit`, then forms the
    /// totals, in index order.
    [[nodiscard]] Result<QaSummary>
    score(const std::function<void(const data::Sample&, const QaSampleResult&)>& visit) const;
    /// Scores of the questions in index order, as the last score() call formed them.
    [[nodiscard]] const std::vector<metrics::QuestionScore>& questionScores() const
    {
        return m_scores;
    }

    [[nodiscard]] wire::UnitKind kind() const override { return wire::UnitKind::Qa; }
    [[nodiscard]] std::vector<MetricSoFar> soFar() const override;
    [[nodiscard]] std::string_view sampleNoun() const override { return "questions"; }
    [[nodiscard]] Status summarize(report::RunResult& result,
                                   const std::function<void(SampleIndex)>& visit) const override;
    [[nodiscard]] Status
    forEachSample(const std::function<void(const report::SampleRow&)>& visit) const override;
    [[nodiscard]] Status forEachPrediction(
        const std::function<void(SampleIndex, store::PredictionRecord&&)>& visit) const override;

private:
    [[nodiscard]] Status savePlan(store::PlanWriter& writer) const override;
    void describePlan(nlohmann::ordered_json& detail) const override;
    [[nodiscard]] Status loadPlan(store::RunFile& file, const nlohmann::json& detail) override;
    void sampleCompleted(SampleIndex sample) override;
    [[nodiscard]] Status readSynthetic(std::uint64_t samples);
    [[nodiscard]] Status tokenize();
    [[nodiscard]] Status finishPreparation();
    void indexWindows();
    [[nodiscard]] Status makeScorer();
    [[nodiscard]] QaSampleResult decode(SampleIndex sample) const;
    void addMetrics(report::RunResult& result, const QaSummary& summary) const;

    data::Dataset m_dataset;
    std::vector<ContextTokens> m_contextTokens;
    std::vector<QaItem> m_qaItems;
    metrics::SquadVersion m_version = metrics::SquadVersion::V1;
    std::unique_ptr<metrics::AnswerScorer> m_scorer;
    metrics::RunningScore m_running;
    mutable std::vector<metrics::QuestionScore> m_scores;
};

} // namespace muster::run
