// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "config/run_config.h"
#include "data/dataset.h"
#include "metrics/intervals.h"
#include "plan/items.h"
#include "plan/units.h"
#include "report/run_result.h"
#include "run/payloads.h"
#include "store/run_file.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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

/// How long the steps before the launch took, in milliseconds.
struct PrepareTimes {
    double readMs = 0.0;
    double tokenizeMs = 0.0;
    double planMs = 0.0;
};

/// A metric while the run goes on; no value before the first sample.
struct MetricSoFar {
    std::string key{};   ///< `exact_match`, `perplexity`
    std::string label{}; ///< `EM`, `PPL`
    std::string unit{};  ///< `%` or empty
    int decimals = 1;
    std::optional<double> value{};
    std::optional<metrics::Interval> interval{};
};

/// What a run evaluates: samples, items, units, and how outputs become scores. One class for each
/// task; everything else of a run (dealing, gathering, proof, resume, files) knows this one only.
///
/// Made from data and tokenizer (prepare) or from a run file (load); after that the two are the
/// same, so what a run scored and what `verify` scores later come from one piece of code. All
/// results are formed in index order from the stored outputs: the same bits for the same outputs,
/// whoever computed them.
class Job {
public:
    /// Reads, tokenises and plans. Errors: those of the data and tokenizer modules; Invalid
    /// `E-RUN-001` (no model directory) and those of the task.
    [[nodiscard]] static Result<std::unique_ptr<Job>> prepare(const config::RunConfig& config);
    /// From what save() stored. Errors: those of the store; Integrity `E-RUN-002`, Incomplete
    /// `E-RUN-003` (no plan).
    [[nodiscard]] static Result<std::unique_ptr<Job>> load(const config::RunConfig& config,
                                                           store::RunFile& file);
    virtual ~Job() = default;
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    [[nodiscard]] Status save(store::RunFile& file, const std::vector<RankId>& owners) const;

    /// Items with their tokens; only a prepared job has them (else nullptr).
    [[nodiscard]] std::shared_ptr<const plan::ItemTable> items() const { return m_items; }
    [[nodiscard]] std::shared_ptr<const plan::UnitTable> units() const { return m_units; }
    [[nodiscard]] std::span<const Hash128> itemHashes() const { return m_itemHashes; }
    /// Sample of each item [items].
    [[nodiscard]] std::span<const std::uint64_t> itemSamples() const { return m_itemSamples; }
    [[nodiscard]] virtual wire::UnitKind kind() const = 0;
    [[nodiscard]] std::size_t itemCount() const { return m_itemSamples.size(); }
    [[nodiscard]] const Digests& digests() const { return m_digests; }
    void setModelDigest(std::string digest) { m_digests.model = std::move(digest); }
    [[nodiscard]] const PrepareTimes& times() const { return m_times; }
    [[nodiscard]] const std::vector<data::Warning>& warnings() const { return m_warnings; }
    /// Positions that the model must have.
    [[nodiscard]] std::uint32_t longestItem() const { return m_longestItem; }
    [[nodiscard]] std::uint32_t vocabulary() const { return m_vocabulary; }
    [[nodiscard]] std::size_t samples() const { return m_missingItems.size(); }
    /// Items [first, last) of a sample.
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> itemsOf(SampleIndex sample) const;

    /// Takes outputs in, in any order; a second output of an item is ignored.
    void accept(const wire::OutputBlock& block);
    [[nodiscard]] std::uint64_t completeSamples() const { return m_complete; }
    [[nodiscard]] bool has(ItemIndex item) const { return m_payloads.has(item); }
    [[nodiscard]] std::span<const std::byte> payload(ItemIndex item) const
    {
        return m_payloads.get(item);
    }

    /// The metrics over the samples that are complete.
    [[nodiscard]] virtual std::vector<MetricSoFar> soFar() const = 0;
    /// What a sample is called where its number is shown: `questions`, `windows`, `rows`.
    [[nodiscard]] virtual std::string_view sampleNoun() const = 0;
    /// Decodes and scores all samples in index order, calls `visit` for each, and fills in task,
    /// samplesDone, metrics, counts, hints and notes of `result`.
    [[nodiscard]] virtual Status summarize(report::RunResult& result,
                                           const std::function<void(SampleIndex)>& visit) const = 0;
    /// Visits all samples in index order.
    [[nodiscard]] virtual Status
    forEachSample(const std::function<void(const report::SampleRow&)>& visit) const = 0;
    /// What the run file keeps of each sample, in index order.
    [[nodiscard]] virtual Status forEachPrediction(
        const std::function<void(SampleIndex, store::PredictionRecord&&)>& visit) const = 0;

protected:
    explicit Job(const config::RunConfig& config);

    /// Contexts, samples and items of the task; units and the plan record follow.
    [[nodiscard]] virtual Status savePlan(store::PlanWriter& writer) const = 0;
    /// What the plan's details hold beyond the common part.
    virtual void describePlan(nlohmann::ordered_json& detail) const = 0;
    [[nodiscard]] virtual Status loadPlan(store::RunFile& file, const nlohmann::json& detail) = 0;
    /// All items of a sample have come back.
    virtual void sampleCompleted(SampleIndex sample) = 0;

    /// Packs the items into units and forms the digests; m_items must be whole.
    void finishPlan();
    /// Forms what is derived from m_itemSamples for this many samples.
    void indexItems(std::size_t samples);
    /// The text that a rank sent instead of an output, or nothing.
    [[nodiscard]] const std::string* itemError(std::uint64_t item) const;
    [[nodiscard]] static Error damage(const store::RunFile& file, const std::string& what);

    config::RunConfig m_config;
    std::shared_ptr<plan::ItemTable> m_items;
    std::shared_ptr<const plan::UnitTable> m_units;
    std::vector<Hash128> m_itemHashes;
    std::vector<std::uint64_t> m_itemSamples;
    Digests m_digests;
    PrepareTimes m_times;
    std::vector<data::Warning> m_warnings;
    std::uint32_t m_longestItem = 0;
    std::uint32_t m_vocabulary = 0;

private:
    std::vector<std::uint64_t> m_firstItem;    ///< [samples + 1]
    std::vector<std::uint32_t> m_missingItems; ///< of each sample
    std::uint64_t m_complete = 0;
    Payloads m_payloads{0};
    std::unordered_map<std::uint64_t, std::string> m_itemErrors;
};

/// Fills standard error, normal and bootstrap interval of a metric that is the mean of `values`
/// [samples], in their unit and in index order.
void addMeanIntervals(report::Metric& metric, const std::vector<double>& values,
                      const config::MetricConfig& config);

/// A metric in percent; without a value it says why.
[[nodiscard]] report::Metric percentMetric(std::string key, std::string label,
                                           std::optional<double> value, std::string method,
                                           std::uint64_t n);

/// Milliseconds since a time of monotonicNs().
[[nodiscard]] double millisecondsSince(std::int64_t startNs);

/// Number of samples when the data are `synthetic:N`.
[[nodiscard]] std::optional<std::uint64_t> syntheticSamples(const config::DataConfig& data);

} // namespace muster::run
