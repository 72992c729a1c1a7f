// SPDX-License-Identifier: Apache-2.0
#include "foreign/write.h"

#include "base/file.h"
#include "metrics/answer_score.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <system_error>

namespace muster::foreign {

namespace {

using Json = nlohmann::ordered_json;

std::string line(const Json& json)
{
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

/// Scores of one prediction: exact_match and f1, or acc.
void addScores(Json& row, const References& references, std::uint64_t sample,
               const std::optional<std::string>& text, metrics::Normalizer normalizer)
{
    const auto& answers = references.answers[sample];
    if (references.kind == References::Kind::Labels) {
        row["metrics"] = {"acc"};
        row["acc"] = text && std::ranges::find(answers, plainLabel(*text)) != answers.end() ? 1 : 0;
        return;
    }
    metrics::AnswerScorer scorer(references.hasUnanswerable ? metrics::SquadVersion::V2
                                                            : metrics::SquadVersion::V1,
                                 normalizer);
    const std::vector<std::string_view> golds(answers.begin(), answers.end());
    if (!scorer.addQuestion("0", golds))
        return;
    const auto score =
        scorer.score(0, text ? std::optional<std::string_view>(*text) : std::nullopt);
    row["metrics"] = {"exact_match", "f1"};
    row["exact_match"] = score.em;
    row["f1"] = score.f1;
}

} // namespace

Result<Repaired> writeRepaired(const std::filesystem::path& to, const ResultFile& file,
                               const References& references, const Analysis& analysis,
                               const AnalysisOptions&)
{
    if (analysis.diagnosis.disorder == align::Disorder::Shuffled)
        return fail(Error::Kind::Invalid, "E-FOREIGN-015",
                    "the rows are shuffled without a pattern, so their order cannot be restored "
                    "from the answers");
    Repaired made;
    std::string text;
    std::uint64_t proved = 0;
    for (std::uint64_t sample = 0; sample < references.size(); ++sample) {
        const std::int64_t at = analysis.repairedRowOf[sample];
        if (at < 0) {
            ++made.missing;
            continue;
        }
        const Row& row = file.rows[static_cast<std::size_t>(at)];
        Json json;
        json["index"] = sample;
        json["id"] = references.ids[sample];
        if (row.hasAnswer)
            json["prediction"] = row.text;
        else
            json["prediction"] = nullptr;
        json["row"] = at;
        if (!row.hash.empty()) {
            json["sample_hash"] = row.hash;
            proved +=
                !references.hashes.empty() && references.hashes[sample].hex() == row.hash ? 1U : 0U;
        }
        text += line(json);
        ++made.rows;
    }
    made.verdict = made.missing > 0                       ? align::Verdict::Incomplete
                   : made.rows > 0 && proved == made.rows ? align::Verdict::Aligned
                                                          : align::Verdict::Unverified;
    if (auto written = writeFileAtomically(to, text); !written)
        return fail(written.error());
    return made;
}

Result<std::vector<std::string>> writeImport(const std::filesystem::path& folder,
                                             const ResultFile& file, const References& references,
                                             const Analysis& analysis,
                                             const AnalysisOptions& options,
                                             std::string_view version)
{
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
        return fail(
            Error::Kind::Io, "E-FOREIGN-016",
            fmt::format("the folder {} cannot be made: {}", folder.string(), error.message()));
    std::string samples;
    Json predictions = Json::object();
    for (std::uint64_t i = 0; i < references.size(); ++i) {
        const std::int64_t at = analysis.rowOf[i];
        const Row* row = at < 0 ? nullptr : &file.rows[static_cast<std::size_t>(at)];
        const std::optional<std::string> text =
            row != nullptr && row->hasAnswer ? std::optional(row->text) : std::nullopt;
        Json json;
        json["doc_id"] = i;
        json["doc"] = {{"id", references.ids[i]}};
        json["target"] = references.answers[i];
        if (text) {
            json["resps"] = Json::array({Json::array({*text})});
            json["filtered_resps"] = Json::array({*text});
            predictions[references.ids[i]] = *text;
        } else {
            json["resps"] = Json::array();
            json["filtered_resps"] = Json::array();
            json["missing"] = row == nullptr ? "the file has no row for it" : "the row has none";
        }
        json["filter"] = "none";
        if (row != nullptr && !row->hash.empty())
            json["doc_hash"] = row->hash; // as stated: one from the data would prove nothing
        addScores(json, references, i, text, options.normalizer);
        samples += line(json);
    }
    Json results;
    results["muster_version"] = std::string(version);
    results["imported"] = true;
    results["source"] = {{"file", file.name}, {"format", file.format}, {"parts", file.parts}};
    Json task = Json::object();
    for (const auto& [key, value] : analysis.before)
        task[key + ",none"] = value / 100.0;
    results["results"] = {
        {references.kind == References::Kind::Labels ? "classification" : "qa", std::move(task)}};
    results["n-samples"] = {{"original", references.size()}, {"effective", analysis.covered}};
    results["verdict"] = std::string(align::word(analysis.verdict));
    results["verdict_line"] = verdictLine(analysis);
    results["analysis"] = Json::parse(analysisJson(analysis, file, references));

    std::vector<std::string> stored;
    const auto put = [&](const char* name, const std::string& text,
                         const std::string& what) -> Status {
        if (auto written = writeFileAtomically(folder / name, text); !written)
            return written;
        stored.push_back(fmt::format("{}: {}", (folder / name).string(), what));
        return {};
    };
    for (const auto& done :
         {put("samples.jsonl", samples,
              fmt::format("{} samples in data set order, the rows taken as they stand",
                          references.size())),
          put("predictions.json",
              predictions.dump(1, ' ', false, Json::error_handler_t::replace) + '\n',
              fmt::format("{} predictions by id", predictions.size())),
          put("results.json", results.dump(1, ' ', false, Json::error_handler_t::replace) + '\n',
              fmt::format("metrics, the verdict {} and the whole analysis",
                          align::word(analysis.verdict)))}) {
        if (!done)
            return fail(done.error());
    }
    return stored;
}

} // namespace muster::foreign
