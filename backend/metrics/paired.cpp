// SPDX-License-Identifier: Apache-2.0
#include "metrics/paired.h"

#include "base/sums.h"
#include "metrics/distributions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace muster::metrics {

namespace {

tl::unexpected<Error> differentLengths(std::size_t a, std::size_t b)
{
    return fail(Error::Kind::Incomparable, "E-METRICS-040",
                fmt::format("the runs have {} and {} values, so they cannot be paired", a, b));
}

tl::unexpected<Error> noSpread(const char* what)
{
    return fail(Error::Kind::Undefined, "E-METRICS-010",
                fmt::format("fewer than two {} have no standard error", what));
}

Status checkConfidence(double confidence)
{
    if (confidence > 0.0 && confidence < 1.0)
        return {};
    return fail(Error::Kind::Invalid, "E-METRICS-011",
                "a confidence must lie between 0 and 1, such as 0.95");
}

/// B − A for each sample.
Result<std::vector<double>> differences(std::span<const double> a, std::span<const double> b)
{
    if (a.size() != b.size())
        return differentLengths(a.size(), b.size());
    std::vector<double> found;
    found.reserve(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        found.push_back(b[i] - a[i]);
        if (!std::isfinite(found.back()))
            return fail(Error::Kind::Invalid, "E-METRICS-041",
                        fmt::format("row {}: {} and {} cannot be compared", i, a[i], b[i]));
    }
    return found;
}

double exactMean(std::span<const double> values)
{
    ExactSum sum;
    for (const double value : values)
        sum.add(value);
    return sum.result() / static_cast<double>(values.size());
}

/// Interval and p-value by Student's t.
PairedTest studentTest(double mean, double error, double df, double confidence)
{
    PairedTest test;
    const double reach = error == 0.0 ? 0.0 : studentQuantile(confidence, df) * error;
    test.difference = Interval{mean, error, mean - reach, mean + reach};
    if (error > 0.0)
        test.pValue = studentTwoSided(mean / error, df);
    else
        test.pValue = mean == 0.0 ? 1.0 : 0.0;
    return test;
}

double correlationOf(double covariance, double varianceA, double varianceB)
{
    return varianceA > 0.0 && varianceB > 0.0
               ? std::clamp(covariance / std::sqrt(varianceA * varianceB), -1.0, 1.0)
               : 0.0;
}

/// Losses of the same tokens by two runs.
struct LossPair {
    double a = 0.0;
    double b = 0.0;
    std::uint64_t tokens = 0;
};

/// Adds up neighbouring windows of the same document.
std::vector<LossPair> merged(std::span<const LossPair> windows,
                             std::span<const std::uint64_t> documents)
{
    std::vector<LossPair> found;
    for (std::size_t begin = 0; begin < windows.size();) {
        ExactSum a;
        ExactSum b;
        std::uint64_t tokens = 0;
        std::size_t end = begin;
        for (; end < windows.size() && documents[end] == documents[begin]; ++end) {
            a.add(windows[end].a);
            b.add(windows[end].b);
            tokens += windows[end].tokens;
        }
        found.push_back({a.result(), b.result(), tokens});
        begin = end;
    }
    return found;
}

PerplexityRatio ratioOf(double lnRatio, double lnError, double confidence)
{
    PerplexityRatio result;
    const double reach = normalQuantile(0.5 + 0.5 * confidence) * lnError;
    const double ratio = std::exp(lnRatio);
    result.lnRatio = lnRatio;
    result.lnError = lnError;
    result.ratio =
        Interval{ratio, ratio * lnError, std::exp(lnRatio - reach), std::exp(lnRatio + reach)};
    if (lnError > 0.0)
        result.pValue = normalTwoSided(lnRatio / lnError);
    else
        result.pValue = lnRatio == 0.0 ? 1.0 : 0.0;
    return result;
}

} // namespace

double mcNemarPValue(std::uint64_t onlyA, std::uint64_t onlyB)
{
    const std::uint64_t flips = onlyA + onlyB;
    if (onlyA == onlyB)
        return 1.0;
    return std::min(1.0, 2.0 * fairBinomialAtMost(std::min(onlyA, onlyB), flips));
}

Result<McNemar> mcNemar(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b)
{
    if (a.size() != b.size())
        return differentLengths(a.size(), b.size());
    McNemar result;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] != 0 && b[i] != 0)
            ++result.bothRight;
        else if (a[i] != 0)
            ++result.onlyA;
        else if (b[i] != 0)
            ++result.onlyB;
        else
            ++result.bothWrong;
    }
    result.pValue = mcNemarPValue(result.onlyA, result.onlyB);
    return result;
}

