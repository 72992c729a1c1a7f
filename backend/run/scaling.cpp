// SPDX-License-Identifier: Apache-2.0
// How runs on several rank counts compare.
#include "run/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace muster::run {

namespace {

std::string escaped(std::string_view text)
{
    std::string made;
    for (const char c : text) {
        if (c == '&')
            made += "&amp;";
        else if (c == '<')
            made += "&lt;";
        else if (c == '>')
            made += "&gt;";
        else if (c == '"')
            made += "&quot;";
        else
            made += c;
    }
    return made;
}

} // namespace

std::vector<ScalingRow> scalingOf(std::span<const ComparedRun> runs)
{
    std::vector<ScalingRow> rows;
    for (std::size_t r = 0; r < runs.size(); ++r) {
        const report::RunResult& result = *runs[r].result;
        if (result.sinceFirstUnitSeconds <= 0.0 || result.ranks == 0)
            continue;
        ScalingRow row;
        row.run = r;
        row.ranks = result.ranks;
        row.seconds = result.sinceFirstUnitSeconds;
        row.startUpSeconds = result.startUpSeconds;
        std::uint64_t tokens = 0;
        double working = 0.0;
        double compute = 0.0;
        double slowest = 0.0;
        for (const report::RankTiming& rank : result.timing) {
            tokens += rank.realTokens;
            compute += static_cast<double>(rank.computeNs);
            slowest = std::max(slowest, static_cast<double>(rank.computeNs));
            working += std::max(0.0, static_cast<double>(rank.elapsedNs - rank.loadNs));
        }
        row.samplesPerSecond = static_cast<double>(result.samplesDone) / row.seconds;
        row.tokensPerSecond = static_cast<double>(tokens) / row.seconds;
        const report::Shares shares = report::shares(result);
        row.waitShare = shares.wait;
        row.transferShare = shares.transfer;
        row.computeShare = working > 0.0 ? std::min(1.0, compute / working) : 0.0;
        if (compute > 0.0)
            row.imbalance = slowest * static_cast<double>(result.timing.size()) / compute;
        rows.push_back(row);
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const ScalingRow& a, const ScalingRow& b) { return a.ranks < b.ranks; });
    for (ScalingRow& row : rows) {
        const ScalingRow& base = rows.front();
        if (base.samplesPerSecond > 0.0)
            row.speedUp = row.samplesPerSecond / base.samplesPerSecond;
        row.efficiency =
            row.speedUp * static_cast<double>(base.ranks) / static_cast<double>(row.ranks);
    }
    return rows;
}

std::string scalingSvg(std::span<const ScalingRow> rows, std::string_view title)
{
    constexpr double width = 640.0;
    constexpr double height = 400.0;
    constexpr double left = 60.0;
    constexpr double right = 60.0;
    constexpr double top = 44.0;
    constexpr double bottom = 56.0;
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\n<title>{2}"
        "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        "<text x=\"{3}\" y=\"24\" font-size=\"14\" fill=\"#222222\">{2}</text>\n",
        width, height, escaped(title), left);
    if (rows.empty())
        return svg + "</svg>\n";
    const double base = rows.front().ranks;
    const double most = rows.back().ranks;
    double highest = most / base;
    for (const ScalingRow& row : rows)
        highest = std::max(highest, row.speedUp);
    const double span = std::max(1e-9, std::log2(most / base));
    const auto x = [&](double ranks) {
        return left + (width - left - right) * (most > base ? std::log2(ranks / base) / span : 0.5);
    };
    // Speed-up on a logarithmic scale too, so that the ideal is a straight line.
    const double spanY = std::max(1e-9, std::log2(std::max(highest, 2.0)));
    const auto y = [&](double speedUp) {
        return height - bottom -
               (height - top - bottom) *
                   std::clamp(std::log2(std::max(speedUp, 0.5)) / spanY, -0.05, 1.0);
    };
    const auto yShare = [&](double share) {
        return height - bottom - (height - top - bottom) * std::clamp(share, 0.0, 1.2) / 1.2;
    };
    const auto line = [&svg](double x1, double y1, double x2, double y2, const char* style) {
        svg += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n",
                           x1, y1, x2, y2, style);
    };
    const auto text = [&svg](double atX, double atY, const char* anchor, const std::string& what) {
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"#222222\">{}"
                           "</text>\n",
                           atX, atY, anchor, escaped(what));
    };
    const char* axis = "stroke=\"#555555\"";
    line(left, height - bottom, width - right, height - bottom, axis);
    line(left, top, left, height - bottom, axis);
    line(width - right, top, width - right, height - bottom, axis);
    for (double at = 1.0; at <= std::max(highest, 2.0) * 1.0001; at *= 2.0) {
        line(left - 4, y(at), left, y(at), axis);
        text(left - 8, y(at) + 4, "end", fmt::format("{:g}×", at));
    }
    for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
        line(width - right, yShare(share), width - right + 4, yShare(share), axis);
        text(width - right + 8, yShare(share) + 4, "start", fmt::format("{:.0f} %", 100 * share));
    }
    for (const ScalingRow& row : rows) {
        line(x(row.ranks), height - bottom, x(row.ranks), height - bottom + 4, axis);
        text(x(row.ranks), height - bottom + 18, "middle", fmt::format("{}", row.ranks));
    }
    text((left + width - right) / 2, height - bottom + 38, "middle", "ranks (log 2)");
    line(x(base), y(1.0), x(most), y(most / base), "stroke=\"#888888\" stroke-dasharray=\"6 4\"");
    std::string speed;
    std::string efficiency;
    for (const ScalingRow& row : rows) {
        speed += fmt::format("{:.1f},{:.1f} ", x(row.ranks), y(row.speedUp));
        efficiency += fmt::format("{:.1f},{:.1f} ", x(row.ranks), yShare(row.efficiency));
    }
    svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"#0072b2\" "
                       "stroke-width=\"2\"/>\n<polyline points=\"{}\" fill=\"none\" "
                       "stroke=\"#d55e00\" stroke-width=\"2\" stroke-dasharray=\"2 3\"/>\n",
                       speed, efficiency);
    for (const ScalingRow& row : rows) {
        svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"#0072b2\"><title>{} "
                           "ranks: {:.2f} times</title></circle>\n",
                           x(row.ranks), y(row.speedUp), row.ranks, row.speedUp);
        svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"7\" height=\"7\" "
                           "fill=\"#d55e00\"><title>{} ranks: {:.1f} % efficiency</title></rect>\n",
                           x(row.ranks) - 3.5, yShare(row.efficiency) - 3.5, row.ranks,
                           100.0 * row.efficiency);
    }
    text(width - right - 6, top + 2, "end", "● speed-up (left)   ■ efficiency (right)   - - ideal");
    return svg + "</svg>\n";
}

} // namespace muster::run
