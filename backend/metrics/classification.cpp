// SPDX-License-Identifier: Apache-2.0
#include "metrics/classification.h"

#include "base/sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <numeric>

namespace muster::metrics {

namespace {

tl::unexpected<Error> noSamples()
{
    return fail(Error::Kind::Undefined, "E-METRICS-033",
                "there is no sample with a label, so nothing can be scored");
}

/// A quotient that is 0 without a denominator.
double ratio(std::uint64_t part, std::uint64_t whole, bool& hasZeroDivision)
{
    if (whole == 0) {
        hasZeroDivision = true;
        return 0.0;
    }
    return static_cast<double>(part) / static_cast<double>(whole);
}

Prf prfOf(std::uint64_t hits, std::uint64_t predicted, std::uint64_t support)
{
    Prf prf;
    prf.precision = ratio(hits, predicted, prf.hasZeroDivision);
    prf.recall = ratio(hits, support, prf.hasZeroDivision);
    prf.f1 = ratio(2 * hits, predicted + support, prf.hasZeroDivision);
    return prf;
}

ClassScore scoreOf(std::uint64_t hits, std::uint64_t predicted, std::uint64_t support)
{
    return ClassScore{prfOf(hits, predicted, support), support, predicted, hits};
}

/// Mean of scores with weights; 0 with the flag raised when all weights are 0.
Prf weightedMean(std::span<const ClassScore> scores, std::span<const double> weights)
{
    Prf mean;
    double sum = 0.0;
    for (std::size_t i = 0; i < scores.size(); ++i) {
        mean.precision += weights[i] * scores[i].prf.precision;
        mean.recall += weights[i] * scores[i].prf.recall;
        mean.f1 += weights[i] * scores[i].prf.f1;
        mean.hasZeroDivision =
            mean.hasZeroDivision || (weights[i] > 0.0 && scores[i].prf.hasZeroDivision);
        sum += weights[i];
    }
    if (sum == 0.0)
        return Prf{0.0, 0.0, 0.0, true};
    mean.precision /= sum;
    mean.recall /= sum;
    mean.f1 /= sum;
    return mean;
}

std::vector<double> supports(std::span<const ClassScore> scores)
{
    std::vector<double> weights;
    for (const ClassScore& score : scores)
        weights.push_back(static_cast<double>(score.support));
    return weights;
}

Prf microOf(std::span<const ClassScore> scores)
{
    std::uint64_t hits = 0;
    std::uint64_t predicted = 0;
    std::uint64_t support = 0;
    for (const ClassScore& score : scores) {
        hits += score.hits;
        predicted += score.predicted;
        support += score.support;
    }
    return prfOf(hits, predicted, support);
}

std::vector<ClassScore> perClassScores(const ConfusionMatrix& matrix)
{
    std::vector<ClassScore> scores;
    for (std::uint32_t k = 0; k < matrix.classes; ++k) {
        std::uint64_t support = 0;
        std::uint64_t predicted = 0;
        for (std::uint32_t other = 0; other < matrix.classes; ++other) {
            support += matrix.at(k, other);
            predicted += matrix.at(other, k);
        }
        scores.push_back(scoreOf(matrix.at(k, k), predicted, support));
    }
    return scores;
}

double matthews(std::span<const ClassScore> scores, std::uint64_t samples, std::uint64_t hits)
{
    const auto n = static_cast<double>(samples);
    double truthAndPrediction = static_cast<double>(hits) * n;
    double prediction = n * n;
    double truth = n * n;
    for (const ClassScore& score : scores) {
        const auto t = static_cast<double>(score.support);
        const auto p = static_cast<double>(score.predicted);
        truthAndPrediction -= t * p;
        prediction -= p * p;
        truth -= t * t;
    }
    if (prediction * truth == 0.0)
        return 0.0;
    return truthAndPrediction / std::sqrt(truth * prediction);
}

std::optional<double> kappa(std::span<const ClassScore> scores, std::uint64_t samples,
                            std::uint64_t hits)
{
    const auto n = static_cast<double>(samples);
    double byChance = 0.0;
    for (const ClassScore& score : scores)
        byChance += static_cast<double>(score.support) * static_cast<double>(score.predicted) / n;
    if (n - byChance == 0.0)
        return std::nullopt;
    return 1.0 - (n - static_cast<double>(hits)) / (n - byChance);
}

Result<std::optional<std::uint32_t>> positiveClass(std::optional<std::uint32_t> positive,
                                                   std::uint32_t classes)
{
    if (positive && *positive >= classes)
        return fail(Error::Kind::Invalid, "E-METRICS-031",
                    fmt::format("the positive class {} does not exist among {} classes", *positive,
                                classes));
    if (!positive && classes == 2)
        return std::optional<std::uint32_t>(1);
    return positive;
}

Status checkProbabilities(std::span<const double> probabilities, std::uint32_t classes)
{
    for (std::size_t i = 0; i < probabilities.size(); ++i)
        if (!(probabilities[i] >= 0.0 && probabilities[i] <= 1.0))
            return fail(Error::Kind::Invalid, "E-METRICS-032",
                        fmt::format("row {}: the probability of class {} is {}, not a number "
                                    "between 0 and 1",
                                    i / classes, i % classes, probabilities[i]));
    return {};
}

/// Places in falling order of their scores.
std::vector<std::size_t> byFallingScore(std::span<const double> scores)
{
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    return order;
}

/// Calls `use` with the number of positives and of all samples of each distinct score, from high to
/// low.
template <typename Use>
void eachThreshold(std::span<const std::uint8_t> isPositive, std::span<const double> scores,
                   Use use)
{
    const std::vector<std::size_t> order = byFallingScore(scores);
    for (std::size_t begin = 0; begin < order.size();) {
        std::size_t end = begin;
        std::uint64_t positives = 0;
        while (end < order.size() && scores[order[end]] == scores[order[begin]])
            positives += isPositive[order[end++]] != 0 ? 1U : 0U;
        use(positives, static_cast<std::uint64_t>(end - begin));
        begin = end;
    }
}

std::string lowered(std::string_view text)
{
    std::string low(text);
    std::transform(low.begin(), low.end(), low.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return low;
}

} // namespace

Result<ConfusionMatrix> confusionMatrix(std::span<const std::int32_t> labels,
                                        std::span<const std::int32_t> predictions,
                                        std::uint32_t classes)
{
    if (labels.size() != predictions.size() || classes == 0)
        return fail(Error::Kind::Invalid, "E-METRICS-030",
                    fmt::format("{} labels, {} predictions and {} classes do not go together",
                                labels.size(), predictions.size(), classes));
    ConfusionMatrix matrix;
    matrix.classes = classes;
    matrix.counts.resize(std::size_t{classes} * classes);
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (labels[i] < 0) {
            ++matrix.ignored;
            continue;
        }
        const auto label = static_cast<std::uint32_t>(labels[i]);
        if (label >= classes || predictions[i] < 0 ||
            static_cast<std::uint32_t>(predictions[i]) >= classes)
            return fail(Error::Kind::Invalid, "E-METRICS-031",
                        fmt::format("row {}: label {} and prediction {} are not both among {} "
                                    "classes",
                                    i, labels[i], predictions[i], classes));
        ++matrix.counts[std::size_t{label} * classes + static_cast<std::uint32_t>(predictions[i])];
    }
    return matrix;
}

Result<ClassificationScores> classificationScores(const ConfusionMatrix& matrix,
                                                  const ClassificationOptions& options)
{
    auto positive = positiveClass(options.positive, matrix.classes);
    if (!positive)
        return fail(std::move(positive).error());
    ClassificationScores scores;
    scores.ignored = matrix.ignored;
    scores.perClass = perClassScores(matrix);
    double recalls = 0.0;
    double labelled = 0.0;
    std::vector<ClassScore> averaged;
    for (const ClassScore& score : scores.perClass) {
        scores.samples += score.support;
        scores.hits += score.hits;
        if (score.support > 0) {
            recalls += score.prf.recall;
            labelled += 1.0;
        }
        if (options.absent == AbsentClasses::Count || score.support + score.predicted > 0)
            averaged.push_back(score);
    }
    if (scores.samples == 0)
        return noSamples();
    auto interval = wilsonInterval(scores.hits, scores.samples, options.confidence);
    if (!interval)
        return fail(std::move(interval).error());
    scores.accuracyInterval = *interval;
    scores.accuracy = interval->value;
    scores.balancedAccuracy = recalls / labelled;
    if (*positive)
        scores.binary = scores.perClass[**positive].prf;
    scores.macro = weightedMean(averaged, std::vector<double>(averaged.size(), 1.0));
    scores.micro = microOf(averaged);
    scores.weighted = weightedMean(averaged, supports(averaged));
    scores.matthews = matthews(scores.perClass, scores.samples, scores.hits);
    scores.kappa = kappa(scores.perClass, scores.samples, scores.hits);
    scores.hasZeroDivision =
        scores.macro.hasZeroDivision || (scores.binary && scores.binary->hasZeroDivision);
    return scores;
}

std::optional<double> rocAuc(std::span<const std::uint8_t> isPositive,
                             std::span<const double> scores)
{
    std::uint64_t above = 0; // positives with a higher score
    std::uint64_t negatives = 0;
    double area = 0.0; // twice the number of pairs in the right order
    eachThreshold(isPositive, scores, [&](std::uint64_t positives, std::uint64_t all) {
        const std::uint64_t others = all - positives;
        area += static_cast<double>(others) * static_cast<double>(2 * above + positives);
        above += positives;
        negatives += others;
    });
    if (above == 0 || negatives == 0)
        return std::nullopt;
    return area / (2.0 * static_cast<double>(above) * static_cast<double>(negatives));
}

double averagePrecision(std::span<const std::uint8_t> isPositive, std::span<const double> scores)
{
    std::uint64_t hits = 0;
    std::uint64_t seen = 0;
    ExactSum sum;
    eachThreshold(isPositive, scores, [&](std::uint64_t positives, std::uint64_t all) {
        hits += positives;
        seen += all;
        sum.add(static_cast<double>(positives) * static_cast<double>(hits) /
                static_cast<double>(seen));
    });
    return hits == 0 ? 0.0 : sum.result() / static_cast<double>(hits);
}

Result<ProbabilityScores> probabilityScores(std::span<const std::int32_t> labels,
                                            std::span<const double> probabilities,
                                            std::uint32_t classes,
                                            const ProbabilityOptions& options)
{
    if (classes == 0 || probabilities.size() != labels.size() * classes)
        return fail(Error::Kind::Invalid, "E-METRICS-030",
                    fmt::format("{} labels, {} probabilities and {} classes do not go together",
                                labels.size(), probabilities.size(), classes));
    if (options.bins == 0)
        return fail(Error::Kind::Invalid, "E-METRICS-032",
                    "a calibration error needs at least one bin");
    auto positive = positiveClass(options.positive, classes);
    if (!positive)
        return fail(std::move(positive).error());
    if (const Status checked = checkProbabilities(probabilities, classes); !checked)
        return fail(checked.error());

    std::vector<std::size_t> rows;
    std::vector<std::int32_t> predictions;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const auto row = probabilities.subspan(i * classes, classes);
        predictions.push_back(
            static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin()));
        if (labels[i] >= 0)
            rows.push_back(i);
    }
    if (auto checked = confusionMatrix(labels, predictions, classes); !checked)
        return fail(std::move(checked).error());
    if (rows.empty())
        return noSamples();

    ProbabilityScores scores;
    const auto n = static_cast<double>(rows.size());
    const bool isBinary = classes == 2;
    constexpr double epsilon = std::numeric_limits<double>::epsilon();
    ExactSum logLoss;
    ExactSum brier;
    const auto bins = static_cast<double>(options.bins);
    std::vector<ExactSum> confidences(options.bins);
    std::vector<std::uint64_t> hits(options.bins);
    scores.calibration.resize(options.bins);
    for (std::uint32_t bin = 0; bin < options.bins; ++bin) {
        scores.calibration[bin].low = bin / bins;
        scores.calibration[bin].high = (bin + 1) / bins;
    }
    for (const std::size_t i : rows) {
        const auto row = probabilities.subspan(i * classes, classes);
        const auto label = static_cast<std::size_t>(labels[i]);
        logLoss.add(-std::log(std::clamp(row[label], epsilon, 1.0 - epsilon)));
        if (isBinary) {
            const double error = row[**positive] - (label == **positive ? 1.0 : 0.0);
            brier.add(error * error);
        } else {
            for (std::size_t k = 0; k < classes; ++k) {
                const double error = row[k] - (label == k ? 1.0 : 0.0);
                brier.add(error * error);
            }
        }
        const auto predicted = static_cast<std::size_t>(predictions[i]);
        const double confidence = row[predicted];
        // Bins are closed above. The product may round across an edge, so the edges decide.
        auto bin = static_cast<std::size_t>(
            std::clamp(std::ceil(confidence * bins) - 1.0, 0.0, bins - 1.0));
        while (bin > 0 && confidence <= scores.calibration[bin].low)
            --bin;
        while (bin + 1 < options.bins && confidence > scores.calibration[bin].high)
            ++bin;
        confidences[bin].add(confidence);
        ++scores.calibration[bin].count;
        hits[bin] += predicted == label ? 1U : 0U;
    }
    scores.logLoss = logLoss.result() / n;
    scores.brier = brier.result() / n;
    double calibrationError = 0.0;
    for (std::size_t bin = 0; bin < options.bins; ++bin) {
        CalibrationBin& into = scores.calibration[bin];
        if (into.count == 0)
            continue;
        const auto count = static_cast<double>(into.count);
        into.meanConfidence = confidences[bin].result() / count;
        into.accuracy = static_cast<double>(hits[bin]) / count;
        calibrationError += count / n * std::fabs(into.accuracy - into.meanConfidence);
    }
    scores.calibrationError = calibrationError;

    std::vector<std::uint8_t> isClass(rows.size());
    std::vector<double> column(rows.size());
    double areas = 0.0;
    double precisions = 0.0;
    bool isDefined = true;
    for (std::uint32_t k = 0; k < classes; ++k) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            isClass[i] = labels[rows[i]] == static_cast<std::int32_t>(k) ? 1 : 0;
            column[i] = probabilities[rows[i] * classes + k];
        }
        const auto area = rocAuc(isClass, column);
        scores.rocAucPerClass.push_back(area);
        isDefined = isDefined && area.has_value();
        areas += area.value_or(0.0);
        const double precision = averagePrecision(isClass, column);
        precisions += precision;
        if (isBinary && k == **positive) {
            scores.rocAuc = area;
            scores.averagePrecision = precision;
        }
    }
    if (!isBinary) {
        if (isDefined)
            scores.rocAuc = areas / classes;
        scores.averagePrecision = precisions / classes;
    }
    return scores;
}

