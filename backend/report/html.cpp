// SPDX-License-Identifier: Apache-2.0
#include "report/html.h"

#include "base/utf8.h"
#include "report/html_p.h"
#include "report/streamed_file_p.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace muster::report {

namespace {

/// A string inside a script element: JSON whose `<`, `>` and `&` cannot end it or begin a comment.
std::string scriptJson(const nlohmann::ordered_json& json)
{
    const std::string text =
        json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    std::string made;
    made.reserve(text.size());
    for (const char c : text) {
        if (c == '<')
            made += "\\u003c";
        else if (c == '>')
            made += "\\u003e";
        else if (c == '&')
            made += "\\u0026";
        else
            made += c;
    }
    return made;
}

std::string cut(std::string_view text, std::size_t most)
{
    if (text.size() <= most)
        return std::string(text);
    std::size_t end = most;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
        --end;
    return std::string(text.substr(0, end)) + " …";
}

nlohmann::ordered_json finite(double value)
{
    return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

std::string numberOf(std::optional<double> value, int decimals)
{
    if (!value)
        return "–";
    return std::isfinite(*value) ? fmt::format("{:.{}f}", *value, decimals) : "∞";
}

std::string heading(std::string_view english, std::string_view chinese)
{
    return "<h2>" + bilingual(english, chinese) + "</h2>\n";
}

std::string headCell(std::string_view english, std::string_view chinese, bool isNumber = false)
{
    return fmt::format("<th scope=\"col\"{}>", isNumber ? " class=\"n\"" : "") +
           bilingual(english, chinese) + "</th>";
}

std::string cell(std::string_view text)
{
    return "<td>" + htmlEscaped(text) + "</td>";
}

std::string numberCell(std::string_view text)
{
    return "<td class=\"n\">" + htmlEscaped(text) + "</td>";
}

std::string_view chineseVerdict(align::Verdict verdict)
{
    switch (verdict) {
    case align::Verdict::Aligned:
        return "已对齐：每个样本恰好计算一次，位置正确";
    case align::Verdict::Incomplete:
        return "不完整：有样本缺失";
    case align::Verdict::Misaligned:
        return "未对齐：结果与计划矛盾";
    case align::Verdict::Unverified:
        return "未验证";
    case align::Verdict::Running:
        break;
    }
    return "运行中";
}

std::string metricTable(const RunResult& result)
{
    std::string text = heading("Metrics", "指标") + "<div class=\"wide\"><table><thead><tr>" +
                       headCell("metric", "指标") + headCell("value", "数值", true) +
                       headCell("interval", "区间", true) + headCell("bootstrap", "自助法", true) +
                       headCell("n", "数量", true) + headCell("method", "方法") +
                       "</tr></thead><tbody>\n";
    for (const Metric& metric : result.metrics) {
        const std::string unit = metric.unit.empty() ? "" : " " + metric.unit;
        const auto interval = [&](std::optional<double> low, std::optional<double> high) {
            return low && high
                       ? numberOf(low, metric.decimals) + " – " + numberOf(high, metric.decimals)
                       : std::string("–");
        };
        std::string method = metric.method;
        for (const std::string& more : {metric.intervalMethod, metric.bootstrapMethod})
            if (!more.empty())
                method += "; " + more;
        if (!metric.value && !metric.reason.empty())
            method += "; " + metric.reason;
        text += "<tr>" +
                cell(metric.label.empty() || metric.label == metric.key
                         ? metric.key
                         : fmt::format("{} ({})", metric.label, metric.key)) +
                numberCell(numberOf(metric.value, metric.decimals) + (metric.value ? unit : "")) +
                numberCell(interval(metric.low, metric.high)) +
                numberCell(interval(metric.bootstrapLow, metric.bootstrapHigh)) +
                numberCell(std::to_string(metric.n)) + cell(method) + "</tr>\n";
    }
    text += "</tbody></table></div>\n";
    for (const std::string& hint : result.hints)
        text += "<p>" + htmlEscaped(hint) + "</p>\n";
    for (const GateResult& gate : result.gates)
        text += "<p>" +
                (gate.isMet ? bilingual("gate met: ", "门限通过：")
                            : bilingual("gate NOT met: ", "门限未通过：")) +
                htmlEscaped(gate.text) + "</p>\n";
    return text;
}

std::string ledgerTable(const RunResult& result)
{
    if (result.ledger.empty())
        return {};
    std::string text = heading("Wrong averages of the same losses", "同样损失的错误平均") + "<p>" +
                       bilingual("None of these is the perplexity; they are here so that a figure "
                                 "from elsewhere can be recognised.",
                                 "以下都不是困惑度，列出它们是为了辨认他处的数字。") +
                       "</p><div class=\"wide\"><table><thead><tr>" +
                       headCell("procedure", "做法") + headCell("value", "数值", true) +
                       headCell("why it differs", "为何不同") + "</tr></thead><tbody>\n";
    for (const LedgerEntry& entry : result.ledger)
        text += "<tr>" + cell(entry.key) + numberCell(numberOf(entry.value, 4)) +
                cell(entry.sentence) + "</tr>\n";
    return text + "</tbody></table></div>\n";
}

std::string confusionTable(const RunResult& result)
{
    if (result.confusion.empty())
        return {};
    const auto nameOf = [&](std::size_t c) {
        return c < result.classNames.size() ? result.classNames[c] : std::to_string(c);
    };
    std::string text = heading("Confusion matrix", "混淆矩阵") +
                       "<div class=\"wide\"><table><thead><tr>" +
                       headCell("right class, across: predicted", "行：正确类别；列：预测类别");
    for (std::size_t c = 0; c < result.confusion.size(); ++c)
        text += "<th scope=\"col\" class=\"n\">" + htmlEscaped(nameOf(c)) + "</th>";
    text += "</tr></thead><tbody>\n";
    for (std::size_t r = 0; r < result.confusion.size(); ++r) {
        text += "<tr><th scope=\"row\">" + htmlEscaped(nameOf(r)) + "</th>";
        for (const std::uint64_t count : result.confusion[r])
            text += numberCell(std::to_string(count));
        text += "</tr>\n";
    }
    return text + "</tbody></table></div>\n";
}

std::string rankTable(const RunResult& result)
{
    if (result.timing.empty())
        return {};
    const Shares all = shares(result);
    std::string text =
        heading("Ranks and time", "Rank 与时间") + "<p>" +
        bilingual(fmt::format("{:.2f} s on {} ranks of {} threads ({}); communication: transfer "
                              "{:.2f} %, wait {:.2f} % of elapsed.",
                              result.elapsedSeconds, result.ranks, result.threadsPerRank,
                              result.launcher, 100.0 * all.transfer, 100.0 * all.wait),
                  fmt::format("{:.2f} 秒，{} 个 rank（每个 {} 线程，{}）；通信：传输 {:.2f} %，"
                              "等待 {:.2f} %。",
                              result.elapsedSeconds, result.ranks, result.threadsPerRank,
                              result.launcher, 100.0 * all.transfer, 100.0 * all.wait)) +
        "</p>\n" + throughputBars(result) + timeBars(result) +
        "<div class=\"wide\"><table><thead><tr>" + headCell("rank", "rank", true) +
        headCell("node", "节点") + headCell("units", "单元", true) +
        headCell("items", "条目", true) + headCell("tokens", "token", true) +
        headCell("tokens/s", "token/秒", true) + headCell("compute %", "计算 %", true) +
        headCell("wait %", "等待 %", true) + headCell("transfer %", "传输 %", true) +
        headCell("load %", "加载 %", true) + "</tr></thead><tbody>\n";
    for (const RankTiming& rank : result.timing) {
        const double elapsed = std::max(1.0, static_cast<double>(rank.elapsedNs));
        const auto share = [elapsed](std::int64_t ns) {
            return numberCell(fmt::format("{:.2f}", 100.0 * static_cast<double>(ns) / elapsed));
        };
        const double seconds =
            static_cast<double>(std::max<std::int64_t>(1, rank.elapsedNs - rank.loadNs)) * 1e-9;
        text += "<tr>" + numberCell(std::to_string(rank.rank.value)) + cell(rank.node) +
                numberCell(std::to_string(rank.units)) + numberCell(std::to_string(rank.items)) +
                numberCell(std::to_string(rank.realTokens)) +
                numberCell(fmt::format("{:.0f}", static_cast<double>(rank.realTokens) / seconds)) +
                share(rank.computeNs) + share(rank.waitNs) + share(rank.transferNs) +
                share(rank.loadNs) + "</tr>\n";
    }
    return text + "</tbody></table></div>\n";
}

std::string environment(const RunResult& result)
{
    std::string text = heading("Environment", "环境") + "<div class=\"wide\"><table><tbody>\n";
    const auto row = [&text](std::string_view english, std::string_view chinese,
                             std::string_view value) {
        text += "<tr><th scope=\"row\">" + bilingual(english, chinese) + "</th>" + cell(value) +
                "</tr>\n";
    };
    row("Muster", "Muster", result.version);
    row("model", "模型", result.model);
    row("model digest", "模型摘要", result.modelDigest);
    row("data", "数据", result.data);
    row("data digest", "数据摘要", result.dataDigest.hex());
    row("tokenizer digest", "分词器摘要", result.tokenizerDigest.hex());
    row("evaluation digest", "评测设置摘要", result.evaluationDigest.hex());
    row("plan digest", "计划摘要", result.planDigest.hex());
    row("precision", "精度", result.dtype);
    row("kernels", "计算内核", result.kernels);
    row("launcher", "启动器", result.launcher);
    row("schedule, gather", "调度与收集", result.schedule + ", " + result.gather);
    row("started", "开始", result.startedUtc);
    row("finished", "结束", result.finishedUtc);
    text += "</tbody></table></div>\n";
    for (const DataWarning& warning : result.dataWarnings)
        text +=
            "<p>" +
            htmlEscaped(fmt::format("{}: {} ({})", warning.code, warning.sentence, warning.count)) +
            "</p>\n";
    return text;
}

/// Columns of the sample table; the last element of each row is 0, or 1 when it is missing.
nlohmann::ordered_json columnsOf(const RunResult& result)
{
    using Json = nlohmann::ordered_json;
    const auto text = [](const char* english, const char* chinese) {
        return Json{{"en", english}, {"zh", chinese}};
    };
    const auto number = [](const char* english, const char* chinese, int digits) {
        return Json{{"en", english}, {"zh", chinese}, {"number", true}, {"digits", digits}};
    };
    Json shared = text("context", "上下文");
    shared["ref"] = true;
    Json columns = Json::array({number("index", "序号", 0), text("id", "标识")});
    if (result.task == "lm") {
        for (Json& one : std::vector<Json>{
                 text("document", "文档"), text("text", "文本"), number("tokens", "token 数", 0),
                 number("loss sum", "损失和", 4), number("loss per token", "每 token 损失", 6),
                 number("PPL", "困惑度", 4)})
            columns.push_back(std::move(one));
        return columns;
    }
    if (result.task == "qa") {
        columns.push_back(text("question", "问题"));
        columns.push_back(shared);
    } else {
        columns.push_back(text("text", "文本"));
    }
    columns.push_back(text("reference", "参考"));
    columns.push_back(text("prediction", "预测"));
    columns.push_back(result.task == "qa" ? number("EM", "EM", 0) : number("right", "正确", 0));
    columns.push_back(result.task == "qa" ? number("F1", "F1", 4)
                                          : number("probability", "概率", 4));
    return columns;
}

int scoreColumnOf(const RunResult& result)
{
    return result.task == "lm" ? -1 : result.task == "qa" ? 6 : 5;
}

/// Streams the samples: `{"columns":…,"scoreColumn":…,"rows":[…],"texts":[…]}`.
Status writeSamples(StreamedFile& out, const RunResult& result, std::size_t longest)
{
    using Json = nlohmann::ordered_json;
    out << "<script type=\"application/json\" id=\"data\">{\"columns\":"
        << scriptJson(columnsOf(result))
        << fmt::format(",\"scoreColumn\":{},\"rows\":[", scoreColumnOf(result));
    std::vector<std::string> texts;
    std::unordered_map<std::string, std::size_t> known;
    bool isFirst = true;
    const Status visited = result.forEachSample([&](const SampleRow& row) {
        Json one = Json::array({row.index.value, cut(row.id, 200)});
        const std::string wrong = row.isComplete ? std::string() : row.error;
        if (row.lm) {
            const double mean = row.lm->scored == 0
                                    ? std::nan("")
                                    : row.lm->lossSum / static_cast<double>(row.lm->scored);
            one.push_back(cut(row.title, 200));
            one.push_back(row.isComplete ? cut(row.context, longest) : wrong);
            one.push_back(row.lm->scored);
            one.push_back(row.isComplete ? finite(row.lm->lossSum) : Json(nullptr));
            one.push_back(row.isComplete ? finite(mean) : Json(nullptr));
            one.push_back(row.isComplete ? finite(std::exp(mean)) : Json(nullptr));
        } else {
            std::string targets;
            for (const std::string_view target : row.targets)
                targets.append(targets.empty() ? "" : " | ").append(target);
            if (result.task == "qa") {
                one.push_back(cut(row.question, longest));
                std::string context = cut(row.context, longest);
                const auto [at, isNew] = known.try_emplace(context, texts.size());
                if (isNew)
                    texts.push_back(std::move(context));
                one.push_back(at->second);
            } else {
                std::string text = cut(row.context, longest);
                if (row.classes && row.classes->hasPair)
                    text += " ‖ " + cut(row.classes->pair, longest);
                one.push_back(std::move(text));
            }
            one.push_back(cut(targets, longest));
            one.push_back(row.isComplete ? cut(row.prediction, longest) : wrong);
            one.push_back(row.isComplete ? Json(row.em) : Json(nullptr));
            double second = row.f1;
            if (row.classes) {
                second = std::nan("");
                if (!row.classes->predicted.empty() &&
                    row.classes->predicted.front() < row.classes->probabilities.size())
                    second = row.classes->probabilities[row.classes->predicted.front()];
            }
            one.push_back(row.isComplete ? finite(second) : Json(nullptr));
        }
        one.push_back(row.isComplete ? 0 : 1);
        out << (isFirst ? "\n" : ",\n") << scriptJson(one);
        isFirst = false;
    });
    out << "],\"texts\":[";
    for (std::size_t i = 0; i < texts.size(); ++i)
        out << (i == 0 ? "\n" : ",\n") << scriptJson(texts[i]);
    out << "]}</script>\n";
    return visited;
}

} // namespace

std::string htmlEscaped(std::string_view text)
{
    std::string made;
    made.reserve(text.size());
    for (const char c : utf8::repaired(text)) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '&')
            made += "&amp;";
        else if (c == '<')
            made += "&lt;";
        else if (c == '>')
            made += "&gt;";
        else if (c == '"')
            made += "&quot;";
        else if (c == '\'')
            made += "&#39;";
        else if ((byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F)
            made += "\xEF\xBF\xBD";
        else
            made += c;
    }
    return made;
}

