// SPDX-License-Identifier: Apache-2.0
#include "run/compare_text.h"

#include "align/verdict.h"
#include "base/utf8.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace muster::run {

namespace {

/// A table before it has a format. The first column is text, the others are set right.
struct Table {
    std::string title;
    std::vector<std::string> head;
    std::vector<std::vector<std::string>> rows;
};

std::string letterOf(std::size_t run)
{
    if (run < 26)
        return std::string(1, static_cast<char>('A' + run));
    return fmt::format("R{}", run + 1);
}

std::size_t widthOf(std::string_view text)
{
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    }));
}

std::string oneLine(std::string_view text, std::size_t most)
{
    std::string made;
    std::size_t width = 0;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte & 0xC0U) != 0x80U && ++width > most)
            return made + "…";
        made += byte < 0x20 || byte == 0x7F ? ' ' : c;
    }
    return made;
}

std::string textTable(const Table& table)
{
    std::vector<std::size_t> widths(table.head.size(), 0);
    for (std::size_t c = 0; c < table.head.size(); ++c) {
        widths[c] = widthOf(table.head[c]);
        for (const auto& row : table.rows)
            widths[c] = std::max(widths[c], widthOf(row[c]));
    }
    std::string text = table.title + "\n";
    const auto line = [&](const std::vector<std::string>& cells) {
        std::string made = " ";
        for (std::size_t c = 0; c < cells.size(); ++c) {
            made += ' ';
            made += cells[c];
            if (c + 1 < cells.size())
                made.append(widths[c] - widthOf(cells[c]) + 1, ' ');
        }
        while (made.ends_with(' '))
            made.pop_back();
        text += made + "\n";
    };
    line(table.head);
    for (const auto& row : table.rows)
        line(row);
    return text;
}

std::string markdownCell(std::string_view text)
{
    std::string made;
    for (const char c : text) {
        if (c == '|' || c == '\\' || c == '`' || c == '*' || c == '_' || c == '<')
            made += '\\';
        made += c == '\n' ? ' ' : c;
    }
    return made;
}

std::string markdownTable(const Table& table)
{
    std::string text = "### " + markdownCell(table.title) + "\n\n|";
    for (const std::string& cell : table.head)
        text += " " + markdownCell(cell) + " |";
    text += "\n|";
    for (std::size_t c = 0; c < table.head.size(); ++c)
        text += c == 0 ? " --- |" : " ---: |";
    text += "\n";
    for (const auto& row : table.rows) {
        text += "|";
        for (const std::string& cell : row)
            text += " " + markdownCell(cell) + " |";
        text += "\n";
    }
    return text + "\n";
}

std::string latexCell(std::string_view text)
{
    std::string made;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '&' || c == '%' || c == '$' || c == '#' || c == '_' || c == '{' || c == '}')
            made += std::string("\\") + c;
        else if (c == '~')
            made += "\\textasciitilde{}";
        else if (c == '^')
            made += "\\textasciicircum{}";
        else if (c == '\\')
            made += "\\textbackslash{}";
        else if (text.substr(i).starts_with("−")) {
            made += "$-$";
            i += std::string_view("−").size() - 1;
        } else
            made += c == '\n' ? ' ' : c;
    }
    return made;
}

std::string latexTable(const Table& table)
{
    std::string text =
        "\\begin{table}\n\\caption{" + latexCell(table.title) + "}\n\\begin{tabular}{l" +
        std::string(table.head.empty() ? 0 : table.head.size() - 1, 'r') + "}\n\\hline\n";
    const auto line = [&text](const std::vector<std::string>& cells) {
        for (std::size_t c = 0; c < cells.size(); ++c)
            text += (c == 0 ? "" : " & ") + latexCell(cells[c]);
        text += " \\\\\n";
    };
    line(table.head);
    text += "\\hline\n";
    for (const auto& row : table.rows)
        line(row);
    return text + "\\hline\n\\end{tabular}\n\\end{table}\n\n";
}

std::string csvTable(const Table& table)
{
    std::string text;
    const auto line = [&text](const std::vector<std::string>& cells) {
        for (std::size_t c = 0; c < cells.size(); ++c) {
            text += c == 0 ? "" : ",";
            if (cells[c].find_first_of(",\"\r\n") == std::string::npos) {
                text += cells[c];
                continue;
            }
            text += '"';
            for (const char one : cells[c])
                text += one == '"' ? std::string("\"\"") : std::string(1, one);
            text += '"';
        }
        text += "\r\n";
    };
    line(table.head);
    for (const auto& row : table.rows)
        line(row);
    return text;
}

