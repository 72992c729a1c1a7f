// SPDX-License-Identifier: Apache-2.0
#include "run/outcome.h"

#include "base/clock.h"
#include "base/file.h"
#include "config/settings.h"
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

/// A choice as the configuration writes it.
std::string choiceText(const config::RunConfig& config, std::string_view key)
{
    const config::Setting* setting = config::findSetting(key);
    const config::Value value = setting->get(config);
    const auto* text = std::get_if<std::string>(&value);
    return text != nullptr ? *text : std::string();
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

std::vector<report::UnitProvenance> provenanceOf(const Job& job, store::RunFile& file,
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
                if (item < job.itemCount())
                    row.samples.emplace_back(job.itemSamples()[static_cast<std::size_t>(item)]);
        rows.push_back(std::move(row));
    }
    return rows;
}

/// What the plan says of samples and items; the units are left to the caller.
align::PlanFacts factsOf(const Job& job)
{
    align::PlanFacts facts;
    facts.samples = job.samples();
    facts.itemSample.assign(job.itemSamples().begin(), job.itemSamples().end());
    facts.itemUnit.assign(job.itemCount(), align::noUnit);
    facts.itemHash.assign(job.itemHashes().begin(), job.itemHashes().end());
    facts.kind = job.kind();
    facts.planDigest = job.digests().plan;
    facts.dataDigest = job.digests().data;
    return facts;
}

/// What a result takes from configuration, job and ledger alone; the same for a run and for verify.
Result<std::shared_ptr<report::RunResult>>
resultOf(const config::RunConfig& config, const Job& job, align::Ledger& ledger,
         const std::string& version, const std::string& modelDigest, std::uint64_t units)
{
    auto result = std::make_shared<report::RunResult>();
    std::vector<std::uint64_t> order;
    order.reserve(job.samples());
    if (const Status summed =
            job.summarize(*result, [&](SampleIndex sample) { order.push_back(sample.value); });
        !summed)
        return fail(summed.error());
    ledger.exported("samples.jsonl", order);
    const align::Proof proof = ledger.proof();
    result->verdict = proof.verdict;
    result->sentence = proof.sentence;
    result->proofJson = align::proofJson(proof, version);
    result->ledgerJson = align::ledgerJson(proof);
    result->samples = job.samples();
    result->items = job.itemCount();
    result->units = units;
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
    result->schedule = choiceText(config, "plan.schedule");
    result->gather = choiceText(config, "cluster.gather");
    result->dtype = choiceText(config, "model.dtype");
    if (config.model.dtype == config::Dtype::Int4)
        result->dtype += fmt::format(", groups of {}", config.model.groupSize);
    for (const data::Warning& warning : job.warnings()) {
        report::DataWarning made{warning.code, warning.sentence, warning.count, {}};
        for (const SampleIndex index : warning.first20)
            made.first.push_back(index.value);
        result->dataWarnings.push_back(std::move(made));
    }
    addGates(*result, config);
    result->forEachSample = [&job](const std::function<void(const report::SampleRow&)>& visit) {
        return job.forEachSample(visit);
    };
    return result;
}

std::string summaryLine(const report::RunResult& result)
{
    std::string line =
        fmt::format("{} {}/{}", align::word(result.verdict), result.samplesDone, result.samples);
    for (const report::Metric& metric : result.metrics) {
        if (!metric.isHeadline)
            continue;
        line += metric.value ? fmt::format("  {} {:.{}f}{}", metric.label, *metric.value,
                                           metric.decimals, metric.unit.empty() ? "" : " %")
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

wire::RankConfig rankConfigOf(const config::RunConfig& config)
{
    wire::RankConfig made;
    const std::string path = config.model.path.string();
    made.modelPath =
        path == "synthetic" ? path : std::filesystem::absolute(config.model.path).string();
    made.kind = config.task == config::Task::Lm               ? wire::UnitKind::Lm
                : config.task == config::Task::Classification ? wire::UnitKind::Classification
                                                              : wire::UnitKind::Qa;
    made.precision = choiceText(config, "model.dtype");
    made.groupSize = config.model.groupSize;
    made.tokenLosses = config.lm.tokenLosses == config::Switch::On;
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

std::unique_ptr<align::Ledger> makeLedgerOf(const Job& job, const plan::UnitTable& units,
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
                                                               const Job& job,
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
    const Status visited =
        job.forEachPrediction([&](SampleIndex, store::PredictionRecord&& record) {
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
    std::unique_ptr<Job> job;
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
    auto job = Job::load(config, *file);
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
            const Status scored = loaded->job->forEachPrediction(
                [&](SampleIndex sample, store::PredictionRecord&& again_) {
                    const auto& record = predictions[static_cast<std::size_t>(sample.value)];
                    differing += record == again_ ? 0U : 1U;
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
