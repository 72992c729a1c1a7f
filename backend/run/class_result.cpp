// SPDX-License-Identifier: Apache-2.0
// What a classification run reports.
#include "run/class_job.h"

#include "metrics/classification.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace muster::run {

namespace {

constexpr double percent = 100.0;

report::Metric plainMetric(std::string key, std::string label, std::optional<double> value,
                           std::string method, std::uint64_t n, std::string reason = {})
{
    report::Metric made;
    made.key = std::move(key);
    made.label = std::move(label);
    made.value = value;
    made.decimals = 4;
    made.method = std::move(method);
    made.n = n;
    if (!value)
        made.reason = n == 0 ? "no row was classified" : std::move(reason);
    return made;
}

void setInterval(report::Metric& metric, const metrics::Interval& interval, double scale,
                 std::string method)
{
    metric.standardError = interval.standardError * scale;
    metric.low = interval.low * scale;
    metric.high = interval.high * scale;
    metric.intervalMethod = std::move(method);
}

void addPrf(report::RunResult& result, const std::string& prefix, const std::string& label,
            const metrics::Prf& prf, const std::string& method, std::uint64_t n)
{
    result.metrics.push_back(percentMetric(prefix + "precision", label + " precision",
                                           percent * prf.precision, method, n));
    result.metrics.push_back(
        percentMetric(prefix + "recall", label + " recall", percent * prf.recall, method, n));
    result.metrics.push_back(
        percentMetric(prefix + "f1", label + " F1", percent * prf.f1, method, n));
}

/// A name as a part of a metric's key: letters, digits, `-` and `_`.
std::string keyOf(const std::string& name)
{
    std::string key = name;
    for (char& c : key)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_')
            c = '_';
    return key;
}

} // namespace

std::vector<MetricSoFar> ClassJob::soFar() const
{
    MetricSoFar made{.key = "accuracy", .label = "accuracy", .unit = "%"};
    if (m_scoredSoFar > 0) {
        made.value =
            percent * static_cast<double>(m_rightSoFar) / static_cast<double>(m_scoredSoFar);
        if (const auto interval =
                metrics::wilsonInterval(m_rightSoFar, m_scoredSoFar, m_config.metrics.confidence)) {
            made.interval = *interval;
            made.interval->low *= percent;
            made.interval->high *= percent;
        }
    }
    return {std::move(made)};
}

Result<std::optional<std::uint32_t>> ClassJob::positiveClass() const
{
    const std::string& name = m_config.classification.positive;
    if (name.empty())
        return m_labels.names.size() == 2 ? std::optional(1U) : std::nullopt;
    const auto found = std::find(m_labels.names.begin(), m_labels.names.end(), name);
    if (found == m_labels.names.end())
        return fail(Error::Kind::Invalid, "E-RUN-065",
                    fmt::format("classification.positive is '{}', which is none of the model's "
                                "classes ({}).",
                                name, fmt::join(m_labels.names, ", ")));
    return static_cast<std::uint32_t>(found - m_labels.names.begin());
}

