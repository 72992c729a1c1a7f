// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "base/result.h"
#include "config/run_config.h"
#include "config/settings.h"
#include "metrics/paired.h"
#include "metrics/perplexity.h"
#include "report/run_result.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::run {

/// What a comparison needs of one run, by sample. All columns have one entry for each sample, or
/// are empty where the task has no such thing.
struct ComparedRun {
    std::shared_ptr<const report::RunResult> result;
    config::RunConfig config;
    std::filesystem::path folder;

    std::vector<std::uint8_t> isComplete;
    std::vector<Hash128> hashes;
    std::vector<std::string> ids;
    std::vector<std::string> targets;     ///< reference answers or labels, joined by ` | `
    std::vector<std::string> predictions; ///< answer or label
    std::vector<double> em;               ///< 1 right, 0 wrong; not of a language model
    std::vector<double> f1;               ///< 0..1, question answering
    std::vector<double> losses;           ///< −ln p of the right class, one label
    std::vector<double> probabilities;    ///< [samples · classes]
    std::vector<std::uint64_t> groups;    ///< cluster of each sample; see groupNoun
    std::string groupNoun;                ///< `contexts`, `groups`, `documents`; empty: no clusters
    std::vector<metrics::LossRow> windows;
    std::vector<float> tokenLosses;        ///< of all windows, when all of them kept theirs
    std::vector<std::uint64_t> firstToken; ///< [windows + 1] into tokenLosses
};

/// Reads a run folder. Errors: those of loadResult().
[[nodiscard]] Result<ComparedRun> loadCompared(const std::filesystem::path& folder);
/// Which procedures over the losses of a run give a perplexity that was seen elsewhere, as
/// LmJob::explain(). Errors: those of the store and of the job; Usage `E-RUN-073` (another task).
[[nodiscard]] Result<std::vector<metrics::LedgerMatch>>
explainPerplexity(const std::filesystem::path& folder, double seen, double tolerance);
/// The columns of a result that is at hand. Errors: those of forEachSample.
[[nodiscard]] Result<ComparedRun> comparedOf(std::shared_ptr<const report::RunResult> result,
                                             config::RunConfig config,
                                             std::filesystem::path folder);

/// What a difference between two configurations means for a comparison.
enum class DifferenceEffect {
    Speed,     ///< changes no number
    Compared,  ///< what is compared, such as model and precision; may move numbers
    Intervals, ///< changes only the intervals that the runs themselves print
    Content,   ///< decided by the digest of the data
    Blocks     ///< the two numbers mean different things
};
[[nodiscard]] std::string_view effectName(DifferenceEffect effect);

/// One setting and its value in each run, as TOML writes it.
struct SettingRow {
    std::string key;
    std::vector<std::string> values; ///< [runs]
    DifferenceEffect effect = DifferenceEffect::Speed;
    bool isEqual = false;
};

/// Settings of the runs' tasks in the order of the table; only those that differ unless `all`.
/// The model's name is taken from its path; its digest stands in the runs.
[[nodiscard]] std::vector<SettingRow> settingRows(std::span<const ComparedRun> runs, bool all);

/// How a difference reads.
enum class Reading {
    Equal,       ///< every sample has the same value
    WithinNoise, ///< the test does not tell the runs apart
    Better,      ///< B is better, beyond noise
    Worse,       ///< B is worse, beyond noise
    NotTested    ///< no test is possible; `reason` says why
};
[[nodiscard]] std::string_view readingName(Reading reading);

/// One metric of two runs over the same samples, B − A, in the unit of the metric.
struct MetricDifference {
    std::string key;
    std::string label;
    std::string unit; ///< `%` (then differences are percentage points) or empty
    int decimals = 2;
    bool isLowerBetter = false;
    std::optional<double> a;
    std::optional<double> b;
    std::optional<double> difference;
    std::optional<double> low; ///< two-sided interval of the difference
    std::optional<double> high;
    double confidence = 0.95;
    std::optional<double> pValue; ///< two-sided, of the test that `reading` follows
    std::string test;             ///< which, in words
    std::uint64_t samples = 0;
    std::uint64_t clusters = 0; ///< 0: samples count as independent
    std::optional<double> bootstrapLow;
    std::optional<double> bootstrapHigh;
    std::string bootstrapMethod;
    /// Perplexity alone: PPL_B / PPL_A with its interval.
    std::optional<metrics::Interval> ratio;
    Reading reading = Reading::NotTested;
    std::string reason;
};

/// Right and wrong of both runs, and what the exact McNemar test says of the flips.
struct Flips {
    std::string label; ///< `EM` or `accuracy`
    metrics::McNemar table;
    std::vector<std::uint64_t> onlyA; ///< sample indices
    std::vector<std::uint64_t> onlyB;
};

