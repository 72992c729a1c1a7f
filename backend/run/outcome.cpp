// SPDX-License-Identifier: Apache-2.0
#include "run/outcome.h"

#include "base/clock.h"
#include "base/file.h"
#include "config/write.h"
#include "launch/process_ref.h"
#include "metrics/intervals.h"
#include "plan/schedule.h"
#include "report/write_files.h"
#include "store/history.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <unistd.h>

namespace muster::run {

namespace {

/// A bootstrap of more draws than this is left out, with a reason.
constexpr std::uint64_t mostDraws = 200'000'000;

std::string percentText(double confidence)
{
    return fmt::format("{:g} %", 100.0 * confidence);
}

std::string_view scheduleName(const config::RunConfig& config)
{
    switch (config.plan.schedule) {
    case config::Schedule::Dynamic:
        return "dynamic";
    case config::Schedule::Block:
        return "block";
    case config::Schedule::Stride:
        return "stride";
    case config::Schedule::Balanced:
        return "balanced";
    case config::Schedule::Compat:
        break;
    }
    return "compat";
}

std::string_view gatherName(config::Gather gather)
{
    switch (gather) {
    case config::Gather::Stream:
        return "stream";
    case config::Gather::Collective:
        return "collective";
    case config::Gather::Nccl:
        break;
    }
    return "nccl";
}

std::string_view dtypeName(config::Dtype dtype)
{
    switch (dtype) {
    case config::Dtype::Float32:
        return "float32";
    case config::Dtype::Bfloat16:
        return "bfloat16";
    case config::Dtype::Float16:
        break;
    }
    return "float16";
}

/// Fills intervals over per-sample values in percent.
void addIntervals(report::Metric& metric, const std::vector<double>& values,
                  const config::MetricConfig& config)
{
    const auto normal = metrics::normalInterval(values, config.confidence);
    if (normal) {
        metric.standardError = normal->standardError;
        metric.low = normal->low;
        metric.high = normal->high;
        metric.intervalMethod = "normal, " + percentText(config.confidence);
    } else {
        metric.reason = normal.error().message;
    }
    if (config.bootstrap == 0)
        return;
    if (values.size() * std::uint64_t{config.bootstrap} > mostDraws) {
        metric.bootstrapMethod = fmt::format("left out: {} values × {} replicates are too many",
                                             values.size(), config.bootstrap);
        return;
    }
    metrics::BootstrapOptions options;
    options.replicates = config.bootstrap;
    options.seed = config.seed;
    options.confidence = config.confidence;
    if (const auto sampled = metrics::bootstrapMean(values, options)) {
        metric.bootstrapError = sampled->standardError;
        metric.bootstrapLow = sampled->low;
        metric.bootstrapHigh = sampled->high;
        metric.bootstrapMethod =
            fmt::format("bootstrap, {} replicates, seed {}, {}", config.bootstrap, config.seed,
                        percentText(config.confidence));
    }
}

report::Metric metric(std::string key, std::string label, std::optional<double> value,
                      std::string method, std::uint64_t n)
{
    report::Metric made;
    made.key = std::move(key);
    made.label = std::move(label);
    made.value = value;
    made.unit = "%";
    made.method = std::move(method);
    made.n = n;
    if (!value)
        made.reason = n == 0 ? "no sample of this kind" : "not defined";
    return made;
}

void addMetrics(report::RunResult& result, const QaJob& job, const QaSummary& summary,
                const config::RunConfig& config)
{
    const bool isV2 = summary.version == metrics::SquadVersion::V2;
    const std::string method = fmt::format("squad-{}, {}", isV2 ? "2.0" : "1.1", job.normalizer());
    const metrics::SquadTotals& totals = summary.totals;
    std::vector<double> em;
    std::vector<double> f1;
    em.reserve(job.questionScores().size());
    f1.reserve(job.questionScores().size());
    for (const metrics::QuestionScore& score : job.questionScores()) {
        em.push_back(100.0 * score.em);
        f1.push_back(100.0 * score.f1);
    }
    report::Metric exact = metric("exact_match", "EM", totals.all.exact, method, totals.all.total);
    addIntervals(exact, em, config.metrics);
    report::Metric f = metric("f1", "F1", totals.all.f1, method, totals.all.total);
    addIntervals(f, f1, config.metrics);
    result.metrics.push_back(std::move(exact));
    result.metrics.push_back(std::move(f));
    if (isV2) {
        const auto add = [&](const char* key, const char* label, std::optional<double> value,
                             std::uint64_t n) {
            result.metrics.push_back(metric(key, label, value, method, n));
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
                report::Metric made = metric(key, label, value, rule, n);
                made.unit.clear();
                if (!value)
                    made.reason = "reached by answering nothing";
                result.metrics.push_back(std::move(made));
            };
            constexpr const char* official = "squad-2.0 script: ties are not grouped (T-39)";
            constexpr const char* reachable = "best value that a threshold reaches, ties grouped";
            result.metrics.push_back(metric("best_exact", "best EM", best.bestExact, official, n));
            addThreshold("best_exact_thresh", "threshold of best EM", best.bestExactThreshold,
                         official);
            result.metrics.push_back(metric("best_f1", "best F1", best.bestF1, official, n));
            addThreshold("best_f1_thresh", "threshold of best F1", best.bestF1Threshold, official);
            result.metrics.push_back(metric("best_exact_reachable", "best EM, ties grouped",
                                            best.reachableExact.value, reachable, n));
            addThreshold("best_exact_reachable_thresh", "its threshold",
                         best.reachableExact.threshold, reachable);
            result.metrics.push_back(metric("best_f1_reachable", "best F1, ties grouped",
                                            best.reachableF1.value, reachable, n));
            addThreshold("best_f1_reachable_thresh", "its threshold", best.reachableF1.threshold,
                         reachable);
        }
    }
    if (config.plan.schedule == config::Schedule::Compat) {
        const auto lists = plan::compatLists(config.plan.compat, job.samples(),
                                             config.cluster.ranks, config.plan.compatBatch);
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
                result.metrics.push_back(metric("compat_padded_exact_match", "EM with copies",
                                                padded / static_cast<double>(rows),
                                                rule + ", copies scored", rows));
                result.metrics.push_back(metric("compat_mean_of_ranks_exact_match",
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

report::SampleRow rowOf(const QaJob& job, const data::Sample& sample, const QaSampleResult& from)
{
    const data::Dataset& dataset = job.dataset();
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

void addGates(report::RunResult& result, const config::RunConfig& config)
{
    for (const config::Gate& gate : config.gates) {
        report::GateResult found;
        found.text = fmt::format("{} {} {:g}", gate.metric, gate.comparison, gate.value);
        const std::string key =
            gate.metric == "em" || gate.metric == "exact" ? "exact_match" : gate.metric;
        for (const report::Metric& metric : result.metrics)
            if (metric.key == key)
                found.found = metric.value;
        if (gate.metric == "misaligned")
            found.found = result.verdict == align::Verdict::Misaligned ? 1.0 : 0.0;
        if (gate.metric == "missing")
            found.found = static_cast<double>(result.samples - result.samplesDone);
        if (found.found) {
            const double v = *found.found;
            const std::string& c = gate.comparison;
            found.isMet = c == ">="   ? v >= gate.value
                          : c == ">"  ? v > gate.value
                          : c == "<=" ? v <= gate.value
                          : c == "<"  ? v < gate.value
                          : c == "==" ? v == gate.value
                                      : v != gate.value;
        }
        result.gates.push_back(std::move(found));
    }
}

std::vector<report::UnitProvenance> provenanceOf(const QaJob& job, store::RunFile& file,
                                                 std::int64_t originNs, std::optional<Error>& error)
{
    std::vector<report::UnitProvenance> rows;
    std::vector<std::vector<std::uint64_t>> unitItems;
    auto visited = file.forEachUnit([&](UnitId, store::UnitRecord&& unit) {
        unitItems.push_back(std::move(unit.items));
        return true;
    });
    auto records = file.outputRecords();
    if (!visited || !records) {
        error = visited ? records.error() : visited.error();
        return rows;
    }
    for (const store::OutputRecord& record : *records) {
        report::UnitProvenance row;
        row.unit = record.unit;
        row.rank = record.rank;
        row.node = record.node;
        row.generation = record.generation;
        row.attempt = record.attempt;
        row.sequence = record.sequence;
        row.startedNs = record.startedNs - originNs;
        row.finishedNs = record.finishedNs - originNs;
        row.arrivalNs = record.arrivalNs - originNs;
        row.realTokens = record.realTokens;
        row.padTokens = record.padTokens;
        if (record.unit.value < unitItems.size())
            for (const std::uint64_t item : unitItems[static_cast<std::size_t>(record.unit.value)])
                if (item < job.qaItems().size())
                    row.samples.emplace_back(job.qaItems()[static_cast<std::size_t>(item)].sample);
        rows.push_back(std::move(row));
    }
    return rows;
}

/// What the plan says of samples and items; the units are left to the caller.
align::PlanFacts factsOf(const QaJob& job)
{
    align::PlanFacts facts;
    facts.samples = job.samples();
    facts.itemSample.reserve(job.qaItems().size());
    for (const QaItem& item : job.qaItems())
        facts.itemSample.push_back(item.sample);
    facts.itemUnit.assign(job.qaItems().size(), align::noUnit);
    facts.itemHash.assign(job.itemHashes().begin(), job.itemHashes().end());
    facts.planDigest = job.digests().plan;
    facts.dataDigest = job.digests().data;
    return facts;
}

/// What a result takes from configuration, job and ledger alone; the same for a run and for verify.
Result<std::shared_ptr<report::RunResult>>
resultOf(const config::RunConfig& config, const QaJob& job, align::Ledger& ledger,
         const std::string& version, const std::string& modelDigest, std::uint64_t units)
{
    auto result = std::make_shared<report::RunResult>();
    std::vector<std::uint64_t> order;
    order.reserve(job.samples());
    const auto summary = job.score([&](const data::Sample& sample, const QaSampleResult&) {
        order.push_back(sample.index.value);
    });
    if (!summary)
        return fail(summary.error());
    ledger.exported("samples.jsonl", order);
    const align::Proof proof = ledger.proof();
    result->verdict = proof.verdict;
    result->sentence = proof.sentence;
    result->proofJson = align::proofJson(proof, version);
    result->ledgerJson = align::ledgerJson(proof);
    result->samples = job.samples();
    result->samplesDone = summary->complete;
    result->items = job.qaItems().size();
    result->units = units;
    result->isSquadV2 = summary->version == metrics::SquadVersion::V2;
    result->name = config.name;
    result->model = config.model.path.string();
    for (const auto& file : config.data.files)
        result->data += (result->data.empty() ? "" : ", ") + file.string();
    result->version = version;
    result->dataDigest = job.digests().data;
    result->tokenizerDigest = job.digests().tokenizer;
    result->evaluationDigest = job.digests().evaluation;
    result->planDigest = job.digests().plan;
    result->modelDigest = modelDigest;
    result->ranks = config.cluster.ranks;
    result->threadsPerRank = config.cluster.threadsPerRank;
    result->schedule = config.plan.schedule == config::Schedule::Compat
                           ? "compat:" + config.plan.compat
                           : std::string(scheduleName(config));
    result->gather = gatherName(config.cluster.gather);
    result->dtype = dtypeName(config.model.dtype);
    addMetrics(*result, job, *summary, config);
    for (const data::Warning& warning : job.dataset().warnings) {
        report::DataWarning made{warning.code, warning.sentence, warning.count, {}};
        for (const SampleIndex index : warning.first20)
            made.first.push_back(index.value);
        result->dataWarnings.push_back(std::move(made));
    }
    addGates(*result, config);
    result->forEachSample =
        [&job](const std::function<void(const report::SampleRow&)>& visit) -> Status {
        const auto scored =
            job.score([&](const data::Sample& sample, const QaSampleResult& sampleResult) {
                visit(rowOf(job, sample, sampleResult));
            });
        if (!scored)
            return fail(scored.error());
        return {};
    };
    return result;
}

std::string summaryLine(const report::RunResult& result)
{
    std::string line =
        fmt::format("{} {}/{}", align::word(result.verdict), result.samplesDone, result.samples);
    for (const report::Metric& metric : result.metrics) {
        if (metric.label != "EM" && metric.label != "F1")
            continue;
        line += metric.value ? fmt::format("  {} {:.2f} %", metric.label, *metric.value)
                             : fmt::format("  {} -", metric.label);
    }
    return line;
}

/// Timing document of a run, so that `show` and `verify` need not guess.
std::string timingJson(const report::RunResult& result)
{
    nlohmann::ordered_json json;
    json["started"] = result.startedUtc;
    json["finished"] = result.finishedUtc;
    json["launcher"] = result.launcher;
    json["kernels"] = result.kernels;
    json["elapsed_s"] = result.elapsedSeconds;
    json["since_first_unit_s"] = result.sinceFirstUnitSeconds;
    json["start_up_s"] = result.startUpSeconds;
    json["prepare_s"] = result.prepareSeconds;
    json["predicted_imbalance"] = result.predictedImbalance;
    json["ranks"] = nlohmann::ordered_json::array();
    for (const report::RankTiming& rank : result.timing)
        json["ranks"].push_back({{"rank", rank.rank.value},
                                 {"node", rank.node},
                                 {"generation", rank.generation},
                                 {"units", rank.units},
                                 {"items", rank.items},
                                 {"real_tokens", rank.realTokens},
                                 {"pad_tokens", rank.padTokens},
                                 {"compute_ns", rank.computeNs},
                                 {"wait_ns", rank.waitNs},
                                 {"transfer_ns", rank.transferNs},
                                 {"load_ns", rank.loadNs},
                                 {"other_ns", rank.otherNs},
                                 {"elapsed_ns", rank.elapsedNs}});
    return json.dump();
}

void readTiming(const std::string& text, report::RunResult& result)
{
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object())
        return;
    const auto number = [](const nlohmann::json& from, const char* key) {
        return from.contains(key) && from[key].is_number() ? from[key].get<double>() : 0.0;
    };
    const auto integer = [](const nlohmann::json& from, const char* key) {
        return from.contains(key) && from[key].is_number_integer() ? from[key].get<std::int64_t>()
                                                                   : std::int64_t{0};
    };
    const auto text_ = [](const nlohmann::json& from, const char* key) {
        return from.contains(key) && from[key].is_string() ? from[key].get<std::string>()
                                                           : std::string();
    };
    result.startedUtc = text_(json, "started");
    result.finishedUtc = text_(json, "finished");
    result.launcher = text_(json, "launcher");
    result.kernels = text_(json, "kernels");
    result.elapsedSeconds = number(json, "elapsed_s");
    result.sinceFirstUnitSeconds = number(json, "since_first_unit_s");
    result.startUpSeconds = number(json, "start_up_s");
    result.prepareSeconds = number(json, "prepare_s");
    result.predictedImbalance = number(json, "predicted_imbalance");
    if (!json.contains("ranks") || !json["ranks"].is_array())
        return;
    for (const auto& entry : json["ranks"]) {
        if (!entry.is_object())
            continue;
        report::RankTiming rank;
        rank.rank = RankId(static_cast<std::uint32_t>(integer(entry, "rank")));
        rank.node = text_(entry, "node");
        rank.generation = static_cast<std::uint32_t>(integer(entry, "generation"));
        rank.units = static_cast<std::uint64_t>(integer(entry, "units"));
        rank.items = static_cast<std::uint64_t>(integer(entry, "items"));
        rank.realTokens = static_cast<std::uint64_t>(integer(entry, "real_tokens"));
        rank.padTokens = static_cast<std::uint64_t>(integer(entry, "pad_tokens"));
        rank.computeNs = integer(entry, "compute_ns");
        rank.waitNs = integer(entry, "wait_ns");
        rank.transferNs = integer(entry, "transfer_ns");
        rank.loadNs = integer(entry, "load_ns");
        rank.otherNs = integer(entry, "other_ns");
        rank.elapsedNs = integer(entry, "elapsed_ns");
        result.timing.push_back(std::move(rank));
    }
}

constexpr std::string_view timingDocument = "timing.json";

} // namespace

int exitCodeOf(const Error& error)
{
    switch (error.kind) {
    case Error::Kind::Usage:
        return 2;
    case Error::Kind::Invalid:
    case Error::Kind::NotFound:
        return 3;
    case Error::Kind::Launch:
        return 4;
    case Error::Kind::Incomplete:
        return 5;
    case Error::Kind::Integrity:
        return 6;
    case Error::Kind::Gate:
        return 7;
    case Error::Kind::Incomparable:
        return 8;
    case Error::Kind::Internal:
        return 9;
    case Error::Kind::Timeout:
        return 124;
    case Error::Kind::Cancelled:
        return 130;
    case Error::Kind::Io:
    case Error::Kind::Protocol:
    case Error::Kind::Undefined:
        break;
    }
    return 1;
}

int exitCodeOf(const report::RunResult& result, const std::optional<Error>& error)
{
    if (result.verdict == align::Verdict::Misaligned)
        return 6;
    if (error)
        return exitCodeOf(*error);
    if (result.verdict != align::Verdict::Aligned || result.samplesDone != result.samples)
        return 5;
    const bool gatesMet = std::all_of(result.gates.begin(), result.gates.end(),
                                      [](const report::GateResult& gate) { return gate.isMet; });
    return gatesMet ? 0 : 7;
}

Status checkTask(const config::RunConfig& config)
{
    if (config.task == config::Task::Qa)
        return {};
    return fail(
        Error::Kind::Invalid, "E-RUN-004",
        fmt::format("task {} is not evaluated by this version; it evaluates qa. Nothing was "
                    "started.",
                    config.task == config::Task::Lm ? "lm" : "classification"));
}

wire::RankConfig rankConfigOf(const config::RunConfig& config)
{
    wire::RankConfig made;
    const std::string path = config.model.path.string();
    made.modelPath =
        path == "synthetic" ? path : std::filesystem::absolute(config.model.path).string();
    made.kind = wire::UnitKind::Qa;
    made.precision = dtypeName(config.model.dtype);
    made.threads = config.cluster.threadsPerRank;
    made.nBest = config.qa.nBest;
    made.ties = config.qa.ties == config::TieMode::Hf ? "hf" : "bert";
    made.gather = config.cluster.gather == config::Gather::Stream ? wire::GatherMode::Stream
                  : config.cluster.gather == config::Gather::Collective
                      ? wire::GatherMode::Collective
                      : wire::GatherMode::Nccl;
    made.pin = config.cluster.pin == config::Switch::Off ? wire::PinMode::Off : wire::PinMode::Core;
    made.heartbeatMs = static_cast<std::uint32_t>(config.cluster.heartbeatS * 1000.0);
    made.graceMs = static_cast<std::uint32_t>(config.cluster.graceS * 1000.0);
    made.inject = config.inject;
    return made;
}

std::string toJson(const Fingerprint& fingerprint)
{
    const nlohmann::ordered_json json{{"model", fingerprint.modelDigest},
                                      {"kernels", fingerprint.kernels},
                                      {"architecture", fingerprint.architecture},
                                      {"version", fingerprint.version},
                                      {"binary", fingerprint.binaryDigest}};
    return json.dump();
}

std::optional<Fingerprint> fingerprintFromJson(const std::string& text)
{
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object())
        return std::nullopt;
    Fingerprint made;
    for (const auto& [key, into] :
         {std::pair<const char*, std::string*>{"model", &made.modelDigest},
          {"kernels", &made.kernels},
          {"architecture", &made.architecture},
          {"version", &made.version},
          {"binary", &made.binaryDigest}}) {
        if (!json.contains(key) || !json[key].is_string())
            return std::nullopt;
        *into = json[key].get<std::string>();
    }
    return made;
}

Status writeLockOwner(int descriptor)
{
    const auto self = launch::processRef(::getpid());
    const std::string text =
        fmt::format("{} {}\n", ::getpid(), self ? self->startTicks : std::uint64_t{0});
    if (::ftruncate(descriptor, 0) != 0 ||
        ::pwrite(descriptor, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
        return fail(Error::Kind::Io, "E-RUN-042", "the lock of the run folder cannot be written.");
    return {};
}

std::unique_ptr<align::Ledger> makeQaLedger(const QaJob& job, const plan::UnitTable& units,
                                            const std::vector<RankId>& owners)
{
    align::PlanFacts facts = factsOf(job);
    facts.units = units.size();
    for (std::uint64_t i = 0; i < facts.itemUnit.size(); ++i)
        facts.itemUnit[static_cast<std::size_t>(i)] =
            static_cast<std::uint32_t>(units.unitOf(ItemIndex(i)).value);
    facts.owners = owners;
    return std::make_unique<align::Ledger>(std::move(facts));
}

Status recallViolations(store::RunFile& file, align::Ledger& ledger)
{
    using align::Invariant;
    // Codes of align/ledger.cpp, E-ALIGN-001 on.
    static constexpr std::array<Invariant, 13> invariantOf{
        Invariant::Coverage, Invariant::Coverage, Invariant::Coverage,   Invariant::Identity,
        Invariant::Identity, Invariant::Range,    Invariant::Ownership,  Invariant::Ownership,
        Invariant::Padding,  Invariant::Sums,     Invariant::Provenance, Invariant::Position,
        Invariant::Range};
    constexpr std::string_view prefix = "E-ALIGN-";
    auto events = file.events();
    if (!events)
        return fail(events.error());
    bool found = false;
    for (const store::EventRecord& event : *events) {
        if (!event.code.starts_with(prefix))
            continue;
        const std::size_t number = std::strtoul(event.code.c_str() + prefix.size(), nullptr, 10);
        const bool isKnown = number >= 1 && number <= invariantOf.size();
        ledger.contradiction(isKnown ? invariantOf[number - 1] : Invariant::Identity,
                             "found while the run went on", event.text);
        found = true;
    }
    if (found)
        return {};
    auto verdict = file.meta(store::key::verdict);
    if (!verdict)
        return fail(verdict.error());
    if (*verdict && **verdict == align::word(align::Verdict::Misaligned)) {
        auto sentence = file.meta("sentence");
        ledger.contradiction(Invariant::Sums, "found when the run ended",
                             sentence && *sentence ? **sentence : "the run ended misaligned");
    }
    return {};
}

Result<std::shared_ptr<const report::RunResult>> scoreAndWrite(const ScoreRequest& request,
                                                               const QaJob& job,
                                                               align::Ledger& ledger,
                                                               store::RunFile& file)
{
    const std::string model = request.fingerprint ? request.fingerprint->modelDigest : "";
    auto made =
        resultOf(request.config, job, ledger, request.programVersion, model, job.units()->size());
    if (!made)
        return fail(made.error());
    report::RunResult& result = **made;
    result.runId = request.folder.filename().string();
    result.configToml = config::toToml(request.resolved);
    result.startedUtc = utcTime(request.startWallNs);
    result.finishedUtc = utcTime(wallClockNs());
    result.kernels = request.fingerprint ? request.fingerprint->kernels : "";
    result.launcher = request.launcher;
    const auto seconds = [](std::int64_t from, std::int64_t to) {
        return from == 0 || to <= from ? 0.0 : static_cast<double>(to - from) / 1e9;
    };
    result.elapsedSeconds = seconds(request.launchNs, request.drainedNs);
    result.sinceFirstUnitSeconds = seconds(request.firstUnitNs, request.drainedNs);
    result.startUpSeconds = seconds(request.launchNs, request.firstUnitNs);
    result.prepareSeconds = request.prepareSeconds;
    if (!request.owners.empty())
        result.predictedImbalance = plan::imbalance(
            plan::workOf(request.owners, job.units()->costs(), request.config.cluster.ranks));
    if (request.snapshot)
        for (const RankView& rank : request.snapshot->ranks) {
            report::RankTiming timing;
            timing.rank = rank.rank;
            timing.node = rank.node;
            timing.generation = rank.generation;
            timing.units = rank.units;
            timing.items = rank.items;
            timing.realTokens = rank.realTokens;
            timing.padTokens = rank.padTokens;
            timing.computeNs = rank.times.computeNs;
            timing.waitNs = rank.times.waitNs;
            timing.transferNs = rank.times.transferNs;
            timing.loadNs = rank.times.loadNs;
            timing.otherNs = rank.times.otherNs;
            timing.elapsedNs = rank.times.elapsedNs;
            result.timing.push_back(std::move(timing));
        }
    std::optional<Error> error;
    result.provenance = provenanceOf(job, file, request.launchNs, error);
    if (error)
        return fail(*error);
    auto events = file.events();
    if (!events)
        return fail(events.error());
    static constexpr std::array<const char*, 4> levels{"information", "notice", "warning", "error"};
    for (const store::EventRecord& event : *events)
        result.events.push_back({event.wallNs, levels[std::min<std::uint32_t>(event.level, 3)],
                                 event.code, event.text});

    if (const Status written = report::writeRunFiles(request.folder, result); !written)
        return fail(written.error());

    std::vector<store::PredictionRecord> predictions;
    predictions.reserve(job.samples());
    const auto visited = job.score([&](const data::Sample&, const QaSampleResult& sample) {
        store::PredictionRecord record;
        record.text = sample.prediction.text;
        if (sample.isComplete) {
            record.em = sample.score.em;
            record.f1 = sample.score.f1;
        }
        record.nullOdds = sample.prediction.nullOdds;
        predictions.push_back(std::move(record));
    });
    if (!visited)
        return fail(visited.error());
    const std::string summary = summaryLine(result);
    for (const Status& stored :
         {file.setPredictions(predictions), file.setDocument(store::doc::proof, result.proofJson),
          file.setDocument(timingDocument, timingJson(result)),
          file.setMeta(store::key::verdict, std::string(align::word(result.verdict))),
          file.setMeta(store::key::summary, summary), file.setMeta("sentence", result.sentence),
          file.setMeta(store::key::ranks, std::to_string(request.config.cluster.ranks)),
          file.setMeta(store::key::finishedNs, std::to_string(wallClockNs())),
          file.setMeta("fingerprint",
                       request.fingerprint ? toJson(*request.fingerprint) : std::string())})
        if (!stored)
            return fail(stored.error());
    // The history is only an index: a run does not fail because it cannot be listed.
    if (auto history = store::History::open(store::History::defaultPath())) {
        store::HistoryEntry entry;
        entry.id = result.runId;
        entry.folder = std::filesystem::absolute(request.folder);
        entry.createdNs = request.startWallNs;
        entry.name = result.name;
        entry.task = result.task;
        entry.model = result.model;
        entry.data = result.data;
        entry.ranks = result.ranks;
        entry.verdict = align::word(result.verdict);
        entry.summary = summary;
        (void)history->add(entry);
    }
    return std::shared_ptr<const report::RunResult>(*made);
}

namespace {

/// A run as its file has it: job with outputs, ledger, result.
struct Loaded {
    std::unique_ptr<QaJob> job;
    std::unique_ptr<align::Ledger> ledger;
    std::shared_ptr<report::RunResult> result;
    std::vector<std::string> findings;
};

Result<std::shared_ptr<Loaded>> loadRun(const std::filesystem::path& folder)
{
    auto file = store::RunFile::open(folder / "run.muster", store::Access::ReadOnly);
    if (!file)
        return fail(file.error());
    auto toml = file->document(store::doc::config);
    if (!toml)
        return fail(toml.error());
    if (!*toml)
        return fail(Error::Kind::Incomplete, "E-RUN-003",
                    fmt::format("{} has no configuration: the run ended before it was planned.",
                                folder.string()));
    auto resolved = config::readToml({"run.toml", **toml, {}}).result();
    if (!resolved)
        return fail(resolved.error());
    config::RunConfig config = resolved->config;
    auto ranks = file->meta(store::key::ranks);
    if (ranks && *ranks && !(*ranks)->empty())
        config.cluster.ranks =
            static_cast<std::uint32_t>(std::strtoul((*ranks)->c_str(), nullptr, 10));
    auto loaded = std::make_shared<Loaded>();
    auto job = QaJob::load(config, *file);
    if (!job)
        return fail(job.error());
    loaded->job = std::move(*job);

    align::PlanFacts facts = factsOf(*loaded->job);
    bool isWhole = true;
    auto visited = file->forEachUnit([&](UnitId id, store::UnitRecord&& unit) {
        for (const std::uint64_t item : unit.items) {
            isWhole = isWhole && item < facts.itemUnit.size();
            if (isWhole)
                facts.itemUnit[static_cast<std::size_t>(item)] =
                    static_cast<std::uint32_t>(id.value);
        }
        ++facts.units;
        return isWhole;
    });
    if (!visited)
        return fail(visited.error());
    if (!isWhole)
        return fail(Error::Kind::Integrity, "E-RUN-002",
                    fmt::format("{}: a unit names an item that is not there.", folder.string()));
    const std::uint64_t units = facts.units;
    loaded->ledger = std::make_unique<align::Ledger>(std::move(facts));
    visited =
        file->forEachOutput([&](const store::OutputRecord& record, wire::OutputBlock&& block) {
            loaded->ledger->assigned(record.unit, record.rank);
            const align::BlockResult receipt = loaded->ledger->block(block, record.rank);
            if (!receipt.sentence.empty())
                loaded->findings.push_back(receipt.sentence);
            loaded->job->accept(block);
            return true;
        });
    if (!visited)
        return fail(visited.error());
    if (const Status recalled = recallViolations(*file, *loaded->ledger); !recalled)
        return fail(recalled.error());
    auto fingerprint = file->meta("fingerprint");
    const auto print =
        fingerprint && *fingerprint ? fingerprintFromJson(**fingerprint) : std::nullopt;
    auto version = file->meta(store::key::version);
    auto result = resultOf(config, *loaded->job, *loaded->ledger,
                           version && *version ? **version : std::string(),
                           print ? print->modelDigest : std::string(), units);
    if (!result)
        return fail(result.error());
    loaded->result = std::move(*result);
    loaded->result->runId = folder.filename().string();
    loaded->result->configToml = **toml;
    if (auto timing = file->document(timingDocument); timing && *timing)
        readTiming(**timing, *loaded->result);
    std::optional<Error> error;
    loaded->result->provenance = provenanceOf(*loaded->job, *file, 0, error);
    if (error)
        return fail(*error);

    // What the run itself concluded: a fault that was seen while it ran is never forgotten.
    auto stored = file->document(store::doc::proof);
    if (stored && *stored) {
        const auto proof = nlohmann::json::parse(**stored, nullptr, false);
        const auto again = nlohmann::json::parse(loaded->result->proofJson);
        if (!proof.is_object() || !proof.contains("digests") || !proof.contains("verdict")) {
            loaded->findings.emplace_back("the stored proof cannot be read");
        } else {
            if (proof["digests"] != again["digests"])
                loaded->findings.emplace_back(
                    "the digests of the stored proof are not those of the data in the run file");
            const std::string verdict =
                proof["verdict"].is_string() ? proof["verdict"].get<std::string>() : std::string();
            if (verdict == "MISALIGNED") {
                loaded->result->verdict = align::Verdict::Misaligned;
                auto sentence = file->meta("sentence");
                loaded->result->sentence =
                    sentence && *sentence ? **sentence : "the run found itself misaligned";
                loaded->result->proofJson = **stored;
            } else if (verdict != align::word(loaded->result->verdict)) {
                loaded->findings.push_back(
                    fmt::format("the run was stored as {}, but its data say {}", verdict,
                                align::word(loaded->result->verdict)));
            }
        }
        std::uint64_t differing = 0;
        std::vector<store::PredictionRecord> predictions;
        visited = file->forEachPrediction([&](SampleIndex, store::PredictionRecord&& record) {
            predictions.push_back(std::move(record));
            return true;
        });
        if (!visited)
            return fail(visited.error());
        if (predictions.size() != loaded->job->samples()) {
            loaded->findings.push_back(fmt::format("{} predictions are stored for {} samples",
                                                   predictions.size(), loaded->job->samples()));
        } else {
            const auto scored =
                loaded->job->score([&](const data::Sample& sample, const QaSampleResult& again_) {
                    const auto& record = predictions[static_cast<std::size_t>(sample.index.value)];
                    const bool isEqual = record.text == again_.prediction.text &&
                                         (!again_.isComplete || (record.em == again_.score.em &&
                                                                 record.f1 == again_.score.f1));
                    differing += isEqual ? 0U : 1U;
                });
            if (!scored)
                return fail(scored.error());
            if (differing > 0)
                loaded->findings.push_back(
                    fmt::format("{} stored predictions or scores are not those that the stored "
                                "outputs give",
                                differing));
        }
    }
    return loaded;
}

} // namespace

Result<std::shared_ptr<const report::RunResult>> loadResult(const std::filesystem::path& folder)
{
    auto loaded = loadRun(folder);
    if (!loaded)
        return fail(loaded.error());
    // The result borrows from the job: keep both as long as it lives.
    return std::shared_ptr<const report::RunResult>(*loaded, (*loaded)->result.get());
}

Result<Verification> verifyRun(const std::filesystem::path& folder)
{
    auto loaded = loadRun(folder);
    if (!loaded)
        return fail(loaded.error());
    Verification verification;
    verification.result =
        std::shared_ptr<const report::RunResult>(*loaded, (*loaded)->result.get());
    verification.findings = (*loaded)->findings;
    for (const std::string& finding : report::differingFiles(folder, *(*loaded)->result))
        verification.findings.push_back(finding);
    return verification;
}

Result<std::filesystem::path> findRun(const std::string& name, const std::filesystem::path& root)
{
    std::error_code error;
    const std::filesystem::path path(name);
    if (std::filesystem::is_regular_file(path, error) && path.filename() == "run.muster")
        return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
    if (std::filesystem::exists(path / "run.muster", error))
        return path.filename().empty() ? path.parent_path() : path;
    std::vector<std::filesystem::path> found;
    for (std::filesystem::directory_iterator entry(root, error), end; !error && entry != end;
         entry.increment(error))
        if (entry->path().filename().string().starts_with(name) &&
            std::filesystem::exists(entry->path() / "run.muster"))
            found.push_back(entry->path());
    if (found.empty())
        if (auto history = store::History::open(store::History::defaultPath()))
            if (auto known = history->find(name))
                return known->folder;
    if (found.empty())
        return fail(
            Error::Kind::NotFound, "E-RUN-050",
            fmt::format("no run is called '{}'. Give its folder, or the beginning of its id; "
                        "`muster history ls` lists them.",
                        name));
    if (found.size() > 1)
        return fail(Error::Kind::Usage, "E-RUN-051",
                    fmt::format("{} runs begin with '{}', such as {} and {}. Give more of the id.",
                                found.size(), name, found[0].filename().string(),
                                found[1].filename().string()));
    return found.front();
}

} // namespace muster::run
