// SPDX-License-Identifier: Apache-2.0
// Plots of the HTML report: SVG without script, one element for each run of equal columns.
#include "report/html.h"
#include "report/html_p.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace muster::report {

namespace {

constexpr std::size_t columnCount = 1000;

/// A set of colours that people with any colour vision can tell apart (Okabe and Ito).
constexpr std::array<const char*, 8> palette{"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                             "#56b4e9", "#d55e00", "#f0e442", "#555555"};

const char* colourOf(std::uint32_t rank)
{
    return palette[rank % palette.size()];
}

/// What each sample came by: the unit of its last item.
struct Arrival {
    std::uint32_t rank = noRank.value;
    std::int64_t ns = -1;
};

std::vector<Arrival> arrivalsOf(const RunResult& result)
{
    std::vector<Arrival> arrivals(static_cast<std::size_t>(result.samples));
    for (const UnitProvenance& unit : result.provenance)
        for (const SampleIndex sample : unit.samples) {
            if (sample.value >= arrivals.size())
                continue;
            Arrival& at = arrivals[static_cast<std::size_t>(sample.value)];
            if (unit.arrivalNs >= at.ns)
                at = {unit.rank.value, unit.arrivalNs};
        }
    return arrivals;
}

double symlog(double value)
{
    return std::copysign(std::log10(1.0 + std::abs(value)), value);
}

std::string figure(const std::string& svg, const std::string& caption)
{
    return "<figure>" + svg + "<figcaption>" + caption + "</figcaption></figure>\n";
}

std::string svgOpen(double height, std::string_view name)
{
    return fmt::format("<svg viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" role=\"img\" "
                       "aria-label=\"{}\" preserveAspectRatio=\"none\">",
                       columnCount, height, columnCount, height, htmlEscaped(name));
}

std::string legendOf(const RunResult& result)
{
    std::string text = "<p class=\"legend\">";
    for (std::uint32_t r = 0; r < std::min<std::uint32_t>(result.ranks, 16); ++r)
        text +=
            fmt::format("<span class=\"key\" style=\"background:{}\"></span>r{}", colourOf(r), r);
    return text + (result.ranks > 16 ? " …" : "") + "</p>\n";
}

struct Phase {
    const char* english;
    const char* chinese;
    const char* colour;
    std::int64_t RankTiming::*part;
};
constexpr std::array<Phase, 5> phases{{
    {"compute", "计算", "#009e73", &RankTiming::computeNs},
    {"wait", "等待", "#e69f00", &RankTiming::waitNs},
    {"transfer", "传输", "#d55e00", &RankTiming::transferNs},
    {"load", "加载", "#56b4e9", &RankTiming::loadNs},
    {"other", "其他", "#999999", &RankTiming::otherNs},
}};

} // namespace

std::string bilingual(std::string_view english, std::string_view chinese)
{
    return "<span lang=\"en\">" + htmlEscaped(english) + "</span><span lang=\"zh-CN\">" +
           htmlEscaped(chinese) + "</span>";
}

std::string alignmentStrips(const RunResult& result)
{
    const std::vector<Arrival> arrivals = arrivalsOf(result);
    const std::size_t n = arrivals.size();
    if (n == 0)
        return {};
    const std::size_t columns = std::min(columnCount, n);
    const double width = static_cast<double>(columnCount) / static_cast<double>(columns);
    const auto columnOf = [&](std::size_t i) { return i * columns / n; };

    // Place of each sample in the order of arrival.
    std::vector<std::uint32_t> byTime;
    std::int64_t last = 1;
    for (std::size_t i = 0; i < n; ++i)
        if (arrivals[i].rank != noRank.value) {
            byTime.push_back(static_cast<std::uint32_t>(i));
            last = std::max(last, arrivals[i].ns);
        }
    std::stable_sort(byTime.begin(), byTime.end(), [&](std::uint32_t a, std::uint32_t b) {
        return arrivals[a].ns < arrivals[b].ns;
    });

    std::vector<std::uint32_t> owner(columns, noRank.value);
    std::vector<std::uint8_t> isMissing(columns, 0);
    std::vector<double> earliest(columns, -1.0);
    std::vector<double> latest(columns, -1.0);
    std::vector<double> lowest(columns, std::numeric_limits<double>::max());
    std::vector<double> highest(columns, std::numeric_limits<double>::lowest());
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t c = columnOf(i);
        if (arrivals[i].rank == noRank.value) {
            isMissing[c] = 1;
            continue;
        }
        owner[c] = arrivals[i].rank;
        const double at = static_cast<double>(arrivals[i].ns) / static_cast<double>(last);
        earliest[c] = earliest[c] < 0.0 ? at : std::min(earliest[c], at);
        latest[c] = std::max(latest[c], at);
    }
    double span = 1.0;
    for (std::size_t place = 0; place < byTime.size(); ++place) {
        const double residual =
            symlog(static_cast<double>(place) - static_cast<double>(byTime[place]));
        const std::size_t c = columnOf(byTime[place]);
        lowest[c] = std::min(lowest[c], residual);
        highest[c] = std::max(highest[c], residual);
        span = std::max(span, std::abs(residual));
    }

