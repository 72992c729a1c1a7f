// SPDX-License-Identifier: Apache-2.0
#include "report/write_files.h"

#include "base/file.h"
#include "report/streamed_file_p.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

namespace muster::report {

namespace {

using Json = nlohmann::ordered_json;

/// Text as a JSON string, as it is in UTF-8.
std::string jsonText(std::string_view text)
{
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Text as a JSON string of ASCII alone, as Python writes it.
std::string jsonAscii(std::string_view text)
{
    return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

/// A number, or null when it is not finite (C-065).
std::string number(double value)
{
    return std::isfinite(value) ? nlohmann::json(value).dump() : "null";
}

Json numberJson(std::optional<double> value)
{
    return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

std::string csvField(std::string_view text)
{
    if (text.find_first_of(",\"\r\n") == std::string_view::npos)
        return std::string(text);
    std::string field = "\"";
    for (const char c : text) {
        if (c == '"')
            field += '"';
        field += c;
    }
    return field + "\"";
}

std::string dumped(const Json& json, int indent = 2)
{
    return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

// The writers of the files that hold samples. All are fed from one visit.

class SampleWriter {
public:
    virtual ~SampleWriter() = default;
    SampleWriter() = default;
    SampleWriter(const SampleWriter&) = delete;
    SampleWriter& operator=(const SampleWriter&) = delete;
    virtual void begin(StreamedFile&, const RunResult&) {}
    virtual void sample(StreamedFile& file, const SampleRow& row) = 0;
    virtual void end(StreamedFile&) {}
};

/// A JSON object with one entry for each complete sample, indented by four as run_qa writes it.
class ObjectWriter : public SampleWriter {
public:
    void begin(StreamedFile& file, const RunResult&) override { file << "{"; }
    void sample(StreamedFile& file, const SampleRow& row) override
    {
        if (!row.isComplete || !has(row))
            return;
        file << (m_isFirst ? "\n    " : ",\n    ") << jsonAscii(row.id) << ": ";
        m_isFirst = false;
        value(file, row);
    }
    void end(StreamedFile& file) override { file << (m_isFirst ? "}" : "\n}"); }

protected:
    [[nodiscard]] virtual bool has(const SampleRow&) const { return true; }
    virtual void value(StreamedFile& file, const SampleRow& row) = 0;

private:
    bool m_isFirst = true;
};

class PredictionsWriter final : public ObjectWriter {
    void value(StreamedFile& file, const SampleRow& row) override
    {
        file << jsonAscii(row.prediction);
    }
};

class NullOddsWriter final : public ObjectWriter {
    [[nodiscard]] bool has(const SampleRow& row) const override { return row.nullOdds.has_value(); }
    void value(StreamedFile& file, const SampleRow& row) override { file << number(*row.nullOdds); }
};

class NBestWriter final : public ObjectWriter {
    void value(StreamedFile& file, const SampleRow& row) override
    {
        file << "[";
        bool isFirst = true;
        for (const NBestEntry& entry : row.nBest) {
            file << (isFirst ? "\n        {\n" : ",\n        {\n");
            isFirst = false;
            file << "            \"start_logit\": " << number(entry.startLogit) << ",\n"
                 << "            \"end_logit\": " << number(entry.endLogit) << ",\n"
                 << "            \"text\": " << jsonAscii(entry.text) << ",\n"
                 << "            \"probability\": " << number(entry.probability) << "\n        }";
        }
        file << (isFirst ? "]" : "\n    ]");
    }
};

class SamplesWriter final : public SampleWriter {
    void sample(StreamedFile& file, const SampleRow& row) override
    {
        std::string targets;
        for (const std::string_view target : row.targets)
            targets += (targets.empty() ? "" : ", ") + jsonText(target);
        const std::string prompt = fmt::format("{}\n{}", row.context, row.question);
        file << "{\"doc_id\": " << std::to_string(row.index.value)
             << ", \"doc\": {\"id\": " << jsonText(row.id) << ", \"title\": " << jsonText(row.title)
             << ", \"context\": " << jsonText(row.context)
             << ", \"question\": " << jsonText(row.question) << ", \"answers\": [" << targets
             << "]}, \"target\": [" << targets
             << "], \"arguments\": {\"gen_args_0\": {\"arg_0\": " << jsonText(row.question)
             << "}}, ";
        if (row.isComplete) {
            file << "\"resps\": [[" << jsonText(row.prediction) << "]], \"filtered_resps\": ["
                 << jsonText(row.prediction) << "], ";
        } else {
            file << "\"resps\": [], \"filtered_resps\": [], \"missing\": "
                 << jsonText(row.error.empty() ? "no output came back" : row.error) << ", ";
        }
        file << "\"filter\": \"none\", \"metrics\": [\"exact_match\", \"f1\"], \"doc_hash\": \""
             << row.hash.hex() << "\", \"prompt_hash\": \"" << sha256(prompt)
             << "\", \"target_hash\": \"" << sha256(targets) << "\", ";
        if (row.isComplete && row.nullOdds)
            file << "\"null_odds\": " << number(*row.nullOdds)
                 << ", \"best_non_null\": " << jsonText(row.bestNonNull) << ", ";
        file << "\"exact_match\": " << number(row.em) << ", \"f1\": " << number(row.f1) << "}\n";
    }
};

class SamplesCsvWriter final : public SampleWriter {
    void begin(StreamedFile& file, const RunResult&) override
    {
        file << "index,id,question,prediction,reference,exact_match,f1,null_odds,complete\r\n";
    }
    void sample(StreamedFile& file, const SampleRow& row) override
    {
        file << std::to_string(row.index.value) << "," << csvField(row.id) << ","
             << csvField(row.question) << "," << csvField(row.prediction) << ","
             << csvField(row.targets.empty() ? std::string_view() : row.targets.front()) << ","
             << number(row.em) << "," << number(row.f1) << ","
             << (row.nullOdds ? number(*row.nullOdds) : std::string()) << ","
             << (row.isComplete ? "1" : "0") << "\r\n";
    }
};

/// samples.jsonl of a language model: one row a window, in lm-evaluation-harness's fields.
class LmSamplesWriter final : public SampleWriter {
    void sample(StreamedFile& file, const SampleRow& row) override
    {
        const LmFields& lm = *row.lm;
        file << "{\"doc_id\": " << std::to_string(row.index.value)
             << ", \"doc\": {\"id\": " << jsonText(row.id)
             << ", \"document\": " << std::to_string(lm.document)
             << ", \"name\": " << jsonText(row.title) << ", \"tokens\": ["
             << std::to_string(lm.beginToken) << ", " << std::to_string(lm.endToken)
             << "], \"scored_from\": " << std::to_string(lm.scoredFrom) << ", \"bytes\": ["
             << std::to_string(lm.beginByte) << ", " << std::to_string(lm.endByte)
             << "], \"words\": " << std::to_string(lm.words)
             << ", \"characters\": " << std::to_string(lm.characters)
             << "}, \"target\": " << jsonText(row.context) << ", \"arguments\": {\"gen_args_0\": "
             << "{\"arg_0\": " << jsonText(row.context) << "}}, ";
        if (row.isComplete)
            file << "\"resps\": [[" << number(-lm.lossSum) << "]], \"filtered_resps\": ["
                 << number(-lm.lossSum) << "], ";
        else
            file << "\"resps\": [], \"filtered_resps\": [], \"missing\": "
                 << jsonText(row.error.empty() ? "no output came back" : row.error) << ", ";
        file << "\"filter\": \"none\", \"metrics\": [\"perplexity\"], \"doc_hash\": \""
             << row.hash.hex() << "\", \"target_hash\": \"" << sha256(row.context) << "\"";
        if (row.isComplete)
            file << ", \"loss_sum\": " << number(lm.lossSum)
                 << ", \"scored\": " << std::to_string(lm.scored) << ", \"perplexity\": "
                 << (lm.scored > 0 ? number(std::exp(lm.lossSum / static_cast<double>(lm.scored)))
                                   : "null")
                 << ", \"greedy_hits\": " << std::to_string(lm.greedyHits);
        file << "}\n";
    }
};

class LmCsvWriter final : public SampleWriter {
    void begin(StreamedFile& file, const RunResult&) override
    {
        file << "index,id,document,begin_token,end_token,scored,loss_sum,perplexity,greedy_hits,"
                "bytes,words,complete\r\n";
    }
    void sample(StreamedFile& file, const SampleRow& row) override
    {
        const LmFields& lm = *row.lm;
        const bool hasLoss = row.isComplete && lm.scored > 0;
        file << std::to_string(row.index.value) << "," << csvField(row.id) << ","
             << std::to_string(lm.document) << "," << std::to_string(lm.beginToken) << ","
             << std::to_string(lm.endToken) << "," << std::to_string(lm.scored) << ","
             << (row.isComplete ? number(lm.lossSum) : std::string()) << ","
             << (hasLoss ? number(std::exp(lm.lossSum / static_cast<double>(lm.scored)))
                         : std::string())
             << "," << (row.isComplete ? std::to_string(lm.greedyHits) : std::string()) << ","
             << std::to_string(lm.endByte - lm.beginByte) << "," << std::to_string(lm.words) << ","
             << (row.isComplete ? "1" : "0") << "\r\n";
    }
};

/// The loss of each scored token, one window a line.
class TokenLossWriter final : public SampleWriter {
    void sample(StreamedFile& file, const SampleRow& row) override
    {
        const LmFields& lm = *row.lm;
        file << "{\"window\": " << std::to_string(row.index.value)
             << ", \"first_token\": " << std::to_string(lm.beginToken + lm.scoredFrom)
             << ", \"losses\": [";
        bool isFirst = true;
        for (const float loss : lm.losses) {
            file << (isFirst ? "" : ", ") << nlohmann::json(loss).dump();
            isFirst = false;
        }
        file << "]}\n";
    }
};

std::string classList(const std::vector<std::uint32_t>& classes,
                      const std::vector<std::string>& names)
{
    std::string text;
    for (const std::uint32_t one : classes)
        text += (text.empty() ? "" : ", ") +
                jsonText(one < names.size() ? names[one] : std::to_string(one));
    return text;
}

class ClassSamplesWriter final : public SampleWriter {
    void begin(StreamedFile&, const RunResult& result) override { m_names = result.classNames; }
    void sample(StreamedFile& file, const SampleRow& row) override
    {
        const ClassFields& fields = *row.classes;
        const std::string targets = classList(fields.references, m_names);
        file << "{\"doc_id\": " << std::to_string(row.index.value)
             << ", \"doc\": {\"id\": " << jsonText(row.id)
             << ", \"text\": " << jsonText(row.context);
        if (fields.hasPair)
            file << ", \"pair\": " << jsonText(fields.pair);
        file << ", \"labels\": [" << targets << "]}, \"target\": [" << targets
             << "], \"arguments\": {\"gen_args_0\": {\"arg_0\": " << jsonText(row.context)
             << "}}, ";
        const std::string predicted = classList(fields.predicted, m_names);
        if (row.isComplete)
            file << "\"resps\": [[" << predicted << "]], \"filtered_resps\": [" << predicted
                 << "], ";
        else
            file << "\"resps\": [], \"filtered_resps\": [], \"missing\": "
                 << jsonText(row.error.empty() ? "no output came back" : row.error) << ", ";
        file << "\"filter\": \"none\", \"metrics\": [\"accuracy\"], \"doc_hash\": \""
             << row.hash.hex() << "\", \"prompt_hash\": \"" << sha256(row.context)
             << "\", \"target_hash\": \"" << sha256(targets) << "\"";
        if (row.isComplete) {
            file << ", \"logits\": [";
            for (std::size_t c = 0; c < fields.logits.size(); ++c)
                file << (c == 0 ? "" : ", ") << nlohmann::json(fields.logits[c]).dump();
            file << "], \"probabilities\": [";
            for (std::size_t c = 0; c < fields.probabilities.size(); ++c)
                file << (c == 0 ? "" : ", ") << number(fields.probabilities[c]);
            file << "]";
        }
        file << ", \"accuracy\": " << (fields.isRight ? "1.0" : "0.0") << "}\n";
    }
    std::vector<std::string> m_names;
};

class ClassCsvWriter final : public SampleWriter {
    void begin(StreamedFile& file, const RunResult& result) override
    {
        m_names = result.classNames;
        file << "index,id,text,reference,prediction,probability,right,complete\r\n";
    }
    void sample(StreamedFile& file, const SampleRow& row) override
    {
        const ClassFields& fields = *row.classes;
        const auto joined = [this](const std::vector<std::uint32_t>& classes) {
            std::string text;
            for (const std::uint32_t one : classes)
                text += (text.empty() ? "" : ";") +
                        (one < m_names.size() ? m_names[one] : std::to_string(one));
            return text;
        };
        std::string probability;
        if (row.isComplete && fields.predicted.size() == 1)
            probability = number(fields.probabilities[fields.predicted.front()]);
        file << std::to_string(row.index.value) << "," << csvField(row.id) << ","
             << csvField(row.context) << "," << csvField(joined(fields.references)) << ","
             << csvField(joined(fields.predicted)) << "," << probability << ","
             << (fields.isRight ? "1" : "0") << "," << (row.isComplete ? "1" : "0") << "\r\n";
    }
    std::vector<std::string> m_names;
};

std::unique_ptr<SampleWriter> sampleWriter(const std::string& name, const RunResult& result)
{
    if (result.task == "lm") {
        if (name == "samples.jsonl")
            return std::make_unique<LmSamplesWriter>();
        if (name == "samples.csv")
            return std::make_unique<LmCsvWriter>();
        if (name == "token_losses.jsonl" && result.hasTokenLosses)
            return std::make_unique<TokenLossWriter>();
        return nullptr;
    }
    if (result.task == "classification") {
        if (name == "predictions.json")
            return std::make_unique<PredictionsWriter>();
        if (name == "samples.jsonl")
            return std::make_unique<ClassSamplesWriter>();
        if (name == "samples.csv")
            return std::make_unique<ClassCsvWriter>();
        return nullptr;
    }
    if (name == "predictions.json")
        return std::make_unique<PredictionsWriter>();
    if (name == "nbest_predictions.json")
        return std::make_unique<NBestWriter>();
    if (name == "null_odds.json")
        return std::make_unique<NullOddsWriter>();
    if (name == "samples.jsonl")
        return std::make_unique<SamplesWriter>();
    if (name == "samples.csv")
        return std::make_unique<SamplesCsvWriter>();
    return nullptr;
}

// The other files, each as one text.

Json metricJson(const Metric& metric)
{
    Json json;
    json["key"] = metric.key;
    json["label"] = metric.label;
    json["value"] = numberJson(metric.value);
    json["unit"] = metric.unit;
    json["n"] = metric.n;
    json["method"] = metric.method;
    if (!metric.intervalMethod.empty())
        json["interval"] = Json{{"standard_error", numberJson(metric.standardError)},
                                {"low", numberJson(metric.low)},
                                {"high", numberJson(metric.high)},
                                {"method", metric.intervalMethod}};
    if (!metric.bootstrapMethod.empty())
        json["bootstrap"] = Json{{"standard_error", numberJson(metric.bootstrapError)},
                                 {"low", numberJson(metric.bootstrapLow)},
                                 {"high", numberJson(metric.bootstrapHigh)},
                                 {"method", metric.bootstrapMethod}};
    if (!metric.reason.empty())
        json["reason"] = metric.reason;
    else if (metric.value && !std::isfinite(*metric.value))
        json["reason"] = "not finite";
    return json;
}

Json digestsJson(const RunResult& result)
{
    return {{"data", result.dataDigest.hex()},
            {"tokenizer", result.tokenizerDigest.hex()},
            {"evaluation", result.evaluationDigest.hex()},
            {"plan", result.planDigest.hex()},
            {"model", result.modelDigest}};
}

double seconds(std::int64_t ns)
{
    return static_cast<double>(ns) / 1e9;
}

Json timingJson(const RunResult& result)
{
    const Shares all = shares(result);
    std::uint64_t realTokens = 0;
    std::uint64_t padTokens = 0;
    double most = 0.0;
    double sum = 0.0;
    double wall = 0.0;
    Json ranks = Json::array();
    for (const RankTiming& rank : result.timing) {
        realTokens += rank.realTokens;
        padTokens += rank.padTokens;
        const double useful = seconds(rank.computeNs);
        most = std::max(most, useful);
        sum += useful;
        const double working = seconds(rank.elapsedNs - rank.loadNs);
        wall = std::max(wall, working);
        ranks.push_back(
            {{"rank", rank.rank.value},
             {"node", rank.node},
             {"generation", rank.generation},
             {"units", rank.units},
             {"items", rank.items},
             {"real_tokens", rank.realTokens},
             {"pad_tokens", rank.padTokens},
             {"compute_s", seconds(rank.computeNs)},
             {"wait_s", seconds(rank.waitNs)},
             {"transfer_s", seconds(rank.transferNs)},
             {"load_s", seconds(rank.loadNs)},
             {"other_s", seconds(rank.otherNs)},
             {"elapsed_s", seconds(rank.elapsedNs)},
             {"items_per_s",
              numberJson(working > 0.0 ? std::optional(static_cast<double>(rank.items) / working)
                                       : std::nullopt)},
             {"tokens_per_s",
              numberJson(working > 0.0
                             ? std::optional(static_cast<double>(rank.realTokens) / working)
                             : std::nullopt)}});
    }
    Json json;
    json["elapsed_s"] = result.elapsedSeconds;
    json["prepare_s"] = result.prepareSeconds;
    json["start_up_s"] = result.startUpSeconds;
    json["since_first_unit_s"] = result.sinceFirstUnitSeconds;
    json["transfer_share"] = all.transfer;
    json["wait_share"] = all.wait;
    json["real_tokens"] = realTokens;
    json["pad_tokens"] = padTokens;
    const double since = result.sinceFirstUnitSeconds;
    json["samples_per_s"] =
        numberJson(since > 0.0 ? std::optional(static_cast<double>(result.samplesDone) / since)
                               : std::nullopt);
    json["tokens_per_s"] = numberJson(
        since > 0.0 ? std::optional(static_cast<double>(realTokens) / since) : std::nullopt);
    const auto n = static_cast<double>(result.timing.size());
    if (most > 0.0 && wall > 0.0) {
        const double balance = sum / n / most;
        const double communication = most / wall;
        json["load_balance"] = balance;
        json["communication_efficiency"] = communication;
        json["parallel_efficiency"] = balance * communication;
    }
    json["predicted_imbalance"] = result.predictedImbalance;
    json["ranks"] = std::move(ranks);
    return json;
}

std::string resultsText(const RunResult& result)
{
    Json task;
    task["alias"] = result.task;
    for (const Metric& metric : result.metrics) {
        // lm-evaluation-harness gives shares and percentages as the metric has them; these are
        // percent.
        task[metric.key + ",none"] = numberJson(metric.value);
        if (!metric.intervalMethod.empty())
            task[metric.key + "_stderr,none"] = numberJson(metric.standardError);
    }
    Json json;
    json["results"][result.task] = std::move(task);
    json["n-samples"][result.task] =
        Json{{"original", result.samples}, {"effective", result.samplesDone}};
    json["config"] = Json{{"model", result.model},
                          {"data", result.data},
                          {"dtype", result.dtype},
                          {"schedule", result.schedule},
                          {"gather", result.gather},
                          {"ranks", result.ranks},
                          {"threads_per_rank", result.threadsPerRank},
                          {"launcher", result.launcher},
                          {"kernels", result.kernels},
                          {"toml", result.configToml}};
    json["versions"] = Json{{"muster", result.version}};
    json["run"] = Json{{"id", result.runId},
                       {"name", result.name},
                       {"started", result.startedUtc},
                       {"finished", result.finishedUtc}};
    json["verdict"] = Json{{"word", align::word(result.verdict)},
                           {"sentence", result.sentence},
                           {"samples", result.samples},
                           {"samples_done", result.samplesDone},
                           {"items", result.items},
                           {"units", result.units}};
    json["digests"] = digestsJson(result);
    json["alignment"] = Json::parse(result.ledgerJson, nullptr, false);
    if (json["alignment"].is_discarded())
        json["alignment"] = nullptr;
    json["metrics"] = Json::array();
    for (const Metric& metric : result.metrics)
        json["metrics"].push_back(metricJson(metric));
    json["counts"] = Json::object();
    for (const auto& [key, value] : result.counts)
        json["counts"][key] = value;
    json["hints"] = result.hints;
    if (!result.procedure.empty())
        json["procedure"] = result.procedure;
    if (!result.ledger.empty()) {
        json["ppl_ledger"] = Json::array();
        for (const LedgerEntry& entry : result.ledger)
            json["ppl_ledger"].push_back({{"key", entry.key},
                                          {"value", numberJson(entry.value)},
                                          {"sentence", entry.sentence}});
    }
    if (!result.classNames.empty())
        json["classes"] = result.classNames;
    if (!result.confusion.empty())
        json["confusion_matrix"] = result.confusion;
    json["gates"] = Json::array();
    for (const GateResult& gate : result.gates)
        json["gates"].push_back(
            {{"gate", gate.text}, {"found", numberJson(gate.found)}, {"met", gate.isMet}});
    json["data_warnings"] = Json::array();
    for (const DataWarning& warning : result.dataWarnings)
        json["data_warnings"].push_back({{"code", warning.code},
                                         {"sentence", warning.sentence},
                                         {"count", warning.count},
                                         {"first", warning.first}});
    json["timing"] = timingJson(result);
    return dumped(json);
}

std::string summaryText(const RunResult& result)
{
    std::string text = "metric,value,unit,n,standard_error,low,high,method\r\n";
    const auto field = [](std::optional<double> value) {
        return value && std::isfinite(*value) ? number(*value) : std::string();
    };
    for (const Metric& metric : result.metrics)
        text +=
            fmt::format("{},{},{},{},{},{},{},{}\r\n", csvField(metric.key), field(metric.value),
                        csvField(metric.unit), metric.n, field(metric.standardError),
                        field(metric.low), field(metric.high), csvField(metric.method));
    return text;
}

std::string provenanceText(const RunResult& result)
{
    std::string text;
    for (const UnitProvenance& unit : result.provenance) {
        Json samples = Json::array();
        for (const SampleIndex index : unit.samples)
            samples.push_back(index.value);
        const Json json{{"unit", unit.unit.value},
                        {"rank", unit.rank.value},
                        {"node", unit.node},
                        {"generation", unit.generation},
                        {"attempt", unit.attempt},
                        {"sequence", unit.sequence},
                        {"started_s", seconds(unit.startedNs)},
                        {"finished_s", seconds(unit.finishedNs)},
                        {"arrived_s", seconds(unit.arrivalNs)},
                        {"real_tokens", unit.realTokens},
                        {"pad_tokens", unit.padTokens},
                        {"samples", std::move(samples)}};
        // The name of a node comes from outside.
        text += dumped(json, -1);
    }
    return text;
}

std::string traceText(const RunResult& result)
{
    Json events = Json::array();
    std::map<std::uint32_t, std::string> names;
    for (const UnitProvenance& unit : result.provenance) {
        names.emplace(unit.rank.value, unit.node);
        const auto micro = [](std::int64_t ns) { return static_cast<double>(ns) / 1e3; };
        events.push_back({{"name", fmt::format("unit {}", unit.unit.value)},
                          {"cat", "compute"},
                          {"ph", "X"},
                          {"ts", micro(unit.startedNs)},
                          {"dur", micro(unit.finishedNs - unit.startedNs)},
                          {"pid", 0},
                          {"tid", unit.rank.value},
                          {"args",
                           {{"attempt", unit.attempt},
                            {"tokens", unit.realTokens},
                            {"items", unit.samples.size()}}}});
        events.push_back({{"name", "arrival"},
                          {"cat", "transfer"},
                          {"ph", "i"},
                          {"s", "t"},
                          {"ts", micro(unit.arrivalNs)},
                          {"pid", 0},
                          {"tid", unit.rank.value}});
    }
    for (const auto& [rank, node] : names)
        events.push_back({{"name", "thread_name"},
                          {"ph", "M"},
                          {"pid", 0},
                          {"tid", rank},
                          {"args", {{"name", fmt::format("rank {} on {}", rank, node)}}}});
    return dumped(Json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}, -1);
}

std::string manifestText(const RunResult& result)
{
    Json json;
    json["format"] = "muster-run/1";
    json["run"] = result.runId;
    json["name"] = result.name;
    json["task"] = result.task;
    json["version"] = result.version;
    json["started"] = result.startedUtc;
    json["finished"] = result.finishedUtc;
    json["model"] = result.model;
    json["data"] = result.data;
    json["digests"] = digestsJson(result);
    json["kernels"] = result.kernels;
    json["launcher"] = result.launcher;
    json["ranks"] = result.ranks;
    json["threads_per_rank"] = result.threadsPerRank;
    json["schedule"] = result.schedule;
    json["gather"] = result.gather;
    json["dtype"] = result.dtype;
    return dumped(json);
}

std::optional<std::string> wholeText(const std::string& name, const RunResult& result)
{
    if (name == "results.json")
        return resultsText(result);
    if (name == "summary.csv")
        return summaryText(result);
    if (name == "provenance.jsonl")
        return provenanceText(result);
    if (name == "trace.json")
        return traceText(result);
    if (name == "proof.json")
        return result.proofJson;
    if (name == "manifest.json")
        return manifestText(result);
    return std::nullopt;
}

struct Open {
    std::string name;
    std::unique_ptr<SampleWriter> writer;
    std::unique_ptr<StreamedFile> file;
};

/// Feeds all sample writers from one visit. An empty folder: digests only.
Result<std::map<std::string, std::string>> writeSamples(const std::filesystem::path& folder,
                                                        const std::vector<std::string>& names,
                                                        const RunResult& result)
{
    std::vector<Open> open;
    for (const std::string& name : names)
        open.push_back({name, sampleWriter(name, result),
                        std::make_unique<StreamedFile>(folder.empty() ? folder : folder / name)});
    for (Open& one : open)
        one.writer->begin(*one.file, result);
    const Status visited = result.forEachSample([&](const SampleRow& row) {
        for (Open& one : open)
            one.writer->sample(*one.file, row);
    });
    if (!visited)
        return fail(visited.error());
    std::map<std::string, std::string> digests;
    for (Open& one : open) {
        one.writer->end(*one.file);
        if (const Status closed = one.file->close(); !closed)
            return fail(closed.error());
        digests[one.name] = one.file->sha256();
    }
    return digests;
}

std::vector<std::string> sampleFiles(const RunResult& result)
{
    if (result.task == "lm") {
        std::vector<std::string> names{"samples.jsonl", "samples.csv"};
        if (result.hasTokenLosses)
            names.emplace_back("token_losses.jsonl");
        return names;
    }
    if (result.task == "classification")
        return {"predictions.json", "samples.jsonl", "samples.csv"};
    std::vector<std::string> names{"predictions.json", "nbest_predictions.json", "samples.jsonl",
                                   "samples.csv"};
    if (result.isSquadV2)
        names.emplace_back("null_odds.json");
    return names;
}

Result<std::string> writeText(const std::filesystem::path& path, std::string_view text)
{
    StreamedFile file(path);
    file << text;
    if (const Status closed = file.close(); !closed)
        return fail(closed.error());
    return file.sha256();
}

} // namespace

Shares shares(const RunResult& result)
{
    double elapsed = 0.0;
    Shares sum;
    for (const RankTiming& rank : result.timing) {
        const double working = seconds(rank.elapsedNs - rank.loadNs);
        if (working <= 0.0)
            continue;
        elapsed += working;
        sum.transfer += seconds(rank.transferNs);
        sum.wait += seconds(rank.waitNs);
    }
    if (elapsed <= 0.0)
        return {};
    return {sum.transfer / elapsed, sum.wait / elapsed};
}

const std::vector<std::string>& stableFiles()
{
    static const std::vector<std::string> names{
        "predictions.json", "nbest_predictions.json", "null_odds.json", "samples.jsonl",
        "samples.csv",      "token_losses.jsonl",     "summary.csv"};
    return names;
}

Status writeRunFiles(const std::filesystem::path& folder, const RunResult& result)
{
    auto digests = writeSamples(folder, sampleFiles(result), result);
    if (!digests)
        return fail(digests.error());
    for (const char* name : {"summary.csv", "provenance.jsonl", "trace.json", "proof.json",
                             "manifest.json", "results.json"}) {
        auto written = writeText(folder / name, *wholeText(name, result));
        if (!written)
            return fail(written.error());
        (*digests)[name] = *written;
    }
    std::string sums;
    for (const auto& [name, digest] : *digests)
        sums += digest + "  " + name + "\n";
    if (auto written = writeText(folder / "SHA256SUMS", sums); !written)
        return fail(written.error());
    return {};
}

Status writeOneFile(const std::filesystem::path& to, const std::string& name,
                    const RunResult& result)
{
    if (const auto text = wholeText(name, result)) {
        if (auto written = writeText(to, *text); !written)
            return fail(written.error());
        return {};
    }
    auto writer = sampleWriter(name, result);
    if (!writer)
        return fail(Error::Kind::Usage, "E-REPORT-002",
                    fmt::format("no file of a run is called '{}'. There are: {}, results.json, "
                                "provenance.jsonl, trace.json, proof.json, manifest.json.",
                                name, fmt::join(stableFiles(), ", ")));
    StreamedFile file(to);
    writer->begin(file, result);
    if (const Status visited =
            result.forEachSample([&](const SampleRow& row) { writer->sample(file, row); });
        !visited)
        return visited;
    writer->end(file);
    return file.close();
}

std::vector<std::string> differingFiles(const std::filesystem::path& folder,
                                        const RunResult& result)
{
    std::vector<std::string> findings;
    auto digests = writeSamples({}, sampleFiles(result), result);
    if (!digests) {
        findings.push_back(digests.error().text());
        return findings;
    }
    (*digests)["summary.csv"] = sha256(summaryText(result));
    for (const auto& [name, digest] : *digests) {
        const std::filesystem::path path = folder / name;
        std::error_code error;
        if (!std::filesystem::exists(path, error)) {
            findings.push_back(fmt::format("{} is not there", name));
            continue;
        }
        const auto size = std::filesystem::file_size(path, error);
        auto content = readFile(path, static_cast<std::size_t>(size) + 1);
        if (!content)
            findings.push_back(content.error().text());
        else if (sha256(*content) != digest)
            findings.push_back(
                fmt::format("{} does not hold what the run file gives", path.string()));
    }
    return findings;
}

} // namespace muster::report