std::string numberText(std::optional<double> value, int decimals, bool hasSign = false)
{
    if (!value)
        return "-";
    return hasSign ? fmt::format("{:+.{}f}", *value, decimals)
                   : fmt::format("{:.{}f}", *value, decimals);
}

/// Small differences keep figures that say something.
int decimalsOf(const MetricDifference& metric)
{
    const double size = std::abs(metric.difference.value_or(0.0));
    int decimals = metric.decimals;
    while (size > 0.0 && decimals < 10 && size < 5.0 * std::pow(10.0, -decimals))
        ++decimals;
    return decimals;
}

std::string pText(std::optional<double> p)
{
    if (!p)
        return "-";
    return *p < 1e-4 && *p > 0.0 ? fmt::format("{:.1e}", *p) : fmt::format("{:.4f}", *p);
}

std::string differenceUnit(const MetricDifference& metric)
{
    return metric.unit == "%" ? " pp" : "";
}

Table runsTable(const Comparison& all)
{
    Table table{"Runs", {"", "run", "model", "precision", "ranks", "verdict", "samples"}, {}};
    for (std::size_t r = 0; r < all.runs.size(); ++r) {
        const report::RunResult& result = *all.runs[r].result;
        table.rows.push_back(
            {letterOf(r), result.runId, std::filesystem::path(result.model).filename().string(),
             result.dtype, std::to_string(result.ranks), std::string(align::word(result.verdict)),
             fmt::format("{}/{}", result.samplesDone, result.samples)});
    }
    return table;
}

Table settingsTable(const Comparison& all)
{
    Table table{all.hasAllSettings ? "Configuration" : "Configuration: only the differences",
                {"setting"},
                {}};
    for (std::size_t r = 0; r < all.runs.size(); ++r)
        table.head.push_back(letterOf(r));
    table.head.emplace_back("meaning");
    const auto add = [&](std::string name, std::string_view meaning, auto value) {
        std::vector<std::string> row{std::move(name)};
        bool isEqual = true;
        for (const ComparedRun& run : all.runs) {
            row.push_back(value(run));
            isEqual = isEqual && row.back() == row[1];
        }
        row.emplace_back(isEqual ? "equal" : meaning);
        if (!isEqual || all.hasAllSettings)
            table.rows.push_back(std::move(row));
    };
    add("model digest", "is compared", [](const ComparedRun& run) {
        return run.result->modelDigest.empty() ? std::string("-")
                                               : run.result->modelDigest.substr(0, 12);
    });
    add("tokenizer digest", "is compared",
        [](const ComparedRun& run) { return run.result->tokenizerDigest.hex().substr(0, 12); });
    add("data digest", "NOT COMPARABLE",
        [](const ComparedRun& run) { return run.result->dataDigest.hex().substr(0, 12); });
    for (const SettingRow& setting : settingRows(all.runs, all.hasAllSettings)) {
        std::vector<std::string> row{setting.key};
        for (const std::string& value : setting.values)
            row.push_back(oneLine(value, 40));
        row.emplace_back(setting.isEqual ? "equal" : effectName(setting.effect));
        table.rows.push_back(std::move(row));
    }
    add("kernels", "may move the last bits",
        [](const ComparedRun& run) { return oneLine(run.result->kernels, 40); });
    add("launcher", "changes no number",
        [](const ComparedRun& run) { return run.result->launcher; });
    return table;
}

Table metricsTable(const Comparison& all, const PairComparison& pair)
{
    const std::string a = letterOf(pair.a);
    const std::string b = letterOf(pair.b);
    Table table{fmt::format("Metrics: {} against {}, {} samples in both", b, a, pair.shared),
                {"metric", a, b, b + " − " + a,
                 fmt::format("{:g} % interval", 100.0 * all.confidence), "p", "reading", "test"},
                {}};
    for (const MetricDifference& metric : pair.metrics) {
        const int decimals = decimalsOf(metric);
        std::string interval = "-";
        if (metric.low && metric.high)
            interval =
                fmt::format("{:+.{}f} to {:+.{}f}", *metric.low, decimals, *metric.high, decimals);
        std::string test = metric.reading == Reading::NotTested || metric.test.empty()
                               ? metric.reason
                               : metric.test;
        table.rows.push_back({metric.label.empty() ? metric.key : metric.label,
                              numberText(metric.a, metric.decimals),
                              numberText(metric.b, metric.decimals),
                              numberText(metric.difference, decimals, true) +
                                  (metric.difference ? differenceUnit(metric) : ""),
                              interval, pText(metric.pValue),
                              std::string(readingName(metric.reading)), std::move(test)});
    }
    return table;
}

