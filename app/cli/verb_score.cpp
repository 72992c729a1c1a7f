// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "data/format.h"
#include "data/squad_reader.h"
#include "foreign_input.h"
#include "metrics/squad.h"
#include "run_end.h"
#include "verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::cli {

namespace {

using Json = nlohmann::ordered_json;

/// Reads a JSON object whose keys occur once, in the order of the file.
Result<Json> readObject(const std::filesystem::path& path)
{
    auto text = readFile(path);
    if (!text)
        return fail(text.error());
    std::set<std::string> seen;
    std::string repeated;
    const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
        if (depth == 1 && event == Json::parse_event_t::key) {
            const auto& key = parsed.get_ref<const std::string&>();
            if (!seen.insert(key).second && repeated.empty())
                repeated = key;
        }
        return true;
    };
    try {
        Json object = Json::parse(*text, watch);
        if (!object.is_object())
            return fail(Error::Kind::Invalid, "E-CLI-020",
                        fmt::format("{}: a JSON object from question id to value is wanted",
                                    path.string()));
        if (!repeated.empty())
            return fail(Error::Kind::Invalid, "E-CLI-020",
                        fmt::format("{}: the id {} stands twice", path.string(), repeated));
        return object;
    } catch (const std::exception& error) {
        return fail(Error::Kind::Invalid, "E-CLI-020",
                    fmt::format("{}: not JSON: {}", path.string(), error.what()));
    }
}

Result<std::vector<metrics::Prediction>> predictionsOf(const Json& object,
                                                       const std::filesystem::path& path)
{
    std::vector<metrics::Prediction> predictions;
    predictions.reserve(object.size());
    for (const auto& [id, text] : object.items()) {
        if (!text.is_string())
            return fail(Error::Kind::Invalid, "E-CLI-021",
                        fmt::format("{}: the prediction of {} is no text", path.string(), id));
        predictions.push_back({id, text.get_ref<const std::string&>()});
    }
    return predictions;
}

Result<std::vector<metrics::NoAnswerScore>> noAnswerOf(const metrics::AnswerScorer& scorer,
                                                       const Json& object,
                                                       const std::filesystem::path& path)
{
    std::vector<metrics::NoAnswerScore> scores;
    scores.reserve(object.size());
    for (const auto& [id, value] : object.items()) {
        const auto question = scorer.find(id);
        if (!value.is_number() || !question)
            return fail(Error::Kind::Invalid, "E-CLI-022",
                        fmt::format("{}: {} {}", path.string(), id,
                                    question ? "has no number" : "is no question of the data"));
        scores.push_back({*question, value.get<double>()});
    }
    return scores;
}

/// Puts no-answer scores in the order of the predictions, which decides between equal ones.
void orderByPredictions(std::vector<metrics::NoAnswerScore>& scores,
                        const metrics::AnswerScorer& scorer,
                        const std::vector<metrics::Prediction>& predictions)
{
    std::vector<std::size_t> place(scorer.size(), predictions.size());
    for (std::size_t i = 0; i < predictions.size(); ++i) {
        if (const auto question = scorer.find(predictions[i].id))
            place[*question] = i;
    }
    std::stable_sort(scores.begin(), scores.end(),
                     [&place](const metrics::NoAnswerScore& a, const metrics::NoAnswerScore& b) {
                         return place[a.question] < place[b.question];
                     });
}

class Table final {
public:
    void add(const std::string& key, const std::optional<double>& value)
    {
        if (value)
            m_answer.json["metrics"][key] = jsonNumber(*value);
        else
            m_answer.json["metrics"][key] = nullptr;
        m_answer.text += value ? fmt::format("{:<22} {}\n", key, *value)
                               : fmt::format("{:<22} undefined\n", key);
    }
    void addCount(const std::string& key, std::uint64_t value)
    {
        m_answer.json["metrics"][key] = value;
        m_answer.text += fmt::format("{:<22} {}\n", key, value);
    }
    Answer& answer() { return m_answer; }

private:
    Answer m_answer;
};

void addV1(Table& table, const metrics::SquadTotals& totals)
{
    table.add("exact_match", totals.all.exact);
    table.add("f1", totals.all.f1);
    table.addCount("total", totals.all.total);
}

void addV2(Table& table, const metrics::SquadTotals& totals)
{
    table.add("exact", totals.all.exact);
    table.add("f1", totals.all.f1);
    table.addCount("total", totals.all.total);
    const auto part = [&table](const std::string& name, const metrics::SubsetScore& score) {
        if (score.total == 0)
            return;
        table.add(name + "_exact", score.exact);
        table.add(name + "_f1", score.f1);
        table.addCount(name + "_total", score.total);
    };
    part("HasAns", totals.hasAnswer);
    part("NoAns", totals.noAnswer);
    if (!totals.thresholds)
        return;
    const metrics::ThresholdScores& best = *totals.thresholds;
    table.add("best_exact", best.bestExact);
    table.add("best_exact_thresh", best.bestExactThreshold);
    table.add("best_f1", best.bestF1);
    table.add("best_f1_thresh", best.bestF1Threshold);
    table.add("reachable_exact", best.reachableExact.value);
    table.add("reachable_exact_thresh", best.reachableExact.threshold);
    table.add("reachable_f1", best.reachableF1.value);
    table.add("reachable_f1_thresh", best.reachableF1.threshold);
}

