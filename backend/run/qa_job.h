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
#include "run/payloads.h"
#include "store/run_file.h"
#include "task/qa_decode.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace muster::run {

/// Digests that must be equal before two sets of outputs may stand in one result.
struct Digests {
    Hash128 data;
    Hash128 tokenizer;
    Hash128 evaluation; ///< settings that change numbers
    Hash128 plan;
    std::string model; ///< 32 hexadecimal digits, or empty before a rank has loaded it
    bool operator==(const Digests&) const = default;
};

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

/// How long the steps before the launch took, in milliseconds.
struct PrepareTimes {
    double readMs = 0.0;
    double tokenizeMs = 0.0;
    double planMs = 0.0;
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

/// A question-answering run: samples, windows, units, and how outputs become scores. Made from data
/// and tokenizer (prepare) or from a run file (load); after that the two are the same, so what a
/// run scored and what `verify` scores later come from one piece of code.
class QaJob final {
public:
    /// Reads, tokenises and plans. Errors: those of the data and tokenizer modules; Invalid
    /// `E-RUN-001` (no model directory), `E-TASK-001` with the id of the sample.
    [[nodiscard]] static Result<std::unique_ptr<QaJob>> prepare(const config::RunConfig& config);
    /// From what save() stored. Errors: those of the store; Integrity `E-RUN-002`.
    [[nodiscard]] static Result<std::unique_ptr<QaJob>> load(const config::RunConfig& config,
                                                             store::RunFile& file);
    [[nodiscard]] Status save(store::RunFile& file, const std::vector<RankId>& owners) const;

    [[nodiscard]] const data::Dataset& dataset() const { return m_dataset; }
    [[nodiscard]] const std::vector<QaItem>& qaItems() const { return m_qaItems; }
    /// Items with their tokens; only a prepared job has them (else nullptr).
    [[nodiscard]] std::shared_ptr<const plan::ItemTable> items() const { return m_items; }
    [[nodiscard]] std::shared_ptr<const plan::UnitTable> units() const { return m_units; }
    [[nodiscard]] std::span<const Hash128> itemHashes() const { return m_itemHashes; }
    [[nodiscard]] const Digests& digests() const { return m_digests; }
    void setModelDigest(std::string digest) { m_digests.model = std::move(digest); }
    [[nodiscard]] const PrepareTimes& times() const { return m_times; }
    [[nodiscard]] std::uint32_t longestItem() const;
    [[nodiscard]] std::uint32_t vocabulary() const { return m_vocabulary; }
    [[nodiscard]] std::size_t samples() const { return m_dataset.samples.size(); }
    [[nodiscard]] metrics::SquadVersion version() const { return m_version; }
    [[nodiscard]] std::string_view normalizer() const;
    /// Items [first, last) of a sample.
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> itemsOf(SampleIndex sample) const;

    /// Takes outputs in, in any order; a sample that becomes complete adds to soFar(). A second
    /// output of an item is ignored.
    void accept(const wire::OutputBlock& block);
    [[nodiscard]] metrics::ScoreSoFar soFar() const;
    [[nodiscard]] std::uint64_t completeSamples() const { return m_complete; }
    [[nodiscard]] bool has(ItemIndex item) const { return m_payloads.has(item); }
    [[nodiscard]] std::span<const std::byte> payload(ItemIndex item) const
    {
        return m_payloads.get(item);
    }

    /// Decodes and scores all samples in index order and hands each to `visit`, then forms the
    /// totals, in index order: the same bits for the same outputs, whoever computed them.
    [[nodiscard]] Result<QaSummary>
    score(const std::function<void(const data::Sample&, const QaSampleResult&)>& visit) const;

    /// Scores of the questions in index order, as the last score() call formed them.
    [[nodiscard]] const std::vector<metrics::QuestionScore>& questionScores() const
    {
        return m_scores;
    }

private:
    explicit QaJob(const config::RunConfig& config);
    [[nodiscard]] Status readSynthetic(std::uint64_t samples);
    [[nodiscard]] Status tokenize();
    [[nodiscard]] Status finishPreparation();
    void indexItems();
    [[nodiscard]] Status makeScorer();
    [[nodiscard]] QaSampleResult decode(SampleIndex sample) const;

    config::RunConfig m_config;
    data::Dataset m_dataset;
    std::vector<ContextTokens> m_contextTokens;
    std::vector<QaItem> m_qaItems;
    std::vector<std::uint64_t> m_firstItem; ///< [samples + 1]
    std::vector<Hash128> m_itemHashes;
    std::shared_ptr<plan::ItemTable> m_items;
    std::shared_ptr<const plan::UnitTable> m_units;
    Digests m_digests;
    PrepareTimes m_times;
    std::uint32_t m_vocabulary = 0;
    metrics::SquadVersion m_version = metrics::SquadVersion::V1;
    std::unique_ptr<metrics::AnswerScorer> m_scorer;
    Payloads m_payloads{0};
    std::unordered_map<std::uint64_t, std::string> m_itemErrors;
    std::vector<std::uint32_t> m_missingItems; ///< of each sample
    std::uint64_t m_complete = 0;
    metrics::RunningScore m_running;
    mutable std::vector<metrics::QuestionScore> m_scores;
};

} // namespace muster::run
