// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "align/verdict.h"
#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::report {

/// One metric over the samples. `value` is absent when it is undefined; `reason` then says why.
struct Metric {
    bool isHeadline = false; ///< stands in the last line of a run
    int decimals = 2;        ///< for people
    std::string key{}; ///< `exact_match`, `f1`, `HasAns_exact`, … as the official script names it
    std::string label{}; ///< for people: `EM`, `F1`
    std::optional<double> value{};
    std::string unit{};   ///< `%` or empty
    std::string method{}; ///< rule and version, such as `squad-1.1, squad-en/1`
    std::uint64_t n = 0;  ///< samples it is formed over
    /// Standard error and interval around the mean, in the metric's unit.
    std::optional<double> standardError{};
    std::optional<double> low{};
    std::optional<double> high{};
    std::string intervalMethod{}; ///< such as `normal, 95 %`
    /// The same by resampling the samples in index order.
    std::optional<double> bootstrapError{};
    std::optional<double> bootstrapLow{};
    std::optional<double> bootstrapHigh{};
    std::string bootstrapMethod{}; ///< such as `bootstrap, 1000 replicates, seed 0, 95 %`
    std::string reason{};
};

/// One entry of the n-best list of a sample.
struct NBestEntry {
    std::string text;
    double startLogit = 0.0;
    double endLogit = 0.0;
    double score = 0.0;
    double probability = 0.0;
};

/// What a scored window of a language model came to.
struct LmFields {
    std::uint64_t document = 0;   ///< number of the document
    std::uint64_t beginToken = 0; ///< first token of the window in the document
    std::uint64_t endToken = 0;   ///< behind the last target
    std::uint32_t scoredFrom = 0; ///< first scored target, from the window's beginning
    std::uint64_t beginByte = 0;  ///< of the scored text in the document
    std::uint64_t endByte = 0;
    std::uint64_t words = 0;      ///< that begin in the scored text
    std::uint64_t characters = 0; ///< code points of the scored text
    std::uint64_t scored = 0;     ///< targets
    double lossSum = 0.0;         ///< nats
    std::uint64_t greedyHits = 0; ///< targets that were the most probable token
    std::vector<float> losses;    ///< of each target, when the run kept them
};

/// What a classified text came to.
struct ClassFields {
    std::string_view pair; ///< second sentence; empty when there is none
    bool hasPair = false;
    std::vector<std::uint32_t> references; ///< right classes
    std::vector<std::uint32_t> predicted;
    std::vector<double> probabilities; ///< [classes]
    std::vector<float> logits;         ///< [classes]
    double loss = 0.0;                 ///< −ln of the right class's probability (one label)
    bool isRight = false;
};

/// What one sample came to. Views are borrowed for the duration of the visit.
struct SampleRow {
    SampleIndex index;
    SampleIndex original;
    std::string_view id;
    std::string_view title;
    std::string_view context;
    std::string_view question;
    std::string_view group;                ///< of the group column; empty without one
    std::vector<std::string_view> targets; ///< reference answers in file order
    Hash128 hash;                          ///< of the sample
    std::string prediction;
    bool isComplete = false; ///< false: outputs are missing, `prediction` is empty
    std::string error;       ///< why the sample could not be computed
    std::vector<NBestEntry> nBest;
    std::optional<double> nullOdds; ///< SQuAD 2.0 rules only
    std::string bestNonNull;        ///< SQuAD 2.0 rules only
    double em = 0.0;                ///< 0 or 1
    double f1 = 0.0;                ///< 0..1
    std::optional<LmFields> lm;
    std::optional<ClassFields> classes;
};

/// A number that another procedure would give for the same outputs, so that a figure seen elsewhere
/// can be recognised.
struct LedgerEntry {
    std::string key{};
    double value = 0.0;
    std::string sentence{}; ///< what the procedure does, and why it is not the result
};

/// Where and when the units of a run were computed; depends on the schedule.
struct UnitProvenance {
    UnitId unit;
    RankId rank;
    std::string node;
    std::uint32_t generation = 0;
    std::uint32_t attempt = 0;
    std::uint64_t sequence = 0;
    std::int64_t startedNs = 0;  ///< since the launch
    std::int64_t finishedNs = 0; ///< since the launch
    std::int64_t arrivalNs = 0;  ///< since the launch
    std::uint64_t realTokens = 0;
    std::uint64_t padTokens = 0;
    std::vector<SampleIndex> samples; ///< of its items, in unit order
};

