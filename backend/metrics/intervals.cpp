// SPDX-License-Identifier: Apache-2.0
#include "metrics/intervals.h"

#include "base/sums.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

namespace muster::metrics {

namespace {

Status checkConfidence(double confidence)
{
    if (confidence > 0.0 && confidence < 1.0)
        return {};
    return fail(Error::Kind::Invalid, "E-METRICS-011",
                "a confidence must lie between 0 and 1, such as 0.95");
}

tl::unexpected<Error> noSpread()
{
    return fail(Error::Kind::Undefined, "E-METRICS-010",
                "fewer than two values have no standard error");
}

/// Sample standard deviation; at least two values.
double sampleDeviation(std::span<const double> values, double mean)
{
    std::vector<double> squares;
    squares.reserve(values.size());
    for (const double value : values)
        squares.push_back((value - mean) * (value - mean));
    return std::sqrt(compensatedSum(squares) / static_cast<double>(values.size() - 1));
}

/// Percentile with linear interpolation between closest ranks; `sorted` is not empty.
double percentile(std::span<const double> sorted, double fraction)
{
    const double place = fraction * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    const double weight = place - static_cast<double>(below);
    return sorted[below] + weight * (sorted[above] - sorted[below]);
}

} // namespace

PythonRandom::PythonRandom(std::uint64_t seed)
{
    m_state[0] = 19650218U;
    for (std::uint32_t i = 1; i < stateSize; ++i)
        m_state[i] = 1812433253U * (m_state[i - 1] ^ (m_state[i - 1] >> 30U)) + i;
    const std::array<std::uint32_t, 2> key{static_cast<std::uint32_t>(seed),
                                           static_cast<std::uint32_t>(seed >> 32U)};
    const std::uint32_t keySize = key[1] == 0 ? 1 : 2;
    std::size_t i = 1;
    std::uint32_t j = 0;
    const auto wrap = [&] {
        if (++i == stateSize) {
            m_state[0] = m_state[stateSize - 1];
            i = 1;
        }
    };
    for (std::size_t step = 0; step < stateSize; ++step) {
        const std::uint32_t previous = m_state[i - 1];
        m_state[i] = (m_state[i] ^ ((previous ^ (previous >> 30U)) * 1664525U)) + key[j] + j;
        wrap();
        j = (j + 1) % keySize;
    }
    for (std::size_t step = 0; step < stateSize - 1; ++step) {
        const std::uint32_t previous = m_state[i - 1];
        m_state[i] = (m_state[i] ^ ((previous ^ (previous >> 30U)) * 1566083941U)) -
                     static_cast<std::uint32_t>(i);
        wrap();
    }
    m_state[0] = 0x80000000U;
}

void PythonRandom::twist()
{
    constexpr std::size_t middle = 397;
    const auto mix = [](std::uint32_t high, std::uint32_t low, std::uint32_t far) {
        const std::uint32_t y = (high & 0x80000000U) | (low & 0x7FFFFFFFU);
        return far ^ (y >> 1U) ^ ((y & 1U) != 0 ? 0x9908B0DFU : 0U);
    };
    for (std::size_t i = 0; i < stateSize; ++i)
        m_state[i] =
            mix(m_state[i], m_state[(i + 1) % stateSize], m_state[(i + middle) % stateSize]);
    m_at = 0;
}

std::uint32_t PythonRandom::next()
{
    if (m_at == stateSize)
        twist();
    std::uint32_t y = m_state[m_at++];
    y ^= y >> 11U;
    y ^= (y << 7U) & 0x9D2C5680U;
    y ^= (y << 15U) & 0xEFC60000U;
    y ^= y >> 18U;
    return y;
}

double PythonRandom::uniform()
{
    const std::uint32_t a = next() >> 5U;
    const std::uint32_t b = next() >> 6U;
    return (a * 67108864.0 + b) * (1.0 / 9007199254740992.0);
}

std::size_t PythonRandom::index(std::size_t n)
{
    return static_cast<std::size_t>(uniform() * static_cast<double>(n));
}

double normalQuantile(double probability)
{
    if (!(probability > 0.0))
        return -std::numeric_limits<double>::infinity();
    if (!(probability < 1.0))
        return std::numeric_limits<double>::infinity();
    if (probability == 0.5)
        return 0.0;
    // Upper tail by Newton's method on erfc, which keeps its relative accuracy there. Start:
    // Abramowitz and Stegun 26.2.23.
    const double tail = std::min(probability, 1.0 - probability);
    const double t = std::sqrt(-2.0 * std::log(tail));
    double x = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                       (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
    for (int i = 0; i < 4; ++i) {
        const double excess = 0.5 * std::erfc(x / std::numbers::sqrt2) - tail;
        const double density =
            std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
        x += excess / density;
    }
    return probability < 0.5 ? -x : x;
}

Result<Interval> normalInterval(std::span<const double> values, double confidence)
{
    if (const Status checked = checkConfidence(confidence); !checked)
        return fail(checked.error());
    if (values.size() < 2)
        return noSpread();
    const auto n = static_cast<double>(values.size());
    const double mean = compensatedSum(values) / n;
    const double error = sampleDeviation(values, mean) / std::sqrt(n);
    const double reach = normalQuantile(0.5 + 0.5 * confidence) * error;
    return Interval{mean, error, mean - reach, mean + reach};
}

Result<Interval> normalInterval(std::uint64_t n, double sum, double sumOfSquares, double confidence)
{
    if (const Status checked = checkConfidence(confidence); !checked)
        return fail(checked.error());
    if (n < 2)
        return noSpread();
    const auto count = static_cast<double>(n);
    const double mean = sum / count;
    const double variance = std::max(0.0, sumOfSquares - sum * mean) / (count - 1.0);
    const double error = std::sqrt(variance / count);
    const double reach = normalQuantile(0.5 + 0.5 * confidence) * error;
    return Interval{mean, error, mean - reach, mean + reach};
}

Result<Interval> wilsonInterval(std::uint64_t hits, std::uint64_t n, double confidence)
{
    if (const Status checked = checkConfidence(confidence); !checked)
        return fail(checked.error());
    if (n == 0)
        return fail(Error::Kind::Undefined, "E-METRICS-010",
                    "a proportion of nothing is undefined");
    if (hits > n)
        return fail(Error::Kind::Invalid, "E-METRICS-011", "there are more hits than trials");
    const auto count = static_cast<double>(n);
    const double p = static_cast<double>(hits) / count;
    const double z = normalQuantile(0.5 + 0.5 * confidence);
    const double shrink = 1.0 + z * z / count;
    const double centre = (p + z * z / (2.0 * count)) / shrink;
    const double reach =
        z * std::sqrt(p * (1.0 - p) / count + z * z / (4.0 * count * count)) / shrink;
    return Interval{p, std::sqrt(p * (1.0 - p) / count), hits == 0 ? 0.0 : centre - reach,
                    hits == n ? 1.0 : centre + reach};
}

Result<Interval> bootstrapMean(std::span<const double> values, const BootstrapOptions& options)
{
    if (const Status checked = checkConfidence(options.confidence); !checked)
        return fail(checked.error());
    if (values.size() < 2)
        return noSpread();
    if (options.replicates < 2)
        return fail(Error::Kind::Undefined, "E-METRICS-010",
                    "a bootstrap needs at least two replicates");
    const std::uint64_t chunk = std::min<std::uint64_t>(1000, options.replicates);
    const std::uint64_t chunks = options.replicates / chunk;
    const auto n = static_cast<double>(values.size());
    std::vector<double> means;
    means.reserve(static_cast<std::size_t>(chunk * chunks));
    for (std::uint64_t i = 0; i < chunks; ++i) {
        PythonRandom random(options.seed + i);
        for (std::uint64_t replicate = 0; replicate < chunk; ++replicate) {
            double sum = 0.0;
            for (std::size_t draw = 0; draw < values.size(); ++draw)
                sum += values[random.index(values.size())];
            means.push_back(sum / n);
        }
    }
    const double centre = compensatedSum(means) / static_cast<double>(means.size());
    Interval interval;
    interval.value = plainSum(values) / n;
    interval.standardError = sampleDeviation(means, centre);
    std::sort(means.begin(), means.end());
    interval.low = percentile(means, 0.5 - 0.5 * options.confidence);
    interval.high = percentile(means, 0.5 + 0.5 * options.confidence);
    return interval;
}

Result<Interval> bootstrapStatistic(std::size_t n, const DrawnStatistic& statistic, double value,
                                    const BootstrapOptions& options)
{
    if (const Status checked = checkConfidence(options.confidence); !checked)
        return fail(checked.error());
    if (n < 2)
        return noSpread();
    if (options.replicates < 2)
        return fail(Error::Kind::Undefined, "E-METRICS-010",
                    "a bootstrap needs at least two replicates");
    const std::uint64_t chunk = std::min<std::uint64_t>(1000, options.replicates);
    const std::uint64_t chunks = options.replicates / chunk;
    std::vector<std::size_t> places(n);
    std::vector<double> found;
    found.reserve(static_cast<std::size_t>(chunk * chunks));
    for (std::uint64_t i = 0; i < chunks; ++i) {
        PythonRandom random(options.seed + i);
        for (std::uint64_t replicate = 0; replicate < chunk; ++replicate) {
            for (std::size_t& place : places)
                place = random.index(n);
            const double drawn = statistic(places);
            if (std::isfinite(drawn))
                found.push_back(drawn);
        }
    }
    if (found.size() < 2)
        return fail(Error::Kind::Undefined, "E-METRICS-010",
                    "fewer than two replicates of the bootstrap have a value");
    const double centre = compensatedSum(found) / static_cast<double>(found.size());
    Interval interval;
    interval.value = value;
    interval.standardError = sampleDeviation(found, centre);
    std::sort(found.begin(), found.end());
    interval.low = percentile(found, 0.5 - 0.5 * options.confidence);
    interval.high = percentile(found, 0.5 + 0.5 * options.confidence);
    return interval;
}

} // namespace muster::metrics
