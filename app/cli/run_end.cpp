// SPDX-License-Identifier: Apache-2.0
#include "run_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <csignal>

namespace muster::cli {

std::string metricText(const MetricValue& metric)
{
    if (!metric.value || !std::isfinite(*metric.value))
        return metric.label + " undefined";
    std::string text = fmt::format("{} {:.{}f}", metric.label, *metric.value, metric.decimals);
    if (!metric.unit.empty())
        text += " " + metric.unit;
    if (metric.halfWidth && std::isfinite(*metric.halfWidth))
        text += fmt::format(" +-{:.{}f}", *metric.halfWidth, metric.decimals);
    return text;
}

std::string lastLine(const RunEnd& end)
{
    std::string line = fmt::format("{} {}/{}", end.verdict.empty() ? "INCOMPLETE" : end.verdict,
                                   end.samplesDone, end.samples);
    for (const MetricValue& metric : end.metrics) {
        if (!metric.label.empty())
            line += "  " + metricText(metric);
    }
    line += fmt::format("  {:.1f} s on {} rank{}  comm {:.1f} %", end.elapsedSeconds, end.ranks,
                        end.ranks == 1 ? "" : "s", 100.0 * std::max(0.0, end.transferShare));
    return line;
}

ExitCode exitCodeOf(const RunEnd& end)
{
    if (end.verdict == "MISALIGNED")
        return ExitCode::Integrity;
    if (end.signal == SIGINT)
        return ExitCode::Interrupted;
    if (end.signal == SIGTERM)
        return ExitCode::Terminated;
    if (end.error)
        return exitCodeOf(end.error->kind);
    if (end.verdict == "INCOMPLETE")
        return ExitCode::Incomplete;
    if (end.verdict != "ALIGNED")
        return ExitCode::Failed;
    const bool isEveryGateMet = std::all_of(end.gates.begin(), end.gates.end(),
                                            [](const GateOutcome& gate) { return gate.isMet; });
    return isEveryGateMet ? ExitCode::Done : ExitCode::Gate;
}

nlohmann::ordered_json jsonNumber(double value)
{
    if (!std::isfinite(value))
        return nullptr;
    return value;
}

nlohmann::ordered_json toJson(const Error& error)
{
    return {{"kind", kindName(error.kind)}, {"code", error.code}, {"message", error.message}};
}

nlohmann::ordered_json toJson(const RunEnd& end)
{
    nlohmann::ordered_json document;
    document["verdict"] = nullptr;
    if (!end.verdict.empty())
        document["verdict"] = end.verdict;
    nlohmann::ordered_json metrics = nlohmann::ordered_json::object();
    nlohmann::ordered_json intervals = nlohmann::ordered_json::object();
    nlohmann::ordered_json undefined = nlohmann::ordered_json::object();
    for (const MetricValue& metric : end.metrics) {
        const bool isDefined = metric.value && std::isfinite(*metric.value);
        metrics[metric.key] =
            isDefined ? nlohmann::ordered_json(*metric.value) : nlohmann::ordered_json();
        if (!isDefined)
            undefined[metric.key] =
                metric.undefinedReason.empty() ? "the value is not finite" : metric.undefinedReason;
        else if (metric.halfWidth)
            intervals[metric.key] = {{"half_width", jsonNumber(*metric.halfWidth)}};
    }
    document["metrics"] = std::move(metrics);
    document["intervals"] = std::move(intervals);
    if (!undefined.empty())
        document["undefined"] = std::move(undefined);
    document["samples"] = {{"done", end.samplesDone}, {"total", end.samples}};
    document["run"] = end.folder.string();
    document["elapsed_s"] = jsonNumber(end.elapsedSeconds);
    document["ranks"] = end.ranks;
    document["comm"] = jsonNumber(end.transferShare);
    document["wait"] = jsonNumber(end.waitShare);
    nlohmann::ordered_json gates = nlohmann::ordered_json::array();
    for (const GateOutcome& gate : end.gates)
        gates.push_back({{"gate", gate.text},
                         {"found", gate.found ? jsonNumber(*gate.found) : nullptr},
                         {"met", gate.isMet}});
    document["gates"] = std::move(gates);
    document["findings"] = end.findings;
    document["error"] = end.error ? toJson(*end.error) : nlohmann::ordered_json();
    document["exit"] = static_cast<int>(exitCodeOf(end));
    return document;
}

std::string jsonText(const nlohmann::ordered_json& document, int indent)
{
    return document.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace muster::cli