/// Time of one rank by phase in nanoseconds; the five parts sum to elapsed.
struct RankTiming {
    RankId rank;
    std::string node;
    std::uint32_t generation = 0;
    std::uint64_t units = 0;
    std::uint64_t items = 0;
    std::uint64_t realTokens = 0;
    std::uint64_t padTokens = 0;
    std::int64_t computeNs = 0;
    std::int64_t waitNs = 0;
    std::int64_t transferNs = 0;
    std::int64_t loadNs = 0;
    std::int64_t otherNs = 0;
    std::int64_t elapsedNs = 0;
};

struct Event {
    std::int64_t wallNs = 0;
    std::string level; ///< information, notice, warning, error
    std::string code;
    std::string text;
};

struct DataWarning {
    std::string code;
    std::string sentence;
    std::uint64_t count = 0;
    std::vector<std::uint64_t> first;
};

/// One gate of the configuration and what was found.
struct GateResult {
    std::string text;
    std::optional<double> found;
    bool isMet = false;
};

/// Everything that a finished run knows. A plain value; the samples are visited, not held.
struct RunResult {
    std::string runId;
    std::string name;
    std::string task = "qa";
    std::string model;      ///< path as configured
    std::string data;       ///< paths as configured, joined by ", "
    std::string configToml; ///< resolved
    std::string version;    ///< of Muster
    std::string startedUtc;
    std::string finishedUtc;

    align::Verdict verdict = align::Verdict::Unverified;
    std::string sentence;   ///< what the verdict means here
    std::string proofJson;  ///< one document, does not depend on the schedule
    std::string ledgerJson; ///< counts and state of every invariant; depends on the schedule

    Hash128 dataDigest;
    Hash128 tokenizerDigest;
    Hash128 evaluationDigest;
    Hash128 planDigest;
    std::string modelDigest;
    std::string kernels;
    std::string launcher; ///< `Open MPI 4.1.4`

    std::uint64_t samples = 0;
    std::uint64_t samplesDone = 0; ///< complete ones
    std::uint64_t items = 0;
    std::uint64_t units = 0;
    bool isSquadV2 = false;
    bool hasTokenLosses = false;         ///< lm: the rows hold the loss of each token
    std::vector<std::string> classNames; ///< classification
    std::string procedure;               ///< lm: what was scored and how, in one sentence
    std::vector<Metric> metrics;
    std::vector<LedgerEntry> ledger; ///< lm: wrong averages
    /// Classification, one label: how many samples of each right class (row) were predicted as each
    /// class (column).
    std::vector<std::vector<std::uint64_t>> confusion;
    /// Figures that are no metrics: `no_valid_span`, `missing`, `em_without_f1`, …
    std::vector<std::pair<std::string, std::uint64_t>> counts;
    std::vector<std::string> hints; ///< sentences worth reading beside the metrics
    std::vector<DataWarning> dataWarnings;
    std::vector<GateResult> gates;

    std::uint32_t ranks = 1;
    std::uint32_t threadsPerRank = 1;
    std::string schedule;
    std::string gather;
    std::string dtype;
    double elapsedSeconds = 0.0; ///< launch to the last acknowledgement
    double sinceFirstUnitSeconds = 0.0;
    double startUpSeconds = 0.0;     ///< launch to the first unit
    double prepareSeconds = 0.0;     ///< reading, tokenising, planning
    double predictedImbalance = 1.0; ///< slowest rank over mean; 1 for a pulled schedule
    std::vector<RankTiming> timing;
    std::vector<UnitProvenance> provenance;
    std::vector<Event> events;

    /// Visits all samples in index order; may be called more than once and from one thread at a
    /// time.
    std::function<Status(const std::function<void(const SampleRow&)>&)> forEachSample;
};

/// Shares over all ranks after the first unit, 0..1: transfer / elapsed and wait / elapsed.
struct Shares {
    double transfer = 0.0;
    double wait = 0.0;
};
[[nodiscard]] Shares shares(const RunResult& result);

} // namespace muster::report