std::optional<Table> flipsTable(const PairComparison& pair)
{
    if (!pair.flips)
        return std::nullopt;
    const metrics::McNemar& t = pair.flips->table;
    const std::string a = letterOf(pair.a);
    const std::string b = letterOf(pair.b);
    return Table{
        fmt::format("Flips ({}): exact McNemar p = {}", pair.flips->label, pText(t.pValue)),
        {"", b + " right", b + " wrong"},
        {{a + " right", std::to_string(t.bothRight), std::to_string(t.onlyA)},
         {a + " wrong", std::to_string(t.onlyB), std::to_string(t.bothWrong)}}};
}

Table changedTable(const Comparison& all, const PairComparison& pair, std::uint64_t most)
{
    const ComparedRun& first = all.runs[pair.a];
    const ComparedRun& second = all.runs[pair.b];
    const std::string a = letterOf(pair.a);
    const std::string b = letterOf(pair.b);
    const bool isLm = !first.windows.empty();
    const std::uint64_t changed = pair.changes ? pair.changes->indices.size() : 0;
    Table table{fmt::format("Changed samples: {} of {}{}", changed,
                            pair.changes ? pair.changes->samples : 0,
                            changed > most ? fmt::format(", the first {}", most) : ""),
                {},
                {}};
    if (isLm)
        table.head = {"window", "id", "loss " + a, "loss " + b, "difference"};
    else
        table.head = {"sample", "id", a, b, "reference", "score " + a, "score " + b};
    if (!pair.changes)
        return table;
    for (const std::uint64_t at : pair.changes->indices) {
        if (table.rows.size() >= most)
            break;
        const auto i = static_cast<std::size_t>(at);
        if (isLm) {
            const auto n = static_cast<double>(std::max<std::uint64_t>(1, first.windows[i].tokens));
            const double x = first.windows[i].nllNats / n;
            const double y = second.windows[i].nllNats / n;
            table.rows.push_back({std::to_string(at), oneLine(first.ids[i], 32),
                                  fmt::format("{:.9f}", x), fmt::format("{:.9f}", y),
                                  fmt::format("{:+.3e}", y - x)});
            continue;
        }
        const auto score = [i](const ComparedRun& run) {
            return run.f1.empty() ? fmt::format("{:g}", run.em[i])
                                  : fmt::format("EM {:g} F1 {:.3f}", run.em[i], run.f1[i]);
        };
        table.rows.push_back({std::to_string(at), oneLine(first.ids[i], 32),
                              oneLine(first.predictions[i], 40), oneLine(second.predictions[i], 40),
                              oneLine(first.targets[i], 40), score(first), score(second)});
    }
    return table;
}

Table scalingTable(const Comparison& all, const std::vector<ScalingRow>& rows)
{
    Table table{"Scaling",
                {"ranks", "run", "seconds", "samples/s", "tokens/s", "speed-up", "efficiency",
                 "compute", "wait", "transfer", "imbalance", "start-up s"},
                {}};
    for (const ScalingRow& row : rows)
        table.rows.push_back(
            {std::to_string(row.ranks), letterOf(row.run), fmt::format("{:.3f}", row.seconds),
             fmt::format("{:.2f}", row.samplesPerSecond),
             fmt::format("{:.0f}", row.tokensPerSecond), fmt::format("{:.3f}", row.speedUp),
             fmt::format("{:.1f} %", 100.0 * row.efficiency),
             fmt::format("{:.2f} %", 100.0 * row.computeShare),
             fmt::format("{:.2f} %", 100.0 * row.waitShare),
             fmt::format("{:.2f} %", 100.0 * row.transferShare),
             fmt::format("{:.3f}", row.imbalance), fmt::format("{:.2f}", row.startUpSeconds)});
    (void)all;
    return table;
}