Status ClassJob::addSingleLabel(report::RunResult& result) const
{
    const auto classes = static_cast<std::uint32_t>(m_labels.names.size());
    std::vector<std::int32_t> labels;
    std::vector<std::int32_t> predictions;
    std::vector<double> probabilities;
    for (std::size_t i = 0; i < m_table.rows.size(); ++i) {
        const Scored scored = decode(SampleIndex(i));
        if (!scored.isComplete)
            continue;
        labels.push_back(static_cast<std::int32_t>(m_references[i].front()));
        predictions.push_back(static_cast<std::int32_t>(scored.fields.predicted.front()));
        probabilities.insert(probabilities.end(), scored.fields.probabilities.begin(),
                             scored.fields.probabilities.end());
    }
    const std::uint64_t n = labels.size();
    auto positive = positiveClass();
    if (!positive)
        return fail(positive.error());
    const auto matrix = metrics::confusionMatrix(labels, predictions, classes);
    if (!matrix)
        return fail(matrix.error());
    metrics::ClassificationOptions options;
    options.positive = *positive;
    options.confidence = m_config.metrics.confidence;
    const auto scores = metrics::classificationScores(*matrix, options);
    report::Metric accuracy = percentMetric(
        "accuracy", "accuracy", scores ? std::optional(percent * scores->accuracy) : std::nullopt,
        "right rows / classified rows", n);
    accuracy.isHeadline = true;
    if (!scores) {
        if (scores.error().kind != Error::Kind::Undefined)
            return fail(scores.error());
        result.metrics.push_back(std::move(accuracy));
        return {};
    }
    const std::string interval =
        fmt::format("Wilson, {:g} %", percent * m_config.metrics.confidence);
    setInterval(accuracy, scores->accuracyInterval, percent, interval);
    result.metrics.push_back(std::move(accuracy));
    result.metrics.push_back(percentMetric("balanced_accuracy", "balanced accuracy",
                                           percent * scores->balancedAccuracy,
                                           "mean recall of the classes that occur", n));
    if (scores->binary) {
        const std::string method =
            fmt::format("class '{}' against the rest", m_labels.names[**positive]);
        report::Metric f1 = percentMetric("f1", "F1", percent * scores->binary->f1, method, n);
        f1.isHeadline = true;
        metrics::BootstrapOptions bootstrap;
        bootstrap.replicates = m_config.metrics.bootstrap;
        bootstrap.seed = m_config.metrics.seed;
        bootstrap.confidence = m_config.metrics.confidence;
        const auto f1Of = [&options](const metrics::ConfusionMatrix& drawn) {
            const auto again = metrics::classificationScores(drawn, options);
            return again && again->binary ? again->binary->f1 : 0.0;
        };
        constexpr std::uint64_t mostDraws = 200'000'000;
        if (bootstrap.replicates > 1 && n * bootstrap.replicates <= mostDraws)
            if (const auto drawn =
                    metrics::bootstrapMetric(labels, predictions, classes, f1Of, bootstrap)) {
                f1.bootstrapError = percent * drawn->standardError;
                f1.bootstrapLow = percent * drawn->low;
                f1.bootstrapHigh = percent * drawn->high;
                f1.bootstrapMethod =
                    fmt::format("bootstrap, {} replicates, seed {}, {:g} %", bootstrap.replicates,
                                bootstrap.seed, percent * bootstrap.confidence);
            }
        result.metrics.push_back(std::move(f1));
        result.metrics.push_back(percentMetric("precision", "precision",
                                               percent * scores->binary->precision, method, n));
        result.metrics.push_back(
            percentMetric("recall", "recall", percent * scores->binary->recall, method, n));
    }
    addPrf(result, "macro_", "macro", scores->macro, "mean over the classes", n);
    addPrf(result, "micro_", "micro", scores->micro, "of the summed counts", n);
    addPrf(result, "weighted_", "weighted", scores->weighted,
           "mean over the classes, weighted by their rows", n);
    result.metrics.push_back(
        plainMetric("mcc", "MCC", scores->matthews, "Matthews correlation, -1 to 1", n));
    result.metrics.push_back(plainMetric("kappa", "Cohen's kappa", scores->kappa,
                                         "agreement beyond chance", n,
                                         "labels and predictions are one single class"));
    metrics::ProbabilityOptions ofProbabilities;
    ofProbabilities.positive = *positive;
    ofProbabilities.bins = m_config.classification.bins;
    const auto soft = metrics::probabilityScores(labels, probabilities, classes, ofProbabilities);
    if (!soft)
        return fail(soft.error());
    result.metrics.push_back(plainMetric("roc_auc", "ROC AUC", soft->rocAuc,
                                         classes == 2 ? "of the positive class"
                                                      : "mean over classes, one against the rest",
                                         n, "a class is the label of no row, or of every row"));
    result.metrics.push_back(
        plainMetric("average_precision", "average precision", soft->averagePrecision,
                    classes == 2 ? "of the positive class" : "mean over classes", n));
    result.metrics.push_back(plainMetric("log_loss", "log loss", soft->logLoss, "nats", n));
    result.metrics.push_back(plainMetric(
        "brier", "Brier score", soft->brier,
        classes == 2 ? "of the positive class, 0 to 1" : "sum over classes, 0 to 2", n));
    result.metrics.push_back(
        plainMetric("calibration_error", "calibration error", soft->calibrationError,
                    fmt::format("expected, {} bins of equal width", ofProbabilities.bins), n));
    for (std::uint32_t c = 0; c < classes; ++c)
        addPrf(result, "class_" + keyOf(m_labels.names[c]) + "_", m_labels.names[c],
               scores->perClass[c].prf, "this class against the rest", scores->perClass[c].support);
    result.confusion.resize(classes);
    for (std::uint32_t row = 0; row < classes; ++row)
        for (std::uint32_t column = 0; column < classes; ++column)
            result.confusion[row].push_back(matrix->at(row, column));
    if (scores->hasZeroDivision)
        result.hints.emplace_back("some precision, recall or F1 has no denominator and counts as "
                                  "0, as in scikit-learn");
    if (const auto permutation = metrics::likelyPermutation(*matrix)) {
        std::string text;
        for (std::uint32_t c = 0; c < classes; ++c)
            if (permutation->prediction[c] != c)
                text += fmt::format("{}{} as {}", text.empty() ? "" : ", ", m_labels.names[c],
                                    m_labels.names[permutation->prediction[c]]);
        result.hints.push_back(
            fmt::format("the classes look exchanged: reading {} would give an accuracy of "
                        "{:.2f} %. Compare the order of the labels in the model and in the data",
                        text, percent * permutation->accuracy));
    }
    return {};
}

