// SPDX-License-Identifier: Apache-2.0
// Joins the commands that look at finished runs to backend/run.
#include "controller_api.h"
#include "run_end.h"

#include "base/file.h"
#include "metrics/perplexity.h"
#include "report/html.h"
#include "run/compare.h"
#include "run/compare_text.h"
#include "run/outcome.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

namespace muster::cli {

namespace {

Result<std::filesystem::path> folderOf(const std::string& name)
{
    const auto settings = config::resolve(config::standardSources());
    return run::findRun(name, settings.resolved.config.output);
}

Status writeText(const std::filesystem::path& path, const std::string& text)
{
    return writeFileAtomically(path, text);
}

run::CompareFormat formatOf(const std::string& name)
{
    return name == "markdown" ? run::CompareFormat::Markdown
           : name == "latex"  ? run::CompareFormat::Latex
           : name == "csv"    ? run::CompareFormat::Csv
                              : run::CompareFormat::Text;
}

Result<Answer> compare(const CompareOptions& options)
{
    if (options.runs.size() < 2)
        return fail(Error::Kind::Usage, "E-CLI-040",
                    "two runs at least are needed for a comparison; `muster history ls` lists "
                    "them.");
    std::vector<run::FailCondition> conditions;
    for (const std::string& text : options.failOn) {
        auto condition = run::parseFailCondition(text);
        if (!condition)
            return fail(condition.error());
        conditions.push_back(std::move(*condition));
    }
    std::vector<run::ComparedRun> runs;
    for (const std::string& name : options.runs) {
        auto folder = folderOf(name);
        if (!folder)
            return fail(folder.error());
        auto loaded = run::loadCompared(*folder);
        if (!loaded)
            return fail(loaded.error().during(name));
        runs.push_back(std::move(*loaded));
    }
    run::Comparison all;
    all.runs = runs;
    all.preset = options.preset == "determinism" ? run::ComparePreset::Determinism
                 : options.preset == "scaling"   ? run::ComparePreset::Scaling
                                                 : run::ComparePreset::Metrics;
    all.hasAllSettings = !options.hasOnlyDifferences;
    all.samples = options.samples;
    all.confidence = options.confidence / 100.0;
    run::CompareOptions how;
    how.confidence = all.confidence;
    how.bootstrap = options.bootstrap;
    for (std::size_t b = 1; b < runs.size(); ++b) {
        auto pair = run::comparePair(runs, 0, b, how);
        if (!pair)
            return fail(pair.error());
        if (pair->isComparable())
            for (const run::FailCondition& condition : conditions) {
                auto outcome = run::checkCondition(condition, runs, *pair);
                if (!outcome)
                    return fail(outcome.error());
                all.conditions.push_back(std::move(*outcome));
            }
        all.pairs.push_back(std::move(*pair));
    }
    Answer answer;
    answer.exitCode = run::exitCodeOf(all);
    answer.json = run::jsonOf(all);
    const std::string text = run::textOf(all, formatOf(options.format));
    if (options.output) {
        if (const Status written = writeText(*options.output, text); !written)
            return fail(written.error());
        answer.text = run::conclusionOf(all) + "\n";
    } else {
        answer.text = text;
    }
    if (options.svg) {
        const auto rows = run::scalingOf(runs);
        if (const Status written =
                writeText(*options.svg, run::scalingSvg(rows, "Scaling: " + runs[0].result->model));
            !written)
            return fail(written.error());
        answer.json["svg"] = options.svg->string();
    }
    return answer;
}

Result<Answer> explainPpl(const ExplainPplOptions& options)
{
    const auto tolerance = metrics::toleranceOf(options.seen);
    if (!tolerance)
        return fail(Error::Kind::Usage, "E-CLI-041",
                    fmt::format("'{}' is no number; write the perplexity as it was seen, such as "
                                "17.2.",
                                options.seen));
    const double seen = std::strtod(options.seen.c_str(), nullptr);
    auto folder = folderOf(options.run);
    if (!folder)
        return fail(folder.error());
    auto matches = run::explainPerplexity(*folder, seen, *tolerance);
    if (!matches)
        return fail(matches.error());
    Answer answer;
    answer.json["run"] = folder->string();
    answer.json["seen"] = jsonNumber(seen);
    answer.json["tolerance"] = jsonNumber(*tolerance);
    answer.json["procedures"] = nlohmann::ordered_json::array();
    std::size_t found = 0;
    std::size_t shown = 0;
    for (const metrics::LedgerMatch& match : *matches) {
        found += match.isMatch ? 1U : 0U;
        answer.json["procedures"].push_back({{"name", match.entry.name},
                                             {"value", jsonNumber(match.entry.value)},
                                             {"difference", jsonNumber(match.difference)},
                                             {"matches", match.isMatch},
                                             {"is_result", match.entry.isRight},
                                             {"sentence", match.entry.sentence}});
        if (match.isMatch || ++shown <= 5)
            answer.text += fmt::format("{} {:<40} {:>14.6f}  {:+.6f}\n    {}\n",
                                       match.isMatch ? "=" : " ", match.entry.name,
                                       match.entry.value, match.difference, match.entry.sentence);
    }
    answer.json["found"] = found;
    answer.text += found == 0 ? fmt::format("no known procedure gives {}; the nearest are above\n",
                                            options.seen)
                              : fmt::format("{} known {} {}: {}\n", found,
                                            found == 1 ? "procedure gives" : "procedures give",
                                            options.seen, matches->front().entry.name);
    return answer;
}

Result<Answer> writeReport(const ReportOptions& options)
{
    auto folder = folderOf(options.run);
    if (!folder)
        return fail(folder.error());
    auto result = run::loadResult(*folder);
    if (!result)
        return fail(result.error());
    const std::filesystem::path to = options.output.value_or(*folder / "report.html");
    report::HtmlOptions how;
    how.language =
        options.language == "zh_CN" ? report::HtmlLanguage::Chinese : report::HtmlLanguage::English;
    if (const Status written = report::writeHtml(to, **result, how); !written)
        return fail(written.error());
    Answer answer;
    answer.json = {{"report", to.string()}};
    answer.text = to.string() + "\n";
    return answer;
}

} // namespace

void addComparisons(ControllerApi& api)
{
    api.compare = compare;
    api.explainPpl = explainPpl;
    api.report = writeReport;
}

} // namespace muster::cli