Result<MultiLabelScores> multiLabelScores(std::span<const std::uint8_t> truth,
                                          std::span<const std::uint8_t> predicted,
                                          std::uint32_t labels,
                                          std::span<const double> probabilities, double confidence)
{
    if (labels == 0 || truth.size() != predicted.size() || truth.size() % labels != 0 ||
        (!probabilities.empty() && probabilities.size() != truth.size()))
        return fail(Error::Kind::Invalid, "E-METRICS-030",
                    fmt::format("{} truths, {} predictions, {} probabilities and {} labels do not "
                                "go together",
                                truth.size(), predicted.size(), probabilities.size(), labels));
    if (const Status checked = checkProbabilities(probabilities, labels); !checked)
        return fail(checked.error());
    const std::size_t n = truth.size() / labels;
    if (n == 0)
        return noSamples();

    MultiLabelScores scores;
    scores.samples = n;
    std::vector<std::uint64_t> hits(labels);
    std::vector<std::uint64_t> support(labels);
    std::vector<std::uint64_t> guessed(labels);
    std::uint64_t allRight = 0;
    std::uint64_t wrong = 0;
    Prf sum;
    for (std::size_t i = 0; i < n; ++i) {
        std::uint64_t rowHits = 0;
        std::uint64_t rowSupport = 0;
        std::uint64_t rowGuessed = 0;
        std::uint64_t rowWrong = 0;
        for (std::size_t k = 0; k < labels; ++k) {
            const bool isTrue = truth[i * labels + k] != 0;
            const bool isPredicted = predicted[i * labels + k] != 0;
            const std::uint64_t isHit = isTrue && isPredicted ? 1 : 0;
            hits[k] += isHit;
            support[k] += isTrue ? 1U : 0U;
            guessed[k] += isPredicted ? 1U : 0U;
            rowHits += isHit;
            rowSupport += isTrue ? 1U : 0U;
            rowGuessed += isPredicted ? 1U : 0U;
            rowWrong += isTrue != isPredicted ? 1U : 0U;
        }
        allRight += rowWrong == 0 ? 1U : 0U;
        wrong += rowWrong;
        const Prf row = prfOf(rowHits, rowGuessed, rowSupport);
        sum.precision += row.precision;
        sum.recall += row.recall;
        sum.f1 += row.f1;
        sum.hasZeroDivision = sum.hasZeroDivision || row.hasZeroDivision;
    }
    const auto samples = static_cast<double>(n);
    scores.perSample =
        Prf{sum.precision / samples, sum.recall / samples, sum.f1 / samples, sum.hasZeroDivision};
    auto interval = wilsonInterval(allRight, n, confidence);
    if (!interval)
        return fail(std::move(interval).error());
    scores.subsetAccuracyInterval = *interval;
    scores.subsetAccuracy = interval->value;
    scores.hammingLoss = static_cast<double>(wrong) / static_cast<double>(truth.size());
    for (std::size_t k = 0; k < labels; ++k)
        scores.perLabel.push_back(scoreOf(hits[k], guessed[k], support[k]));
    scores.micro = microOf(scores.perLabel);
    scores.macro = weightedMean(scores.perLabel, std::vector<double>(labels, 1.0));
    scores.weighted = weightedMean(scores.perLabel, supports(scores.perLabel));
    scores.hasZeroDivision = scores.macro.hasZeroDivision || scores.micro.hasZeroDivision ||
                             scores.perSample.hasZeroDivision;
    if (probabilities.empty())
        return scores;
    std::vector<std::uint8_t> isLabel(n);
    std::vector<double> column(n);
    double areas = 0.0;
    double precisions = 0.0;
    bool isDefined = true;
    for (std::size_t k = 0; k < labels; ++k) {
        for (std::size_t i = 0; i < n; ++i) {
            isLabel[i] = truth[i * labels + k];
            column[i] = probabilities[i * labels + k];
        }
        const auto area = rocAuc(isLabel, column);
        isDefined = isDefined && area.has_value();
        areas += area.value_or(0.0);
        precisions += averagePrecision(isLabel, column);
    }
    if (isDefined)
        scores.rocAuc = areas / labels;
    scores.averagePrecision = precisions / labels;
    return scores;
}