Status writeHtml(const std::filesystem::path& to, const RunResult& result,
                 const HtmlOptions& options)
{
    StreamedFile out(to);
    const char* language = options.language == HtmlLanguage::Chinese ? "zh_CN" : "en";
    const std::string verdict(align::word(result.verdict));
    out << "<!DOCTYPE html>\n<html lang=\""
        << (options.language == HtmlLanguage::Chinese ? "zh-CN" : "en") << "\" data-lang=\""
        << language << "\">\n<head>\n<meta charset=\"utf-8\">\n"
        << "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
           "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
        << "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>"
        << htmlEscaped("Muster: " + result.runId) << "</title>\n<style>" << htmlStyle
        << "</style>\n</head>\n<body>\n"
        << "<nav><button type=\"button\" data-lang=\"en\">English</button><button type=\"button\" "
           "data-lang=\"zh_CN\">中文</button></nav>\n";
    out << "<h1>" << htmlEscaped(result.name.empty() ? result.runId : result.name) << "</h1>\n<p>"
        << "<span class=\"badge " << verdict << "\">" << verdict << "</span> "
        << fmt::format("{}/{} ", result.samplesDone, result.samples);
    for (const Metric& metric : result.metrics)
        if (metric.isHeadline) {
            const std::string half =
                metric.low && metric.high
                    ? fmt::format(" ±{:.{}f}", (*metric.high - *metric.low) / 2.0, metric.decimals)
                    : std::string();
            out << " <b>"
                << htmlEscaped(fmt::format(
                       "{} {}{}{}", metric.label, numberOf(metric.value, metric.decimals),
                       metric.value && !metric.unit.empty() ? " " + metric.unit : "", half))
                << "</b>";
        }
    out << "</p>\n<p>" << bilingual(result.sentence, chineseVerdict(result.verdict)) << "</p>\n";
    if (!result.procedure.empty())
        out << "<p>" << htmlEscaped(result.procedure) << "</p>\n";
    out << "<p class=\"dim\">" << htmlEscaped(result.runId) << "</p>\n";
    out << metricTable(result) << ledgerTable(result) << confusionTable(result);
    const std::string strips = alignmentStrips(result);
    if (!strips.empty())
        out << heading("Alignment", "对齐") << strips;
    out << rankTable(result);
    out << heading("Samples", "样本") << "<div class=\"bar\"><label>"
        << bilingual("search ", "搜索 ") << "<input id=\"search\" type=\"search\"></label><label>"
        << bilingual("show ", "显示 ")
        << "<select id=\"state\"><option value=\"all\">all / 全部</option><option "
           "value=\"right\">right / 正确</option><option value=\"wrong\">wrong / 错误</option>"
           "<option value=\"missing\">missing / 缺失</option></select></label><label>"
        << bilingual("a page has ", "每页 ")
        << "<select id=\"size\"><option>25</option><option>50</option><option>100</option>"
           "<option>500</option></select></label>"
        << "<button id=\"back\" type=\"button\" aria-label=\"previous page / 上一页\">◀</button>"
        << "<span id=\"place\" aria-live=\"polite\"></span>"
        << "<button id=\"on\" type=\"button\" aria-label=\"next page / 下一页\">▶</button></div>\n"
        << "<div class=\"wide\"><table id=\"samples\"><thead id=\"samples-head\"></thead><tbody "
           "id=\"samples-body\"></tbody></table></div>\n"
        << "<noscript><p>"
        << bilingual("The sample table needs the script of this page; samples.jsonl holds the "
                     "same.",
                     "样本表需要本页脚本；samples.jsonl 含有同样内容。")
        << "</p></noscript>\n";
    const Status visited = writeSamples(out, result, options.longestText);
    out << heading("Proof", "证明") << "<details open><summary>proof.json</summary><pre>"
        << htmlEscaped(result.proofJson) << "</pre></details>\n"
        << heading("Configuration", "配置") << "<pre>" << htmlEscaped(result.configToml)
        << "</pre>\n"
        << environment(result);
    if (!result.events.empty()) {
        out << heading("Events", "事件") << "<pre>";
        for (const Event& event : result.events)
            out << htmlEscaped(fmt::format("{} {} {}\n", event.level, event.code, event.text));
        out << "</pre>\n";
    }
    out << "<script>" << htmlScript << "</script>\n</body>\n</html>\n";
    if (!visited)
        return visited;
    return out.close();
}

} // namespace muster::report