Result<PairedTest> pairedT(std::span<const double> a, std::span<const double> b, double confidence)
{
    if (const Status checked = checkConfidence(confidence); !checked)
        return fail(checked.error());
    auto found = differences(a, b);
    if (!found)
        return fail(std::move(found).error());
    if (found->size() < 2)
        return noSpread("samples");
    const auto n = static_cast<double>(found->size());
    const double mean = exactMean(*found);
    ExactSum squares;
    for (const double difference : *found)
        squares.add((difference - mean) * (difference - mean));
    const double error = std::sqrt(squares.result() / (n - 1.0) / n);
    PairedTest test = studentTest(mean, error, n - 1.0, confidence);
    test.samples = found->size();
    test.method = fmt::format("paired t test, {} samples", found->size());
    return test;
}

Result<PairedTest> pairedTByGroup(std::span<const double> a, std::span<const double> b,
                                  std::span<const std::uint64_t> groups, double confidence)
{
    if (const Status checked = checkConfidence(confidence); !checked)
        return fail(checked.error());
    auto found = differences(a, b);
    if (!found)
        return fail(std::move(found).error());
    if (groups.size() != found->size())
        return differentLengths(found->size(), groups.size());
    const double mean = found->empty() ? 0.0 : exactMean(*found);
    std::map<std::uint64_t, ExactSum> rests;
    for (std::size_t i = 0; i < found->size(); ++i)
        rests[groups[i]].add((*found)[i] - mean);
    if (rests.size() < 2)
        return noSpread("groups");
    ExactSum squares;
    for (const auto& [group, rest] : rests)
        squares.add(rest.result() * rest.result());
    const auto count = static_cast<double>(rests.size());
    const auto n = static_cast<double>(found->size());
    const double error = std::sqrt(count / (count - 1.0) * squares.result()) / n;
    PairedTest test = studentTest(mean, error, count - 1.0, confidence);
    test.samples = found->size();
    test.clusters = rests.size();
    test.method =
        fmt::format("paired t test over {} groups of {} samples", rests.size(), found->size());
    return test;
}

Result<PairedTest> pairedBootstrap(std::span<const double> a, std::span<const double> b,
                                   const BootstrapOptions& options)
{
    auto found = differences(a, b);
    if (!found)
        return fail(std::move(found).error());
    std::uint64_t notAbove = 0;
    std::uint64_t notBelow = 0;
    std::uint64_t replicates = 0;
    auto interval = bootstrapStatistic(
        found->size(),
        [&](std::span<const std::size_t> places) {
            double sum = 0.0;
            for (const std::size_t place : places)
                sum += (*found)[place];
            ++replicates;
            notAbove += sum <= 0.0 ? 1U : 0U;
            notBelow += sum >= 0.0 ? 1U : 0U;
            return sum / static_cast<double>(places.size());
        },
        found->empty() ? 0.0 : exactMean(*found), options);
    if (!interval)
        return fail(std::move(interval).error());
    PairedTest test;
    test.difference = *interval;
    test.pValue = std::min(1.0, 2.0 * static_cast<double>(std::min(notAbove, notBelow) + 1) /
                                    static_cast<double>(replicates + 1));
    test.samples = found->size();
    test.method = fmt::format("paired bootstrap, {} replicates of {} samples, seed {}", replicates,
                              found->size(), options.seed);
    return test;
}

Result<PairedTest> signFlipTest(std::span<const double> a, std::span<const double> b,
                                const BootstrapOptions& options)
{
    auto test = pairedT(a, b, options.confidence);
    if (!test)
        return test;
    auto found = differences(a, b);
    std::erase(*found, 0.0);
    double seen = 0.0;
    double scale = 0.0;
    for (const double difference : *found) {
        seen += difference;
        scale += std::fabs(difference);
    }
    // Sums of the same numbers in another order may differ in their last bits.
    const double least = std::fabs(seen) - 1e-12 * scale;
    constexpr std::size_t exactLimit = 16;
    const std::size_t m = found->size();
    if (m <= exactLimit) {
        std::uint64_t hits = 0;
        const std::uint64_t patterns = std::uint64_t{1} << m;
        for (std::uint64_t pattern = 0; pattern < patterns; ++pattern) {
            double sum = 0.0;
            for (std::size_t i = 0; i < m; ++i)
                sum += ((pattern >> i) & 1U) != 0 ? -(*found)[i] : (*found)[i];
            hits += std::fabs(sum) >= least ? 1U : 0U;
        }
        test->pValue = static_cast<double>(hits) / static_cast<double>(patterns);
        test->method = fmt::format("sign-flip test, all patterns of {} differences", m);
        return test;
    }
    if (options.replicates == 0)
        return fail(Error::Kind::Undefined, "E-METRICS-010",
                    "a permutation test needs at least one replicate");
    PythonRandom random(options.seed);
    std::uint64_t hits = 0;
    for (std::uint64_t replicate = 0; replicate < options.replicates; ++replicate) {
        double sum = 0.0;
        std::uint32_t bits = 0;
        for (std::size_t i = 0; i < m; ++i) {
            if (i % 32 == 0)
                bits = random.next();
            sum += (bits & 1U) != 0 ? -(*found)[i] : (*found)[i];
            bits >>= 1U;
        }
        hits += std::fabs(sum) >= least ? 1U : 0U;
    }
    test->pValue = static_cast<double>(hits + 1) / static_cast<double>(options.replicates + 1);
    test->method = fmt::format("sign-flip test, {} random patterns of {} differences, seed {}",
                               options.replicates, m, options.seed);
    return test;
}

