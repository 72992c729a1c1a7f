// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "metrics/intervals.h"
#include "metrics/perplexity.h"

#include <cstdint>
#include <span>
#include <string>

namespace muster::metrics {

/// A difference of two runs over the same samples, B − A.
struct PairedTest {
    Interval difference; ///< mean difference per sample, its error and interval
    double pValue = 1.0; ///< two-sided, 0 to 1
    std::uint64_t samples = 0;
    std::uint64_t clusters = 0; ///< 0 unless groups were given
    std::string method;         ///< in words, for the report

    bool operator==(const PairedTest&) const = default;
};

/// How two runs agree on samples that are right or wrong.
struct McNemar {
    std::uint64_t bothRight = 0;
    std::uint64_t onlyA = 0; ///< A right, B wrong
    std::uint64_t onlyB = 0;
    std::uint64_t bothWrong = 0;
    /// Exact: both tails of the binomial of onlyA + onlyB throws of a fair coin. 1 without any
    /// flip.
    double pValue = 1.0;

    bool operator==(const McNemar&) const = default;
};

/// `a` and `b` [n] are 1 for right and 0 for wrong. Error: Incomparable `E-METRICS-040` for
/// different lengths. Source: Q. McNemar, Psychometrika 12 (1947); exact binomial form.
[[nodiscard]] Result<McNemar> mcNemar(std::span<const std::uint8_t> a,
                                      std::span<const std::uint8_t> b);
/// The p-value alone, from the two kinds of flips.
[[nodiscard]] double mcNemarPValue(std::uint64_t onlyA, std::uint64_t onlyB);

/// Student's paired t test of scores [n], such as F1 or losses, and the interval of the mean
/// difference by t with n − 1 degrees of freedom. When all differences are equal the error is 0 and
/// p is 1 for no difference and 0 otherwise. Errors: Undefined `E-METRICS-010` for n ≤ 1;
/// Incomparable `E-METRICS-040`; Invalid `E-METRICS-011`; Invalid `E-METRICS-041` for a score that
/// is no finite number.
[[nodiscard]] Result<PairedTest> pairedT(std::span<const double> a, std::span<const double> b,
                                         double confidence = 0.95);

/// The same when samples of one group, such as questions on one document, depend on each other:
/// se² = G/(G−1) · Σ_g (Σ_{i∈g} (dᵢ − mean))² / n², t with G − 1 degrees of freedom. `groups` [n]
/// numbers the group of each sample, in any order. Errors as pairedT(); `E-METRICS-010` for fewer
/// than two groups. Source: Liang and Zeger, Biometrika 73 (1986); CR1 of an intercept.
[[nodiscard]] Result<PairedTest> pairedTByGroup(std::span<const double> a,
                                                std::span<const double> b,
                                                std::span<const std::uint64_t> groups,
                                                double confidence = 0.95);

/// Bootstrap of the mean difference: samples drawn together for both runs, in index order, as
/// bootstrapMean(). p = min(1, 2 · min(#≤0 + 1, #≥0 + 1)/(B + 1)). Errors as pairedT() and
/// bootstrapMean().
[[nodiscard]] Result<PairedTest> pairedBootstrap(std::span<const double> a,
                                                 std::span<const double> b,
                                                 const BootstrapOptions& options = {});

/// Sign-flip permutation test of the mean difference: share of sign patterns whose |Σ d| is at
/// least as large. All 2^m patterns for up to 16 differences that are not 0 (exact), else
/// `replicates` random ones, p = (hits + 1)/(replicates + 1). The interval is pairedT()'s. Errors
/// as pairedT().
[[nodiscard]] Result<PairedTest> signFlipTest(std::span<const double> a, std::span<const double> b,
                                              const BootstrapOptions& options = {});

/// Ratio of two perplexities of the same tokens, PPL_B / PPL_A.
struct PerplexityRatio {
    double lnRatio = 0.0; ///< mean loss of B − mean loss of A, nats
    double lnError = 0.0; ///< standard error of lnRatio
    Interval ratio;       ///< exp(lnRatio), error ratio · lnError, and exp of the interval of ln
    double pValue = 1.0;  ///< of lnRatio = 0, by the normal distribution
    double correlation = 0.0; ///< of the losses that were paired, −1 to 1; 0 without spread
    std::uint64_t tokens = 0;
    std::string method;

    bool operator==(const PerplexityRatio&) const = default;
};

/// From windows: documents are the clusters, or windows when there are fewer than two documents;
/// delta method on Σ (nll_B − nll_A) / Σ tokens. Rows that score nothing are skipped. Errors:
/// Incomparable `E-METRICS-040` when the windows, their documents or their numbers of tokens
/// differ; Undefined `E-METRICS-020` without tokens, `E-METRICS-010` for one cluster; Invalid
/// `E-METRICS-041` for a loss that is no finite number.
[[nodiscard]] Result<PerplexityRatio>
perplexityRatio(std::span<const LossRow> a, std::span<const LossRow> b, double confidence = 0.95);

/// From the loss of each token, as llama.cpp: var(ln ratio) = (var_A + var_B − 2 cov)/(n − 1) with
/// moments divided by n; tokens count as independent. Errors as perplexityRatio().
/// Source: semantics.md 4.7 and 6.3.
[[nodiscard]] Result<PerplexityRatio> perplexityRatioOfTokens(std::span<const float> a,
                                                              std::span<const float> b,
                                                              double confidence = 0.95);

} // namespace muster::metrics