Status ClassJob::addMultiLabel(report::RunResult& result) const
{
    const auto classes = static_cast<std::uint32_t>(m_labels.names.size());
    std::vector<std::uint8_t> truth;
    std::vector<std::uint8_t> predicted;
    std::vector<double> probabilities;
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < m_table.rows.size(); ++i) {
        const Scored scored = decode(SampleIndex(i));
        if (!scored.isComplete)
            continue;
        ++n;
        const std::size_t row = truth.size();
        truth.resize(row + classes, 0);
        predicted.resize(row + classes, 0);
        for (const std::uint32_t one : m_references[i])
            truth[row + one] = 1;
        for (const std::uint32_t one : scored.fields.predicted)
            predicted[row + one] = 1;
        probabilities.insert(probabilities.end(), scored.fields.probabilities.begin(),
                             scored.fields.probabilities.end());
    }
    const auto scores = metrics::multiLabelScores(truth, predicted, classes, probabilities,
                                                  m_config.metrics.confidence);
    report::Metric subset =
        percentMetric("accuracy", "accuracy",
                      scores ? std::optional(percent * scores->subsetAccuracy) : std::nullopt,
                      "rows whose labels are all right", n);
    subset.isHeadline = true;
    if (!scores) {
        if (scores.error().kind != Error::Kind::Undefined)
            return fail(scores.error());
        result.metrics.push_back(std::move(subset));
        return {};
    }
    setInterval(subset, scores->subsetAccuracyInterval, percent,
                fmt::format("Wilson, {:g} %", percent * m_config.metrics.confidence));
    result.metrics.push_back(std::move(subset));
    report::Metric micro = percentMetric("micro_f1", "micro F1", percent * scores->micro.f1,
                                         "of the summed counts", n);
    micro.isHeadline = true;
    result.metrics.push_back(std::move(micro));
    addPrf(result, "macro_", "macro", scores->macro, "mean over the labels", n);
    addPrf(result, "weighted_", "weighted", scores->weighted,
           "mean over the labels, weighted by their rows", n);
    addPrf(result, "samples_", "samples", scores->perSample, "mean over the rows", n);
    result.metrics.push_back(percentMetric("micro_precision", "micro precision",
                                           percent * scores->micro.precision,
                                           "of the summed counts", n));
    result.metrics.push_back(percentMetric(
        "micro_recall", "micro recall", percent * scores->micro.recall, "of the summed counts", n));
    result.metrics.push_back(plainMetric("hamming_loss", "Hamming loss", scores->hammingLoss,
                                         "share of wrong (row, label) pairs", n));
    result.metrics.push_back(plainMetric("roc_auc", "ROC AUC", scores->rocAuc, "mean over labels",
                                         n, "a label stands at no row, or at every row"));
    result.metrics.push_back(plainMetric("average_precision", "average precision",
                                         scores->averagePrecision, "mean over labels", n,
                                         "no probabilities"));
    for (std::uint32_t c = 0; c < classes; ++c)
        addPrf(result, "class_" + keyOf(m_labels.names[c]) + "_", m_labels.names[c],
               scores->perLabel[c].prf, "this label", scores->perLabel[c].support);
    return {};
}

Status ClassJob::summarize(report::RunResult& result,
                           const std::function<void(SampleIndex)>& visit) const
{
    result.task = "classification";
    result.classNames = m_labels.names;
    std::uint64_t errors = 0;
    for (std::size_t i = 0; i < m_table.rows.size(); ++i) {
        visit(SampleIndex(i));
        errors += itemError(i) != nullptr ? 1U : 0U;
        result.samplesDone += has(ItemIndex(i)) && itemError(i) == nullptr ? 1U : 0U;
    }
    if (const Status added = m_labels.isMultiLabel ? addMultiLabel(result) : addSingleLabel(result);
        !added)
        return added;
    result.counts.emplace_back("missing", m_table.rows.size() - result.samplesDone - errors);
    result.counts.emplace_back("errors", errors);
    result.counts.emplace_back("truncated", m_truncated);
    for (const std::string& note : m_table.notes)
        result.hints.push_back(note);
    return {};
}

} // namespace muster::run
