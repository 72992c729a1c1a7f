// SPDX-License-Identifier: Apache-2.0
#include "progress.h"

#include "run_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace muster::cli {

namespace {

constexpr std::int64_t redrawNs = 100'000'000;
constexpr std::int64_t lineNs = 30'000'000'000;

std::vector<std::string> parts(const ProgressView& progress)
{
    std::vector<std::string> texts;
    if (progress.samples == 0)
        return texts;
    texts.push_back(rateText(progress.samplesPerSecond) + " samples/s");
    texts.push_back("ETA " + durationText(progress.etaSeconds));
    texts.push_back(rateText(progress.tokensPerSecond) + " tokens/s");
    if (progress.transferShare >= 0.0)
        texts.push_back(fmt::format("comm {:.1f} %", 100.0 * progress.transferShare));
    for (const MetricValue& metric : progress.soFar) {
        if (metric.value)
            texts.push_back(metricText(metric));
    }
    return texts;
}

double doneShare(const ProgressView& progress)
{
    if (progress.samples == 0)
        return 0.0;
    return std::clamp(static_cast<double>(progress.samplesDone) /
                          static_cast<double>(progress.samples),
                      0.0, 1.0);
}

} // namespace

std::string durationText(double seconds)
{
    constexpr double largest = 1e9;
    if (!(seconds >= 0.0) || seconds > largest)
        return "--:--";
    const auto whole = static_cast<std::int64_t>(std::llround(seconds));
    const std::int64_t hours = whole / 3600;
    const std::int64_t minutes = whole / 60 % 60;
    if (hours > 0)
        return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
    return fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string rateText(double perSecond)
{
    if (!std::isfinite(perSecond) || perSecond < 0.0)
        return "0";
    if (perSecond >= 999'950.0)
        return fmt::format("{:.1f}M", perSecond / 1e6);
    if (perSecond >= 9'999.5)
        return fmt::format("{:.1f}k", perSecond / 1e3);
    return perSecond >= 99.95 ? fmt::format("{:.0f}", perSecond) : fmt::format("{:.1f}", perSecond);
}

std::string barText(const ProgressView& progress, std::size_t columns)
{
    if (progress.samples == 0)
        return clipped(progress.stage, columns);
    constexpr std::size_t narrowest = 60;
    constexpr std::size_t cells = 20;
    std::string line;
    if (columns >= narrowest) {
        const auto full =
            static_cast<std::size_t>(doneShare(progress) * static_cast<double>(cells));
        line = "[" + std::string(full, '=');
        if (full < cells)
            line += '>' + std::string(cells - full - 1, ' ');
        line += "] ";
    }
    line += fmt::format("{}/{}  {} %", progress.samplesDone, progress.samples,
                        static_cast<int>(100.0 * doneShare(progress)));
    if (!progress.stage.empty() && progress.stage != "running")
        line += "  " + progress.stage;
    for (const std::string& part : parts(progress)) {
        if (displayWidth(line) + 2 + displayWidth(part) > columns)
            break;
        line += "  " + part;
    }
    return clipped(line, columns);
}

std::string lineText(const ProgressView& progress)
{
    std::string line = fmt::format("{}  {}", durationText(progress.elapsedSeconds), progress.stage);
    if (progress.samples > 0)
        line += fmt::format("  {}/{} samples", progress.samplesDone, progress.samples);
    for (const std::string& part : parts(progress))
        line += "  " + part;
    return line;
}

nlohmann::ordered_json toJson(const ProgressView& progress)
{
    nlohmann::ordered_json metrics = nlohmann::ordered_json::object();
    for (const MetricValue& metric : progress.soFar)
        metrics[metric.key] = {
            {"value", metric.value ? jsonNumber(*metric.value) : nullptr},
            {"half_width", metric.halfWidth ? jsonNumber(*metric.halfWidth) : nullptr}};
    const auto known = [](double value) { return value < 0.0 ? nullptr : jsonNumber(value); };
    return {{"event", "progress"},
            {"stage", progress.stage},
            {"samples_done", progress.samplesDone},
            {"samples", progress.samples},
            {"samples_per_s", jsonNumber(progress.samplesPerSecond)},
            {"tokens_per_s", jsonNumber(progress.tokensPerSecond)},
            {"eta_s", known(progress.etaSeconds)},
            {"elapsed_s", jsonNumber(progress.elapsedSeconds)},
            {"comm", known(progress.transferShare)},
            {"wait", known(progress.waitShare)},
            {"metrics", std::move(metrics)}};
}

ProgressStyle progressStyle(const GlobalOptions& options, const Terminal& terminal)
{
    if (options.isNdjson)
        return ProgressStyle::Events;
    if (options.isQuiet)
        return ProgressStyle::None;
    return terminal.isInteractive ? ProgressStyle::Bar : ProgressStyle::Lines;
}

ProgressDisplay::ProgressDisplay(ProgressStyle style, Terminal terminal, Write write)
    : m_style(style), m_terminal(terminal), m_write(std::move(write))
{
}

void ProgressDisplay::update(const ProgressView& progress, std::int64_t nowNs)
{
    const bool isNewStage = progress.stage != m_stage;
    switch (m_style) {
    case ProgressStyle::None:
        return;
    case ProgressStyle::Bar: {
        if (m_hasShown && !isNewStage && nowNs - m_lastNs < redrawNs)
            return;
        // One column stays free: a full line would make some terminals wrap.
        const std::size_t columns = std::max<std::size_t>(m_terminal.columns, 2) - 1;
        std::string line = barText(progress, columns);
        if (line != m_drawn)
            m_write("\r" + line + "\x1b[K");
        m_drawn = std::move(line);
        break;
    }
    case ProgressStyle::Lines:
        // The first line comes after 30 seconds; short runs show their result only.
        if (!m_hasShown) {
            m_hasShown = true;
            m_lastNs = nowNs;
        }
        m_stage = progress.stage;
        if (nowNs - m_lastNs < lineNs)
            return;
        m_write(lineText(progress) + "\n");
        break;
    case ProgressStyle::Events:
        if (m_hasShown && !isNewStage && nowNs - m_lastNs < redrawNs)
            return;
        m_write(jsonText(toJson(progress)) + "\n");
        break;
    }
    m_hasShown = true;
    m_stage = progress.stage;
    m_lastNs = nowNs;
}

void ProgressDisplay::say(std::string_view line)
{
    const std::string bar = m_drawn;
    clear();
    m_write(std::string(line) + "\n");
    if (!bar.empty()) {
        m_write("\r" + bar + "\x1b[K");
        m_drawn = bar;
    }
}

void ProgressDisplay::clear()
{
    if (!m_drawn.empty())
        m_write("\r\x1b[K");
    m_drawn.clear();
}

} // namespace muster::cli
