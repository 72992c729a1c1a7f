// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "metrics/intervals.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::metrics {

/// How often each class was predicted for samples of each class. Counts are sums over all samples,
/// so they do not depend on batches or ranks (C-015, C-016).
struct ConfusionMatrix {
    std::uint32_t classes = 0;
    std::vector<std::uint64_t> counts; ///< [classes, classes], row = label, column = prediction
    std::uint64_t ignored = 0;         ///< samples with a negative label, counted nowhere (C-018)

    bool operator==(const ConfusionMatrix&) const = default;

    [[nodiscard]] std::uint64_t at(std::uint32_t label, std::uint32_t prediction) const
    {
        return counts[std::size_t{label} * classes + prediction];
    }
};

/// Counts pairs. `labels` and `predictions` [n] are class numbers; a negative label, such as the
/// −100 of training code, leaves its sample out. Errors: Invalid `E-METRICS-030` for different
/// lengths or no classes, `E-METRICS-031` for a class that does not exist, with its row.
[[nodiscard]] Result<ConfusionMatrix> confusionMatrix(std::span<const std::int32_t> labels,
                                                      std::span<const std::int32_t> predictions,
                                                      std::uint32_t classes);

/// Precision, recall and F1, 0 to 1. A quotient without a denominator is 0 and raises the flag, as
/// scikit-learn's default does.
struct Prf {
    double precision = 0.0;
    double recall = 0.0;
    double f1 = 0.0;
    bool hasZeroDivision = false;

    bool operator==(const Prf&) const = default;
};

/// One class against all others.
struct ClassScore {
    Prf prf;
    std::uint64_t support = 0;   ///< samples with this label
    std::uint64_t predicted = 0; ///< samples with this prediction
    std::uint64_t hits = 0;

    bool operator==(const ClassScore&) const = default;
};

/// Whether a class that is neither a label nor a prediction of any sample enters macro averages.
enum class AbsentClasses {
    Exclude, ///< as scikit-learn without `labels`
    Count    ///< with a score of 0
};

struct ClassificationOptions {
    /// Class whose precision, recall and F1 are `binary`; absent = 1 when there are two classes.
    std::optional<std::uint32_t> positive{};
    AbsentClasses absent = AbsentClasses::Exclude;
    double confidence = 0.95; ///< of the accuracy's interval
};

/// Everything that follows from the confusion matrix.
struct ClassificationScores {
    std::uint64_t samples = 0; ///< without the ignored ones
    std::uint64_t ignored = 0;
    std::uint64_t hits = 0;
    double accuracy = 0.0;
    Interval accuracyInterval;     ///< Wilson's
    double balancedAccuracy = 0.0; ///< mean recall of the classes that occur as labels
    std::vector<ClassScore> perClass;
    std::optional<Prf> binary; ///< of the positive class
    Prf macro;                 ///< mean over classes
    Prf micro;                 ///< of the summed counts
    Prf weighted;              ///< mean over classes, weighted by support
    double matthews = 0.0;     ///< −1 to 1; 0 where it has no denominator
    /// Cohen's kappa, at most 1; absent when labels and predictions are one single class.
    std::optional<double> kappa;
    bool hasZeroDivision = false; ///< some quotient above had no denominator and was set to 0
};

/// Scores as scikit-learn's accuracy_score, balanced_accuracy_score,
/// precision_recall_fscore_support, matthews_corrcoef and cohen_kappa_score give them.
/// Errors: Undefined `E-METRICS-033` without samples; Invalid `E-METRICS-031` for a positive class
/// that does not exist; `E-METRICS-011` for a confidence.
[[nodiscard]] Result<ClassificationScores>
classificationScores(const ConfusionMatrix& matrix, const ClassificationOptions& options = {});

/// One bin of the calibration diagram: (low, high], the first one with 0.
struct CalibrationBin {
    double low = 0.0;
    double high = 0.0;
    std::uint64_t count = 0;
    double meanConfidence = 0.0; ///< 0 for an empty bin
    double accuracy = 0.0;       ///< 0 for an empty bin

    bool operator==(const CalibrationBin&) const = default;
};

struct ProbabilityOptions {
    std::optional<std::uint32_t> positive{}; ///< as in ClassificationOptions
    std::uint32_t bins = 15;                 ///< of equal width over 0 to 1
};

/// What follows from the probabilities of all classes.
struct ProbabilityScores {
    /// Two classes: area under the ROC curve of the positive class. More: mean over the classes
    /// against the rest. Absent when a class is no label of any sample or of all of them.
    std::optional<double> rocAuc;
    std::vector<std::optional<double>> rocAucPerClass; ///< each class against the rest
    /// Σ (Rᵢ − Rᵢ₋₁) Pᵢ; two classes: of the positive one, more: mean over classes. A class that
    /// never occurs has 0.
    double averagePrecision = 0.0;
    double logLoss = 0.0; ///< nats; probabilities clipped to [2⁻⁵², 1 − 2⁻⁵²]
    /// Two classes: mean (p − y)² of the positive one, 0 to 1. More: mean of the sum over classes,
    /// 0 to 2.
    double brier = 0.0;
    /// Expected calibration error of the predicted class: Σ count/n · |accuracy − confidence| over
    /// the bins. Source: Guo et al., On Calibration of Modern Neural Networks (2017).
    double calibrationError = 0.0;
    std::vector<CalibrationBin> calibration; ///< [bins]
};

