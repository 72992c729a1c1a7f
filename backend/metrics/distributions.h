// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace muster::metrics {

/// Regularised incomplete beta function I_x(a, b) for a, b > 0, from x and 1 − x, both of which are
/// given so that neither loses digits. Continued fraction by Lentz's method; relative error below
/// about 1e-13. Source: DLMF 8.17.22.
[[nodiscard]] double incompleteBeta(double a, double b, double x, double oneMinusX);

/// Probability that a variable of Student's t with `df` > 0 degrees of freedom lies farther from 0
/// than |t|: the two-sided p-value. 1 for t = 0, 0 for infinity.
[[nodiscard]] double studentTwoSided(double t, double df);

/// The t > 0 whose two-sided probability is 1 − confidence; `confidence` between 0 and 1.
[[nodiscard]] double studentQuantile(double confidence, double df);

/// Probability that a standard normal variable lies farther from 0 than |z|.
[[nodiscard]] double normalTwoSided(double z);

/// Probability of at most k heads in n throws of a fair coin.
[[nodiscard]] double fairBinomialAtMost(std::uint64_t k, std::uint64_t n);

} // namespace muster::metrics