Result<Interval> bootstrapMetric(std::span<const std::int32_t> labels,
                                 std::span<const std::int32_t> predictions, std::uint32_t classes,
                                 const MatrixMetric& metric, const BootstrapOptions& options)
{
    auto whole = confusionMatrix(labels, predictions, classes);
    if (!whole)
        return fail(std::move(whole).error());
    std::vector<std::size_t> cells;
    for (std::size_t i = 0; i < labels.size(); ++i)
        if (labels[i] >= 0)
            cells.push_back(static_cast<std::size_t>(labels[i]) * classes +
                            static_cast<std::size_t>(predictions[i]));
    ConfusionMatrix drawn;
    drawn.classes = classes;
    drawn.counts.resize(whole->counts.size());
    return bootstrapStatistic(
        cells.size(),
        [&](std::span<const std::size_t> rows) {
            std::fill(drawn.counts.begin(), drawn.counts.end(), 0U);
            for (const std::size_t row : rows)
                ++drawn.counts[cells[row]];
            return metric(drawn);
        },
        metric(*whole), options);
}

std::optional<std::vector<std::uint32_t>> matchClasses(std::span<const std::string> dataClasses,
                                                       std::span<const std::string> modelClasses)
{
    std::vector<std::uint32_t> mapping;
    std::vector<bool> isTaken(modelClasses.size());
    for (const std::string& name : dataClasses) {
        auto found = std::find(modelClasses.begin(), modelClasses.end(), name);
        if (found == modelClasses.end())
            found = std::find_if(
                modelClasses.begin(), modelClasses.end(),
                [&](const std::string& other) { return lowered(other) == lowered(name); });
        if (found == modelClasses.end())
            return std::nullopt;
        const auto at = static_cast<std::size_t>(found - modelClasses.begin());
        if (isTaken[at])
            return std::nullopt;
        isTaken[at] = true;
        mapping.push_back(static_cast<std::uint32_t>(at));
    }
    return mapping;
}