    std::string strips = svgOpen(28, "owner of each sample by index");
    const auto runs = [&](auto colour, double top, double height) {
        for (std::size_t c = 0; c < columns;) {
            std::size_t end = c + 1;
            while (end < columns && colour(end) == colour(c))
                ++end;
            if (!colour(c).empty())
                strips += fmt::format("<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" "
                                      "fill=\"{}\"/>",
                                      static_cast<double>(c) * width, top,
                                      static_cast<double>(end - c) * width, height, colour(c));
            c = end;
        }
    };
    runs(
        [&](std::size_t c) {
            return owner[c] == noRank.value ? std::string_view()
                                            : std::string_view(colourOf(owner[c]));
        },
        0.0, 18.0);
    runs(
        [&](std::size_t c) {
            return isMissing[c] != 0 ? std::string_view("#b3261e") : std::string_view("#00664d");
        },
        20.0, 8.0);
    strips += "</svg>";
    std::string made =
        legendOf(result) +
        figure(strips, bilingual(fmt::format("Owner (above) and state (below: green complete, red "
                                             "missing) of samples 0 to {}; one column is {} "
                                             "sample(s), the worst is shown.",
                                             n - 1, (n + columns - 1) / columns),
                                 fmt::format("样本 0 至 {} 的所属 rank（上）与状态（下：绿色完整，"
                                             "红色缺失）；每列 {} 个样本，显示最差者。",
                                             n - 1, (n + columns - 1) / columns)));

    const auto verticals = [&](const std::vector<double>& from, const std::vector<double>& to,
                               auto has, auto y, double height) {
        std::string lines;
        for (std::size_t c = 0; c < columns; ++c) {
            if (!has(c))
                continue;
            const double top = std::min(y(from[c]), y(to[c]));
            const double size = std::max(1.5, std::abs(y(from[c]) - y(to[c])));
            lines += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" "
                                 "height=\"{:.2f}\" fill=\"{}\"/>",
                                 static_cast<double>(c) * width, std::min(top, height - 1.5),
                                 std::max(1.0, width), size, colourOf(owner[c]));
        }
        return lines;
    };
    std::string times = svgOpen(120, "time of arrival by sample index");
    times += "<rect width=\"1000\" height=\"120\" fill=\"none\" stroke=\"#888888\"/>";
    times += verticals(
        earliest, latest, [&](std::size_t c) { return earliest[c] >= 0.0; },
        [](double at) { return 119.0 - 118.0 * at; }, 120.0);
    times += "</svg>";
    made += figure(
        times, bilingual(fmt::format("Arrival: time after the launch (0 to {:.2f} s, upwards) by "
                                     "sample index. Order of arrival is not order of data, and "
                                     "this is fine.",
                                     static_cast<double>(last) * 1e-9),
                         fmt::format("到达时间：启动后 0 至 {:.2f} 秒（向上），横轴为样本序号。"
                                     "到达顺序不是数据顺序，这没有问题。",
                                     static_cast<double>(last) * 1e-9)));
    std::string residuals = svgOpen(120, "order of arrival minus index, symmetric logarithm");
    residuals += "<rect width=\"1000\" height=\"120\" fill=\"none\" stroke=\"#888888\"/>"
                 "<line x1=\"0\" x2=\"1000\" y1=\"60\" y2=\"60\" stroke=\"#888888\"/>";
    residuals += verticals(
        lowest, highest, [&](std::size_t c) { return highest[c] >= lowest[c]; },
        [span](double value) { return 60.0 - 58.0 * value / span; }, 120.0);
    residuals += "</svg>";
    made += figure(
        residuals,
        bilingual("Residual of arrival: place in the order of arrival minus index (symmetric "
                  "logarithm, 0 in the middle). In the files of the run the residual is 0 "
                  "everywhere: they are written in index order.",
                  "到达残差：到达次序减去样本序号（对称对数，中线为 0）。结果文件按序号写出，"
                  "残差处处为 0。"));
    return made;
}

