// SPDX-License-Identifier: Apache-2.0
#include "metrics/distributions.h"

#include "metrics/intervals.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <math.h>

namespace muster::metrics {

namespace {

/// ln Γ(x), x > 0. In long double, since differences of large values are taken, and the variant
/// that writes no global sign.
long double logGamma(long double x)
{
    int sign = 0;
    return ::lgammal_r(x, &sign);
}

/// The fraction of DLMF 8.17.22 for x below (a+1)/(a+b+2).
long double betaFraction(long double a, long double b, long double x)
{
    constexpr long double tiny = 1e-300L;
    constexpr int mostSteps = 100000;
    const auto notZero = [](long double value) { return std::fabs(value) < tiny ? tiny : value; };
    long double c = 1.0L;
    long double d = 1.0L / notZero(1.0L - (a + b) * x / (a + 1.0L));
    long double result = d;
    for (int step = 1; step < mostSteps; ++step) {
        const long double m = step;
        const long double even = m * (b - m) * x / ((a + 2.0L * m - 1.0L) * (a + 2.0L * m));
        d = 1.0L / notZero(1.0L + even * d);
        c = notZero(1.0L + even / c);
        result *= d * c;
        const long double odd =
            -(a + m) * (a + b + m) * x / ((a + 2.0L * m) * (a + 2.0L * m + 1.0L));
        d = 1.0L / notZero(1.0L + odd * d);
        c = notZero(1.0L + odd / c);
        result *= d * c;
        if (std::fabs(d * c - 1.0L) < 1e-17L)
            break;
    }
    return result;
}

} // namespace

double incompleteBeta(double a, double b, double x, double oneMinusX)
{
    if (!(x > 0.0))
        return 0.0;
    if (!(oneMinusX > 0.0))
        return 1.0;
    // What lies near 1 and its logarithm come from the small complement.
    const long double small = std::min(x, oneMinusX);
    const bool isSmall = x <= oneMinusX;
    const long double exactX = isSmall ? small : 1.0L - small;
    const long double exactRest = isSmall ? 1.0L - small : small;
    const long double ofSmall = std::log(small);
    const long double ofLarge = std::log1p(-small);
    const long double front =
        std::exp(logGamma(static_cast<long double>(a) + b) - logGamma(a) - logGamma(b) +
                 a * (isSmall ? ofSmall : ofLarge) + b * (isSmall ? ofLarge : ofSmall));
    if (x < (a + 1.0) / (a + b + 2.0))
        return static_cast<double>(front * betaFraction(a, b, exactX) / a);
    return static_cast<double>(1.0L - front * betaFraction(b, a, exactRest) / b);
}

double studentTwoSided(double t, double df)
{
    if (std::isinf(t))
        return 0.0;
    const double square = t * t;
    return incompleteBeta(0.5 * df, 0.5, df / (df + square), square / (df + square));
}

double studentQuantile(double confidence, double df)
{
    const double outside = 1.0 - confidence;
    double low = 0.0;
    double high = std::max(1.0, normalQuantile(0.5 + 0.5 * confidence));
    while (studentTwoSided(high, df) > outside && high < std::numeric_limits<double>::max() / 4)
        high *= 2.0;
    constexpr int halvings = 80;
    for (int i = 0; i < halvings && low < high; ++i) {
        const double middle = 0.5 * (low + high);
        (studentTwoSided(middle, df) > outside ? low : high) = middle;
    }
    return 0.5 * (low + high);
}

double normalTwoSided(double z)
{
    return std::erfc(std::fabs(z) / std::numbers::sqrt2);
}

double fairBinomialAtMost(std::uint64_t k, std::uint64_t n)
{
    if (k >= n)
        return 1.0;
    // The other half is as probable, and the sum from the small side has no cancellation.
    if (2 * k >= n)
        return 1.0 - fairBinomialAtMost(n - k - 1, n);
    const auto top = static_cast<long double>(n);
    const auto at = static_cast<long double>(k);
    long double term = std::exp(logGamma(top + 1) - logGamma(at + 1) - logGamma(top - at + 1) -
                                top * std::numbers::ln2_v<long double>);
    long double sum = 0.0L;
    for (std::uint64_t i = k;; --i) {
        sum += term;
        if (i == 0 || term < sum * 1e-21L)
            break;
        term *= static_cast<long double>(i) / static_cast<long double>(n - i + 1);
    }
    return static_cast<double>(sum);
}

} // namespace muster::metrics
