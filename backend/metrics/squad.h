// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "metrics/answer_score.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace muster::metrics {

/// How floats are summed: Python's sum() changed in 3.12 (T-40).
enum class SumMode {
    Plain,      ///< running add, Python ≤ 3.11; SQuAD 1.1 always sums like this
    Compensated ///< Python 3.12 and 3.13
};

/// What happens to a question without a prediction (T-38, C-022).
enum class MissingPolicy {
    Zero, ///< scores 0 and stays in the total
    Skip, ///< leaves the total, as the 2.0 script does; its sub-totals fail there, ours leave it
          ///< too
    Fail  ///< is an error
};

/// EM and F1 in percent over a set of questions; no value when the set is empty (C-026).
struct SubsetScore {
    std::uint64_t total = 0;
    std::optional<double> exact;
    std::optional<double> f1;

    bool operator==(const SubsetScore&) const = default;
};

/// Best value over thresholds. `threshold` absent: the value is reached by answering nothing.
struct BestScore {
    double value = 0.0; ///< percent
    std::optional<double> threshold;

    bool operator==(const BestScore&) const = default;
};

/// What tuning a no-answer threshold reaches. A question is refused when its no-answer score is
/// greater than the threshold.
struct ThresholdScores {
    /// The script's value and threshold (0.0 for "answer nothing"): equal scores are not grouped,
    /// so it may be a value that no threshold reaches and depends on the order (T-39).
    double bestExact = 0.0;
    double bestExactThreshold = 0.0;
    double bestF1 = 0.0;
    double bestF1Threshold = 0.0;
    /// The best values that a threshold does reach.
    BestScore reachableExact;
    BestScore reachableF1;
    /// Average precision in percent, of EM, F1 and of the oracle that knows which questions have
    /// an answer; absent when no question has one.
    std::optional<double> exactAveragePrecision;
    std::optional<double> f1AveragePrecision;
    std::optional<double> oracleAveragePrecision;

    bool operator==(const ThresholdScores&) const = default;
};

/// The totals of a question-answering data set.
struct SquadTotals {
    SubsetScore all;
    SubsetScore hasAnswer;
    SubsetScore noAnswer;
    std::uint64_t missing = 0;     ///< questions without a prediction; the run is to be flagged
    std::uint64_t emWithoutF1 = 0; ///< T-36
    /// Wrong answers to unanswerable questions that say in words that there is no answer (C-025).
    std::uint64_t worded = 0;
    std::optional<ThresholdScores> thresholds; ///< when no-answer scores were given

    bool operator==(const SquadTotals&) const = default;
};

/// The no-answer score of a question: null odds, or a probability.
struct NoAnswerScore {
    std::size_t question = 0;
    double value = 0.0;
};

struct SquadOptions {
    SumMode sums = SumMode::Plain; ///< of the 2.0 totals
    MissingPolicy missing = MissingPolicy::Zero;
    /// Questions whose no-answer score is greater are taken as refused before the totals are
    /// formed: 1 if unanswerable, else 0. Infinity: predictions count as they are. The 2.0 script
    /// has 1.0 and expects probabilities.
    double noAnswerThreshold = std::numeric_limits<double>::infinity();
};

/// Totals as SQuAD 1.1 forms them: 100 · running sum / number of questions, in the order given.
/// Sub-totals by answerability are ours, in the same way. No question: no values.
/// Error: Incomplete (`E-METRICS-005`) under MissingPolicy::Fail.
/// Source: semantics.md 3.3.
[[nodiscard]] Result<SquadTotals> squadV1Totals(std::span<const QuestionScore> scores,
                                                MissingPolicy missing = MissingPolicy::Zero);

/// Totals as SQuAD 2.0 forms them, every field of the script.
///
/// \param scores   one row per question, in data set order
/// \param noAnswer no-answer scores in the order of the prediction file; ties keep that order.
///                 Empty: no thresholds. Else one for each predicted question.
/// Missing questions under Zero: they count as wrong in best values too, whatever the threshold.
/// Errors: Incomplete (`E-METRICS-005`) under MissingPolicy::Fail; Invalid (`E-METRICS-006`) when
/// a no-answer score is missing, repeated, not a number, or of an unknown question.
/// Source: semantics.md 3.4, T-38 to T-40.
[[nodiscard]] Result<SquadTotals> squadV2Totals(std::span<const QuestionScore> scores,
                                                std::span<const NoAnswerScore> noAnswer = {},
                                                const SquadOptions& options = {});

/// A sentence for the user when refusals in words were scored as wrong answers (C-025); empty when
/// there is nothing to say.
[[nodiscard]] std::string refusalHint(const SquadTotals& totals);

} // namespace muster::metrics