std::string timeBars(const RunResult& result)
{
    if (result.timing.empty())
        return {};
    std::int64_t longest = 1;
    for (const RankTiming& rank : result.timing)
        longest = std::max(longest, rank.elapsedNs);
    std::string legend = "<p class=\"legend\">";
    for (const Phase& phase : phases)
        legend += fmt::format("<span class=\"key\" style=\"background:{}\"></span>{}", phase.colour,
                              bilingual(phase.english, phase.chinese));
    legend += "</p>\n";
    const double height = 18.0 * static_cast<double>(result.timing.size());
    std::string svg = svgOpen(height, "time of each rank by phase");
    for (std::size_t r = 0; r < result.timing.size(); ++r) {
        const RankTiming& rank = result.timing[r];
        double x = 0.0;
        for (const Phase& phase : phases) {
            const double size = 1000.0 *
                                static_cast<double>(std::max<std::int64_t>(0, rank.*(phase.part))) /
                                static_cast<double>(longest);
            svg += fmt::format("<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"15\" "
                               "fill=\"{}\"><title>rank {} {}: {:.3f} s</title></rect>",
                               x, 18 * r + 1, size, phase.colour, rank.rank.value, phase.english,
                               static_cast<double>(rank.*(phase.part)) * 1e-9);
            x += size;
        }
    }
    return legend +
           figure(svg + "</svg>",
                  bilingual(fmt::format("Time of each rank, from above; the whole width is {:.2f} "
                                        "s. The five parts sum to elapsed.",
                                        static_cast<double>(longest) * 1e-9),
                            fmt::format("各 rank 的时间，自上而下；全宽为 {:.2f} 秒。五部分之和为总"
                                        "时间。",
                                        static_cast<double>(longest) * 1e-9)));
}

std::string throughputBars(const RunResult& result)
{
    std::vector<double> rates;
    double most = 0.0;
    for (const RankTiming& rank : result.timing) {
        const double seconds =
            static_cast<double>(std::max<std::int64_t>(1, rank.elapsedNs - rank.loadNs)) * 1e-9;
        rates.push_back(static_cast<double>(rank.realTokens) / seconds);
        most = std::max(most, rates.back());
    }
    if (most <= 0.0)
        return {};
    std::string svg =
        svgOpen(18.0 * static_cast<double>(rates.size()), "tokens per second by rank");
    for (std::size_t r = 0; r < rates.size(); ++r)
        svg +=
            fmt::format("<rect x=\"0\" y=\"{}\" width=\"{:.2f}\" height=\"15\" fill=\"{}\">"
                        "<title>rank {}: {:.0f} tokens/s</title></rect>",
                        18 * r + 1, 1000.0 * rates[r] / most, colourOf(result.timing[r].rank.value),
                        result.timing[r].rank.value, rates[r]);
    return figure(
        svg + "</svg>",
        bilingual(fmt::format("Throughput of each rank after loading; the whole width is "
                              "{:.0f} real tokens/s.",
                              most),
                  fmt::format("各 rank 加载后的吞吐量；全宽为每秒 {:.0f} 个有效 token。", most)));
}

} // namespace muster::report