/// What changed at all, however little: the view of a determinism check.
struct Changes {
    std::uint64_t samples = 0;          ///< complete in both runs
    std::uint64_t texts = 0;            ///< predictions that differ; not of a language model
    std::vector<std::uint64_t> indices; ///< samples with another text or another loss, all of them
    std::uint64_t scores = 0;           ///< samples whose EM, F1 or correctness differs
    std::uint64_t losses = 0;           ///< samples (windows) whose loss is not the same number
    double greatestLoss = 0.0; ///< greatest difference of a sample's loss: nats per token (windows)
                               ///< or nats
    std::optional<std::uint64_t> greatestAt;
    double greatestProbability = 0.0; ///< classification: of any class
    bool hasLosses = false;
    bool hasScores = false;
    /// Language models whose runs kept token losses.
    std::optional<std::uint64_t> tokens;
    std::uint64_t tokenLosses = 0; ///< tokens whose loss is not the same number
    double greatestTokenLoss = 0.0;
    std::optional<metrics::PerplexityRatio> byTokens; ///< tokens as if independent, as llama.cpp
};

/// What needs the whole distribution of each token, which a run file does not hold: filled when
/// reference log-probabilities are at hand for both runs.
struct DistributionAgreement {
    std::uint64_t tokens = 0;
    double meanKlNats = 0.0;
    double sameTop = 0.0; ///< share of tokens, 0..1
};

/// Two runs beside each other.
struct PairComparison {
    std::size_t a = 0; ///< index into the runs
    std::size_t b = 0;
    std::vector<std::string> reasons; ///< why they cannot be compared; empty: they can
    std::vector<std::string> notes;   ///< worth knowing, changes nothing
    std::uint64_t shared = 0;         ///< samples that are complete in both
    std::vector<MetricDifference> metrics;
    std::optional<Flips> flips;
    std::optional<Changes> changes;
    std::optional<DistributionAgreement> distributions;

    [[nodiscard]] bool isComparable() const { return reasons.empty(); }
};

struct CompareOptions {
    double confidence = 0.95;
    std::uint64_t bootstrap = 1000; ///< replicates; 0 = none
    std::uint64_t seed = 0;
};

/// Compares B with A. Comparable are runs of one task over the same data (by digest) whose settings
/// that give a number its meaning agree; model, precision and the packing of units may differ:
/// they are what is compared. Ranks, schedule, gather and launcher never matter.
///
/// Tests: EM and accuracy by the exact McNemar test with the interval of the paired t, F1 and class
/// losses by the paired t, perplexity and loss by the delta method over documents or windows. With
/// clusters (contexts, the group column, documents) EM, accuracy, F1 and losses are tested by the
/// t over clusters instead.
/// Source: semantics.md 6; C-042.
[[nodiscard]] Result<PairComparison> comparePair(std::span<const ComparedRun> runs, std::size_t a,
                                                 std::size_t b, const CompareOptions& options = {});

/// A condition on a difference, `em < -0.5pp @ 95%`:
///
///     METRIC OP NUMBER [pp | %] [@ CONFIDENCE%]
///
/// METRIC is a key or label of a metric (`em`, `exact_match`, `f1`, `accuracy`, `ppl`, `loss`, …)
/// or `texts_changed`, `scores_changed`, `losses_changed`, `greatest_loss_difference`. OP is one of
/// < <= > >= == !=. The number is a difference B − A: in percentage points (`pp`, only of metrics
/// in
/// percent), in percent of A's value (`%`), or in the metric's own unit. With `@ C%` the condition
/// holds when the whole two-sided interval of that confidence fulfils it; without, when the
/// difference itself does. `==` and `!=` take no confidence.
struct FailCondition {
    enum class Unit { Own, Points, Percent };
    std::string text;
    std::string metric;
    std::string comparison;
    double value = 0.0;
    Unit unit = Unit::Own;
    std::optional<double> confidence; ///< 0..1
};

/// Error: Usage `E-RUN-070`.
[[nodiscard]] Result<FailCondition> parseFailCondition(std::string_view text);

struct FailOutcome {
    FailCondition condition;
    std::size_t b = 0; ///< run that was compared with the first
    bool holds = false;
    std::string sentence; ///< what was found
};

/// Error: Usage `E-RUN-071` when the metric is not there, has no value or no interval.
[[nodiscard]] Result<FailOutcome> checkCondition(const FailCondition& condition,
                                                 std::span<const ComparedRun> runs,
                                                 const PairComparison& pair);

/// How a rank count did against the smallest one.
struct ScalingRow {
    std::size_t run = 0; ///< index into the runs
    std::uint32_t ranks = 0;
    double seconds = 0.0; ///< first unit to the last acknowledgement
    double startUpSeconds = 0.0;
    double samplesPerSecond = 0.0;
    double tokensPerSecond = 0.0;
    double speedUp = 1.0;    ///< throughput over that of the first row
    double efficiency = 1.0; ///< speed-up over the growth of ranks, 0..
    double computeShare = 0.0;
    double waitShare = 0.0; ///< of elapsed time of all ranks, 0..1
    double transferShare = 0.0;
    double imbalance = 1.0; ///< slowest rank's computing over the mean
};

/// By rising ranks; the base is the run on the fewest ranks. Runs without a measured time are left
/// out. Meaningful when model, data and settings agree, which comparePair() says.
[[nodiscard]] std::vector<ScalingRow> scalingOf(std::span<const ComparedRun> runs);

/// Speed-up over ranks with the ideal line, and efficiency, as one SVG document.
[[nodiscard]] std::string scalingSvg(std::span<const ScalingRow> rows, std::string_view title);

} // namespace muster::run