/// Whether the file is a JSON object of answers and the data are SQuAD's: read as the official
/// scripts do.
bool isOfficial(const ScoreOptions& options)
{
    if (options.data.empty() || !options.foreign.predictionField.empty() ||
        !options.foreign.indexField.empty() || !options.foreign.idField.empty())
        return false;
    const auto format = data::detectFormat(options.data.front());
    if (format && format->format != data::Format::Squad && format->format != data::Format::Unknown)
        return false;
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(options.predictions, ignored))
        return options.predictions.filename().string().find_first_of("*?") == std::string::npos &&
               !std::filesystem::is_directory(options.predictions, ignored);
    const auto file = foreign::readResultFile(options.predictions);
    return !file || file->format == "SQuAD predictions";
}

/// Any other result file: scored against its data, with what its order is worth.
Result<Answer> scoredForeign(const ScoreOptions& options)
{
    auto checked = analyseForeign(options.foreign);
    if (!checked)
        return fail(checked.error());
    const auto& [input, analysis] = *checked;
    Table table;
    table.answer().json["format"] = input.file.format;
    for (const auto& [key, value] : analysis.before)
        table.add(key, value);
    table.addCount("total", analysis.samples);
    table.addCount("missing", analysis.samples - analysis.covered);
    table.answer().json["missing"] = analysis.samples - analysis.covered;
    table.answer().json["verdict"] = std::string(align::word(analysis.verdict));
    Json warnings = Json::array();
    for (const auto* list : {&input.file.notes, &analysis.notes, &analysis.findings}) {
        for (const std::string& one : *list)
            warnings.push_back(one);
    }
    table.answer().json["warnings"] = std::move(warnings);
    table.answer().exitCode = align::exitCode(analysis.verdict);
    table.answer().text += foreign::verdictLine(analysis) + "\n";
    return std::move(table.answer());
}

Result<Answer> scored(const ScoreOptions& options)
{
    if (!isOfficial(options))
        return scoredForeign(options);
    auto dataset = data::readSquad(options.data);
    if (!dataset)
        return fail(dataset.error());
    auto normalizer = metrics::normalizerByName(options.normalizer);
    if (!normalizer)
        return fail(normalizer.error());
    const bool isV2 =
        options.rules == "2.0" || (options.rules == "auto" && dataset->hasUnanswerable);
    metrics::AnswerScorer scorer(isV2 ? metrics::SquadVersion::V2 : metrics::SquadVersion::V1,
                                 *normalizer, options.abstentions);
    for (const data::Sample& sample : dataset->samples) {
        std::vector<std::string_view> golds;
        for (const data::Answer& answer : sample.answers)
            golds.emplace_back(answer.text);
        if (auto added = scorer.addQuestion(sample.id, golds); !added)
            return fail(added.error());
    }
    auto object = readObject(options.predictions);
    if (!object)
        return fail(object.error());
    auto predictions = predictionsOf(*object, options.predictions);
    if (!predictions)
        return fail(predictions.error());
    auto scores = scorer.scoreAll(*predictions);
    if (!scores)
        return fail(scores.error());

    metrics::SquadOptions squad;
    squad.sums = options.sums == "plain" ? metrics::SumMode::Plain : metrics::SumMode::Compensated;
    if (options.nullThreshold)
        squad.noAnswerThreshold = *options.nullThreshold;
    std::vector<metrics::NoAnswerScore> noAnswer;
    if (options.nullOdds) {
        auto odds = readObject(*options.nullOdds);
        if (!odds)
            return fail(odds.error());
        auto read = noAnswerOf(scorer, *odds, *options.nullOdds);
        if (!read)
            return fail(read.error());
        noAnswer = std::move(*read);
        orderByPredictions(noAnswer, scorer, *predictions);
    }
    auto totals =
        isV2 ? metrics::squadV2Totals(*scores, noAnswer, squad) : metrics::squadV1Totals(*scores);
    if (!totals)
        return fail(totals.error());

    Table table;
    table.answer().json["rules"] = isV2 ? "squad-2.0" : "squad-1.1";
    table.answer().json["normalizer"] = metrics::normalizerName(*normalizer);
    if (isV2)
        addV2(table, *totals);
    else
        addV1(table, *totals);
    table.answer().json["missing"] = totals->missing;
    if (totals->missing > 0)
        table.answer().text += fmt::format("{:<22} {}\n", "missing", totals->missing);
    if (options.hasAllRows) {
        Json rows = Json::array();
        for (std::size_t i = 0; i < scores->size(); ++i) {
            const metrics::QuestionScore& score = (*scores)[i];
            rows.push_back({{"id", scorer.id(i)},
                            {"em", jsonNumber(score.em)},
                            {"f1", jsonNumber(score.f1)},
                            {"missing", score.missing}});
        }
        table.answer().json["rows"] = std::move(rows);
    }
    Json warnings = Json::array();
    for (const data::Warning& warning : dataset->warnings)
        warnings.push_back(warning.code + ": " + warning.sentence);
    if (const std::string hint = metrics::refusalHint(*totals); !hint.empty())
        warnings.push_back(hint);
    table.answer().json["warnings"] = std::move(warnings);
    return std::move(table.answer());
}

} // namespace

ExitCode scoreVerb(const Context& context)
{
    auto answer = scored(context.invocation.score);
    if (!answer)
        return context.console.error(answer.error());
    for (const auto& warning : answer->json["warnings"])
        context.console.note(warning.get_ref<const std::string&>());
    return context.console.answer(*answer);
}

} // namespace muster::cli