std::optional<LabelPermutation> likelyPermutation(const ConfusionMatrix& matrix)
{
    constexpr std::uint32_t tried = 8;
    constexpr double leastAccuracy = 0.6;
    std::uint64_t samples = 0;
    std::uint64_t hits = 0;
    for (std::uint32_t k = 0; k < matrix.classes; ++k) {
        hits += matrix.at(k, k);
        for (std::uint32_t other = 0; other < matrix.classes; ++other)
            samples += matrix.at(k, other);
    }
    const double chance = 1.0 / matrix.classes;
    if (matrix.classes < 2 || samples == 0 ||
        static_cast<double>(hits) >= chance * static_cast<double>(samples))
        return std::nullopt;
    LabelPermutation best;
    std::vector<std::uint32_t> candidate(matrix.classes);
    const auto consider = [&] {
        std::uint64_t right = 0;
        for (std::uint32_t k = 0; k < matrix.classes; ++k)
            right += matrix.at(candidate[k], k);
        if (right > best.hits)
            best = {candidate, right, static_cast<double>(right) / static_cast<double>(samples)};
    };
    if (matrix.classes <= tried) {
        std::iota(candidate.begin(), candidate.end(), 0U);
        do
            consider();
        while (std::next_permutation(candidate.begin(), candidate.end()));
    } else {
        std::vector<bool> isTaken(matrix.classes);
        for (std::uint32_t k = 0; k < matrix.classes; ++k) {
            std::uint32_t likeliest = 0;
            for (std::uint32_t label = 1; label < matrix.classes; ++label)
                if (matrix.at(label, k) > matrix.at(likeliest, k))
                    likeliest = label;
            if (isTaken[likeliest])
                return std::nullopt;
            isTaken[likeliest] = true;
            candidate[k] = likeliest;
        }
        consider();
    }
    const auto interval = wilsonInterval(best.hits, samples, 0.98);
    if (best.accuracy < leastAccuracy || !interval || interval->low <= chance)
        return std::nullopt;
    return best;
}

Result<GroupAccuracy> groupAccuracy(std::span<const TaskAccuracy> tasks)
{
    std::uint64_t hits = 0;
    std::uint64_t samples = 0;
    double sum = 0.0;
    double counted = 0.0;
    for (const TaskAccuracy& task : tasks) {
        if (task.samples == 0)
            continue;
        hits += task.hits;
        samples += task.samples;
        sum += static_cast<double>(task.hits) / static_cast<double>(task.samples);
        counted += 1.0;
    }
    if (samples == 0)
        return noSamples();
    return GroupAccuracy{static_cast<double>(hits) / static_cast<double>(samples), sum / counted};
}

} // namespace muster::metrics
