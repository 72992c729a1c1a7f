// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace muster::metrics {

/// MT19937 seeded by the array initialiser, the stream of numpy's and Python's legacy generators
/// (semantics.md 6.1). std::mt19937 with the same seed is another stream.
class PythonRandom final {
public:
    /// The key is the seed as 32-bit words, low word first, without leading zero words.
    explicit PythonRandom(std::uint64_t seed);

    /// The next 32 bits.
    std::uint32_t next();
    /// In [0, 1), 53 bits: (a·2^26 + b)/2^53 with a = next() >> 5, b = next() >> 6.
    double uniform();
    /// floor(uniform() · n), in [0, n) for n ≥ 1: Python's random.choices.
    std::size_t index(std::size_t n);

private:
    void twist();
    static constexpr std::size_t stateSize = 624;
    std::array<std::uint32_t, stateSize> m_state{};
    std::size_t m_at = stateSize;
};

/// A value with its standard error and a two-sided interval, in the unit of the values.
struct Interval {
    double value = 0.0;
    double standardError = 0.0;
    double low = 0.0;
    double high = 0.0;

    bool operator==(const Interval&) const = default;
};

/// The point that a standard normal variable stays below with this probability (0 < p < 1).
/// Accurate to a few units in the last place; ±infinity for 1 and 0.
[[nodiscard]] double normalQuantile(double probability);

/// Mean ± z · s/√n with s the sample standard deviation (n−1), summed in the order given with
/// compensation. Errors: Undefined (`E-METRICS-010`) for n ≤ 1, because one value has no spread
/// (C-021); Invalid (`E-METRICS-011`) for a confidence outside (0, 1).
/// Source: semantics.md 6.1.
[[nodiscard]] Result<Interval> normalInterval(std::span<const double> values,
                                              double confidence = 0.95);

/// The same from n, the sum and the sum of squares, for sums that were kept exactly.
[[nodiscard]] Result<Interval> normalInterval(std::uint64_t n, double sum, double sumOfSquares,
                                              double confidence = 0.95);

/// Wilson's score interval of a proportion; standardError is √(p(1−p)/n). Errors: Undefined
/// (`E-METRICS-010`) for n = 0; Invalid (`E-METRICS-011`) for hits > n or a confidence outside (0,
/// 1). Source: E. B. Wilson, JASA 22 (1927), without continuity correction.
[[nodiscard]] Result<Interval> wilsonInterval(std::uint64_t hits, std::uint64_t n,
                                              double confidence = 0.95);

struct BootstrapOptions {
    std::uint64_t replicates = 1000; ///< rounded down to whole chunks of min(1000, replicates)
    std::uint64_t seed = 0;          ///< chunk i uses the seed `seed + i`; 0 as lm-eval
    double confidence = 0.95;
};

/// Bootstrap of the mean. `value` is the plain mean of the values; each replicate is the plain mean
/// of n values drawn by PythonRandom::index; standardError is their sample standard deviation
/// (never divided by √B, T-62); low and high are their percentiles (1∓confidence)/2 with linear
/// interpolation. Values must be in index order, so that the result does not depend on the number
/// of ranks (T-61). Errors: as normalInterval; Undefined also for fewer than 2 replicates.
/// Source: semantics.md 6.1.
[[nodiscard]] Result<Interval> bootstrapMean(std::span<const double> values,
                                             const BootstrapOptions& options = {});

/// A number that follows from samples, given by their places; a place may stand several times.
using DrawnStatistic = std::function<double(std::span<const std::size_t>)>;

/// Bootstrap of any statistic of `n` samples: each replicate is the statistic of n places drawn by
/// PythonRandom::index, in the order of drawing. `value` is handed through; the rest as
/// bootstrapMean(), which draws the same places. Replicates without a finite value are left out.
/// Errors as bootstrapMean().
[[nodiscard]] Result<Interval> bootstrapStatistic(std::size_t n, const DrawnStatistic& statistic,
                                                  double value,
                                                  const BootstrapOptions& options = {});

} // namespace muster::metrics