/// Scores as scikit-learn's roc_auc_score (macro, one against the rest), average_precision_score,
/// log_loss and brier_score_loss. `labels` [n] with negative ones left out; `probabilities`
/// [n, classes] row by row; the prediction is the first largest. Sums are exact, so the order does
/// not matter. Errors: as confusionMatrix() and classificationScores(); Invalid `E-METRICS-032` for
/// a probability outside [0, 1] or none, or for no bins.
[[nodiscard]] Result<ProbabilityScores> probabilityScores(std::span<const std::int32_t> labels,
                                                          std::span<const double> probabilities,
                                                          std::uint32_t classes,
                                                          const ProbabilityOptions& options = {});

/// Area under the ROC curve of scores, higher = positive, ties counted half. Absent without both
/// kinds. `isPositive` [n] is 0 or 1.
[[nodiscard]] std::optional<double> rocAuc(std::span<const std::uint8_t> isPositive,
                                           std::span<const double> scores);
/// Average precision, Σ (Rᵢ − Rᵢ₋₁) Pᵢ over the distinct scores from high to low; 0 without
/// positives.
[[nodiscard]] double averagePrecision(std::span<const std::uint8_t> isPositive,
                                      std::span<const double> scores);

/// Scores where a sample may have several labels or none.
struct MultiLabelScores {
    std::uint64_t samples = 0;
    double subsetAccuracy = 0.0; ///< share of samples whose labels are all right
    Interval subsetAccuracyInterval;
    double hammingLoss = 0.0; ///< share of wrong (sample, label) pairs
    std::vector<ClassScore> perLabel;
    Prf micro;
    Prf macro; ///< over all labels
    Prf weighted;
    Prf perSample;                          ///< mean over samples
    std::optional<double> rocAuc;           ///< mean over labels; absent as in ProbabilityScores
    std::optional<double> averagePrecision; ///< mean over labels; absent without probabilities
    bool hasZeroDivision = false;
};

/// `truth` and `predicted` [n, labels] of 0 and 1, row by row; `probabilities` the same or empty.
/// As scikit-learn on indicator matrices. Errors: Invalid `E-METRICS-030`, `E-METRICS-032`;
/// Undefined `E-METRICS-033` without samples.
[[nodiscard]] Result<MultiLabelScores> multiLabelScores(std::span<const std::uint8_t> truth,
                                                        std::span<const std::uint8_t> predicted,
                                                        std::uint32_t labels,
                                                        std::span<const double> probabilities = {},
                                                        double confidence = 0.95);

/// A number that follows from a confusion matrix, such as a macro F1.
using MatrixMetric = std::function<double(const ConfusionMatrix&)>;

/// Bootstrap of any such metric: each replicate draws n samples with PythonRandom::index in index
/// order and forms the metric of their confusion matrix; `value` is the metric of all samples.
/// Errors as bootstrapMean() and confusionMatrix(). Source: semantics.md 6.1.
[[nodiscard]] Result<Interval> bootstrapMetric(std::span<const std::int32_t> labels,
                                               std::span<const std::int32_t> predictions,
                                               std::uint32_t classes, const MatrixMetric& metric,
                                               const BootstrapOptions& options = {});

/// For each class of the data the class of the model with the same name (C-017): exactly, else
/// without regard to ASCII case. Nothing when a class has no counterpart or two share one.
[[nodiscard]] std::optional<std::vector<std::uint32_t>>
matchClasses(std::span<const std::string> dataClasses, std::span<const std::string> modelClasses);

/// A renumbering of the predictions that makes them right more often.
struct LabelPermutation {
    std::vector<std::uint32_t> prediction; ///< [classes]: what prediction k should have been
    std::uint64_t hits = 0;                ///< with it
    double accuracy = 0.0;

    bool operator==(const LabelPermutation&) const = default;
};

/// When the accuracy lies below 1/classes and a permutation of the classes lifts it to at least 0.6
/// and, with 99 % confidence, above 1/classes: that permutation (C-017). Looks at all permutations
/// of up to 8 classes; of more at the one that takes each prediction's most frequent label.
[[nodiscard]] std::optional<LabelPermutation> likelyPermutation(const ConfusionMatrix& matrix);

/// Hits among the samples of one task.
struct TaskAccuracy {
    std::uint64_t hits = 0;
    std::uint64_t samples = 0;
};

/// Accuracy over several tasks, both ways (C-019); tasks without samples are left out of `macro`.
struct GroupAccuracy {
    double micro = 0.0; ///< by samples
    double macro = 0.0; ///< mean over tasks
};

/// Error: Undefined `E-METRICS-033` when no task has samples.
[[nodiscard]] Result<GroupAccuracy> groupAccuracy(std::span<const TaskAccuracy> tasks);

} // namespace muster::metrics