std::vector<std::string> changeSentences(const PairComparison& pair)
{
    std::vector<std::string> said;
    if (!pair.changes)
        return said;
    const Changes& c = *pair.changes;
    if (c.hasScores)
        said.push_back(fmt::format("{} of {} predictions changed, {} scores changed", c.texts,
                                   c.samples, c.scores));
    if (c.hasLosses)
        said.push_back(fmt::format(
            "{} of {} losses differ; the greatest difference is {:.3g} nats{}", c.losses, c.samples,
            c.greatestLoss, c.greatestAt ? fmt::format(" (sample {})", *c.greatestAt) : ""));
    if (c.greatestProbability > 0.0)
        said.push_back(fmt::format("the greatest difference of a probability is {:.3g}",
                                   c.greatestProbability));
    if (c.tokens)
        said.push_back(fmt::format(
            "{} of {} tokens ({:.2f} %) have another loss; the greatest difference is {:.3g} nats",
            c.tokenLosses, *c.tokens,
            *c.tokens == 0
                ? 0.0
                : 100.0 * static_cast<double>(c.tokenLosses) / static_cast<double>(*c.tokens),
            c.greatestTokenLoss));
    if (c.byTokens)
        said.push_back(fmt::format("perplexity ratio by tokens {:.6f} ({:.6f} to {:.6f}), {}",
                                   c.byTokens->ratio.value, c.byTokens->ratio.low,
                                   c.byTokens->ratio.high, c.byTokens->method));
    return said;
}

/// A pair in one sentence.
std::string pairConclusion(const Comparison& all, const PairComparison& pair)
{
    const std::string a = letterOf(pair.a);
    const std::string b = letterOf(pair.b);
    if (!pair.isComparable())
        return fmt::format("{} and {}: not comparable: {}", b, a, pair.reasons.front());
    if (all.preset == ComparePreset::Determinism && pair.changes) {
        const Changes& c = *pair.changes;
        if (c.texts == 0 && c.scores == 0 && c.losses == 0 && c.tokenLosses == 0)
            return fmt::format("{} and {}: identical: no text, score or loss of {} samples differs",
                               b, a, c.samples);
        std::string made = fmt::format("{} and {}:", b, a);
        if (c.hasScores)
            made += fmt::format(" {} texts and {} scores changed;", c.texts, c.scores);
        if (c.hasLosses)
            made += fmt::format(" greatest loss difference {:.3g} nats;", c.greatestLoss);
        made.pop_back();
        return made + (c.hasScores && c.scores == 0 ? "; no score changed" : "");
    }
    std::string made = fmt::format("{} against {}:", b, a);
    bool isFirst = true;
    for (const MetricDifference& metric : pair.metrics) {
        if (metric.reading == Reading::NotTested || metric.pValue == std::nullopt)
            continue;
        made += isFirst ? " " : ", ";
        isFirst = false;
        const std::string label = metric.label.empty() ? metric.key : metric.label;
        if (metric.reading == Reading::Equal)
            made += fmt::format("{} equal", label);
        else
            made += fmt::format("{} {}{} ({})", label,
                                numberText(metric.difference, decimalsOf(metric), true),
                                differenceUnit(metric), readingName(metric.reading));
    }
    return isFirst ? made + " comparable, nothing could be tested" : made;
}

nlohmann::ordered_json number(std::optional<double> value)
{
    if (!value || !std::isfinite(*value))
        return nullptr;
    return *value;
}

nlohmann::ordered_json metricJson(const MetricDifference& metric)
{
    nlohmann::ordered_json json{{"metric", metric.key},
                                {"label", metric.label},
                                {"unit", metric.unit},
                                {"lower_is_better", metric.isLowerBetter},
                                {"a", number(metric.a)},
                                {"b", number(metric.b)},
                                {"difference", number(metric.difference)},
                                {"low", number(metric.low)},
                                {"high", number(metric.high)},
                                {"confidence", metric.confidence},
                                {"p", number(metric.pValue)},
                                {"test", metric.test},
                                {"samples", metric.samples},
                                {"clusters", metric.clusters},
                                {"bootstrap_low", number(metric.bootstrapLow)},
                                {"bootstrap_high", number(metric.bootstrapHigh)},
                                {"bootstrap", metric.bootstrapMethod},
                                {"reading", std::string(readingName(metric.reading))},
                                {"reason", metric.reason}};
    if (metric.ratio)
        json["ratio"] = {{"value", number(metric.ratio->value)},
                         {"low", number(metric.ratio->low)},
                         {"high", number(metric.ratio->high)}};
    return json;
}