Result<PerplexityRatio> perplexityRatio(std::span<const LossRow> a, std::span<const LossRow> b,
                                        double confidence)
{
    if (const Status checked = checkConfidence(confidence); !checked)
        return fail(checked.error());
    if (a.size() != b.size())
        return differentLengths(a.size(), b.size());
    std::vector<LossPair> windows;
    std::vector<std::uint64_t> documents;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i].index != b[i].index || a[i].document != b[i].document ||
            a[i].tokens != b[i].tokens)
            return fail(Error::Kind::Incomparable, "E-METRICS-040",
                        fmt::format("window {} of one run and window {} of the other do not score "
                                    "the same tokens ({} and {})",
                                    a[i].index, b[i].index, a[i].tokens, b[i].tokens));
        if (a[i].tokens == 0)
            continue;
        if (!std::isfinite(a[i].nllNats) || !std::isfinite(b[i].nllNats))
            return fail(Error::Kind::Invalid, "E-METRICS-041",
                        fmt::format("window {}: {} and {} cannot be compared", a[i].index,
                                    a[i].nllNats, b[i].nllNats));
        windows.push_back({a[i].nllNats, b[i].nllNats, a[i].tokens});
        documents.push_back(a[i].document);
    }
    const std::vector<LossPair> byDocument = merged(windows, documents);
    const bool isByDocument = byDocument.size() > 1;
    const std::vector<LossPair>& clusters = isByDocument ? byDocument : windows;
    ExactSum sumA;
    ExactSum sumB;
    std::uint64_t tokens = 0;
    for (const LossPair& cluster : clusters) {
        sumA.add(cluster.a);
        sumB.add(cluster.b);
        tokens += cluster.tokens;
    }
    if (tokens == 0)
        return fail(Error::Kind::Undefined, "E-METRICS-020",
                    "no token was scored, so there is no perplexity");
    if (clusters.size() < 2)
        return noSpread("windows");
    const auto n = static_cast<double>(tokens);
    const double meanA = sumA.result() / n;
    const double meanB = sumB.result() / n;
    ExactSum squaresA;
    ExactSum squaresB;
    ExactSum products;
    ExactSum squares;
    for (const LossPair& cluster : clusters) {
        const double restA = cluster.a - meanA * static_cast<double>(cluster.tokens);
        const double restB = cluster.b - meanB * static_cast<double>(cluster.tokens);
        squaresA.add(restA * restA);
        squaresB.add(restB * restB);
        products.add(restA * restB);
        squares.add((restB - restA) * (restB - restA));
    }
    const auto m = static_cast<double>(clusters.size());
    PerplexityRatio result =
        ratioOf(meanB - meanA, std::sqrt(m / (m - 1.0) * squares.result()) / n, confidence);
    result.correlation = correlationOf(products.result(), squaresA.result(), squaresB.result());
    result.tokens = tokens;
    result.method = fmt::format("paired, delta method over {} {}", clusters.size(),
                                isByDocument ? "documents" : "windows");
    return result;
}

Result<PerplexityRatio> perplexityRatioOfTokens(std::span<const float> a, std::span<const float> b,
                                                double confidence)
{
    if (const Status checked = checkConfidence(confidence); !checked)
        return fail(checked.error());
    if (a.size() != b.size())
        return differentLengths(a.size(), b.size());
    if (a.size() < 2)
        return noSpread("tokens");
    ExactSum sumA;
    ExactSum sumB;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (!std::isfinite(a[i]) || !std::isfinite(b[i]))
            return fail(Error::Kind::Invalid, "E-METRICS-041",
                        fmt::format("token {}: {} and {} cannot be compared", i, a[i], b[i]));
        sumA.add(a[i]);
        sumB.add(b[i]);
    }
    const auto n = static_cast<double>(a.size());
    const double meanA = sumA.result() / n;
    const double meanB = sumB.result() / n;
    ExactSum squaresA;
    ExactSum squaresB;
    ExactSum products;
    ExactSum squares;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double restA = a[i] - meanA;
        const double restB = b[i] - meanB;
        squaresA.add(restA * restA);
        squaresB.add(restB * restB);
        products.add(restA * restB);
        // var_A + var_B − 2 cov without its cancellation.
        squares.add((restB - restA) * (restB - restA));
    }
    PerplexityRatio result =
        ratioOf(meanB - meanA, std::sqrt(squares.result() / n / (n - 1.0)), confidence);
    result.correlation = correlationOf(products.result(), squaresA.result(), squaresB.result());
    result.tokens = a.size();
    result.method = fmt::format("paired over {} tokens as if independent, as llama.cpp", a.size());
    return result;
}

} // namespace muster::metrics