nlohmann::ordered_json changesJson(const Changes& changes)
{
    nlohmann::ordered_json json{
        {"samples", changes.samples},
        {"texts_changed", changes.texts},
        {"scores_changed", changes.scores},
        {"losses_changed", changes.losses},
        {"greatest_loss_difference", number(changes.greatestLoss)},
        {"greatest_probability_difference", number(changes.greatestProbability)},
        {"changed", changes.indices}};
    if (changes.tokens) {
        json["tokens"] = *changes.tokens;
        json["token_losses_changed"] = changes.tokenLosses;
        json["greatest_token_loss_difference"] = number(changes.greatestTokenLoss);
    }
    if (changes.byTokens)
        json["ratio_by_tokens"] = {{"value", number(changes.byTokens->ratio.value)},
                                   {"low", number(changes.byTokens->ratio.low)},
                                   {"high", number(changes.byTokens->ratio.high)},
                                   {"method", changes.byTokens->method}};
    return json;
}

} // namespace

int exitCodeOf(const Comparison& comparison)
{
    for (const PairComparison& pair : comparison.pairs)
        if (!pair.isComparable())
            return 8;
    for (const FailOutcome& outcome : comparison.conditions)
        if (outcome.holds)
            return 7;
    return 0;
}

std::string conclusionOf(const Comparison& comparison)
{
    std::string made;
    for (const PairComparison& pair : comparison.pairs)
        made += (made.empty() ? "" : "; ") + pairConclusion(comparison, pair);
    for (const FailOutcome& outcome : comparison.conditions)
        if (outcome.holds)
            made += "; FAILS " + outcome.condition.text;
    return made;
}

std::string textOf(const Comparison& comparison, CompareFormat format)
{
    const auto rendered = [format](const Table& table) {
        switch (format) {
        case CompareFormat::Text:
            return textTable(table);
        case CompareFormat::Markdown:
            return markdownTable(table);
        case CompareFormat::Latex:
            return latexTable(table);
        case CompareFormat::Csv:
            break;
        }
        return csvTable(table);
    };
    const std::vector<ScalingRow> scaling = comparison.preset == ComparePreset::Scaling
                                                ? scalingOf(comparison.runs)
                                                : std::vector<ScalingRow>();
    if (format == CompareFormat::Csv) {
        if (comparison.preset == ComparePreset::Scaling)
            return rendered(scalingTable(comparison, scaling));
        std::string text;
        for (const PairComparison& pair : comparison.pairs) {
            Table table = comparison.preset == ComparePreset::Determinism
                              ? changedTable(comparison, pair, comparison.samples)
                              : metricsTable(comparison, pair);
            text += rendered(table);
        }
        return text;
    }
    const auto sentence = [format](const std::string& text) {
        if (format == CompareFormat::Markdown)
            return "- " + markdownCell(text) + "\n";
        if (format == CompareFormat::Latex)
            return latexCell(text) + "\\\\\n";
        return "  " + text + "\n";
    };
    std::string text;
    for (const PairComparison& pair : comparison.pairs) {
        const std::string a = letterOf(pair.a);
        const std::string b = letterOf(pair.b);
        if (pair.isComparable())
            text += sentence(fmt::format("{} and {} can be compared: the same data and the same "
                                         "settings that give the numbers their meaning",
                                         a, b));
        for (const std::string& reason : pair.reasons)
            text += sentence(fmt::format("{} and {} are not comparable: {}", a, b, reason));
        for (const std::string& note : pair.notes)
            text += sentence(note);
    }
    text += "\n" + rendered(runsTable(comparison)) + "\n";
    const Table settings = settingsTable(comparison);
    text += settings.rows.empty() ? sentence("the configurations are equal") + "\n"
                                  : rendered(settings) + "\n";
    if (comparison.preset == ComparePreset::Scaling)
        text += rendered(scalingTable(comparison, scaling)) + "\n";
    for (const PairComparison& pair : comparison.pairs) {
        if (comparison.preset == ComparePreset::Metrics) {
            text += rendered(metricsTable(comparison, pair)) + "\n";
            if (const auto flips = flipsTable(pair))
                text += rendered(*flips) + "\n";
        }
        if (comparison.preset != ComparePreset::Scaling) {
            for (const std::string& said : changeSentences(pair))
                text += sentence(said);
            if (pair.changes && !pair.changes->indices.empty() && comparison.samples > 0)
                text += "\n" + rendered(changedTable(comparison, pair, comparison.samples));
        }
    }
    for (const FailOutcome& outcome : comparison.conditions)
        text +=
            sentence(fmt::format("{} ({})", outcome.sentence,
                                 outcome.holds ? "the condition holds: exit 7" : "does not hold"));
    return text + sentence(conclusionOf(comparison)).substr(format == CompareFormat::Text ? 2 : 0);
}

nlohmann::ordered_json jsonOf(const Comparison& comparison)
{
    nlohmann::ordered_json json;
    bool isComparable = true;
    for (const PairComparison& pair : comparison.pairs)
        isComparable = isComparable && pair.isComparable();
    json["comparable"] = isComparable;
    json["runs"] = nlohmann::ordered_json::array();
    for (std::size_t r = 0; r < comparison.runs.size(); ++r) {
        const report::RunResult& result = *comparison.runs[r].result;
        json["runs"].push_back({{"name", letterOf(r)},
                                {"id", result.runId},
                                {"folder", comparison.runs[r].folder.string()},
                                {"task", result.task},
                                {"model", result.model},
                                {"model_digest", result.modelDigest},
                                {"dtype", result.dtype},
                                {"ranks", result.ranks},
                                {"data_digest", result.dataDigest.hex()},
                                {"evaluation_digest", result.evaluationDigest.hex()},
                                {"verdict", align::word(result.verdict)},
                                {"samples", result.samples},
                                {"samples_done", result.samplesDone}});
    }
    json["settings"] = nlohmann::ordered_json::array();
    for (const SettingRow& row : settingRows(comparison.runs, comparison.hasAllSettings))
        json["settings"].push_back({{"key", row.key},
                                    {"values", row.values},
                                    {"equal", row.isEqual},
                                    {"blocks", row.effect == DifferenceEffect::Blocks}});
    json["pairs"] = nlohmann::ordered_json::array();
    for (const PairComparison& pair : comparison.pairs) {
        nlohmann::ordered_json one{
            {"a", letterOf(pair.a)},   {"b", letterOf(pair.b)}, {"comparable", pair.isComparable()},
            {"reasons", pair.reasons}, {"notes", pair.notes},   {"samples", pair.shared}};
        one["metrics"] = nlohmann::ordered_json::array();
        for (const MetricDifference& metric : pair.metrics)
            one["metrics"].push_back(metricJson(metric));
        if (pair.flips)
            one["flips"] = {{"of", pair.flips->label},
                            {"both_right", pair.flips->table.bothRight},
                            {"only_a", pair.flips->table.onlyA},
                            {"only_b", pair.flips->table.onlyB},
                            {"both_wrong", pair.flips->table.bothWrong},
                            {"mcnemar_p", pair.flips->table.pValue},
                            {"samples_only_a", pair.flips->onlyA},
                            {"samples_only_b", pair.flips->onlyB}};
        if (pair.changes)
            one["changes"] = changesJson(*pair.changes);
        // Needs the distribution of each token, which a run file does not hold.
        one["kl_nats"] = pair.distributions ? number(pair.distributions->meanKlNats) : nullptr;
        one["top1_agreement"] = pair.distributions ? number(pair.distributions->sameTop) : nullptr;
        json["pairs"].push_back(std::move(one));
    }
    if (comparison.preset == ComparePreset::Scaling) {
        json["scaling"] = nlohmann::ordered_json::array();
        for (const ScalingRow& row : scalingOf(comparison.runs))
            json["scaling"].push_back({{"run", letterOf(row.run)},
                                       {"ranks", row.ranks},
                                       {"seconds", number(row.seconds)},
                                       {"samples_per_s", number(row.samplesPerSecond)},
                                       {"tokens_per_s", number(row.tokensPerSecond)},
                                       {"speed_up", number(row.speedUp)},
                                       {"efficiency", number(row.efficiency)},
                                       {"compute_share", number(row.computeShare)},
                                       {"wait_share", number(row.waitShare)},
                                       {"transfer_share", number(row.transferShare)},
                                       {"imbalance", number(row.imbalance)},
                                       {"start_up_s", number(row.startUpSeconds)}});
    }
    json["conditions"] = nlohmann::ordered_json::array();
    for (const FailOutcome& outcome : comparison.conditions)
        json["conditions"].push_back({{"text", outcome.condition.text},
                                      {"b", letterOf(outcome.b)},
                                      {"holds", outcome.holds},
                                      {"found", outcome.sentence}});
    json["conclusion"] = conclusionOf(comparison);
    json["exit"] = exitCodeOf(comparison);
    return json;
}

} // namespace muster::run
