// SPDX-License-Identifier: Apache-2.0
#include "metrics/squad.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace muster::metrics {

namespace {

/// A number as Python would hold it in the script.
struct PythonNumber {
    double value = 0.0;
    bool isInteger = true;
};

/// sum() of CPython over ints and floats mixed: an exact integer until the first float, then a
/// double; from 3.12 on, floats are added with compensation and ints without.
class PythonSum final {
public:
    explicit PythonSum(SumMode mode) : m_mode(mode) {}

    void add(PythonNumber item)
    {
        const double x = item.value;
        if (m_mode == SumMode::Plain || item.isInteger || !m_isFloat) {
            m_sum += x;
            m_isFloat = m_isFloat || !item.isInteger;
            return;
        }
        const double next = m_sum + x;
        m_compensation +=
            std::fabs(m_sum) >= std::fabs(x) ? (m_sum - next) + x : (x - next) + m_sum;
        m_sum = next;
    }

    [[nodiscard]] double result() const
    {
        return m_compensation != 0.0 && std::isfinite(m_compensation) ? m_sum + m_compensation
                                                                      : m_sum;
    }

private:
    SumMode m_mode;
    bool m_isFloat = false;
    double m_sum = 0.0;
    double m_compensation = 0.0;
};

class SubsetSum final {
public:
    explicit SubsetSum(SumMode mode) : m_exact(mode), m_f1(mode) {}

    void add(PythonNumber exact, PythonNumber f1)
    {
        ++m_total;
        m_exact.add(exact);
        m_f1.add(f1);
    }

    [[nodiscard]] SubsetScore result() const
    {
        if (m_total == 0)
            return {};
        const auto total = static_cast<double>(m_total);
        return {.total = m_total,
                .exact = 100.0 * m_exact.result() / total,
                .f1 = 100.0 * m_f1.result() / total};
    }

private:
    std::uint64_t m_total = 0;
    PythonSum m_exact;
    PythonSum m_f1;
};

std::uint64_t countMissing(std::span<const QuestionScore> scores)
{
    return static_cast<std::uint64_t>(std::count_if(
        scores.begin(), scores.end(), [](const QuestionScore& s) { return s.missing; }));
}

Status refuseMissing(std::uint64_t missing, std::size_t total)
{
    return fail(Error::Kind::Incomplete, "E-METRICS-005",
                fmt::format("{} of {} questions have no prediction, and the policy for missing "
                            "predictions is to fail",
                            missing, total));
}

bool saysNoAnswerInWords(const QuestionScore& score)
{
    return !score.answerable && score.looksLikeRefusal && score.em == 0.0;
}

Status checkNoAnswer(std::span<const QuestionScore> scores, std::span<const NoAnswerScore> noAnswer)
{
    const auto refuse = [](std::string message) {
        return fail(Error::Kind::Invalid, "E-METRICS-006", std::move(message));
    };
    std::vector<bool> seen(scores.size(), false);
    for (const NoAnswerScore& entry : noAnswer) {
        if (entry.question >= scores.size())
            return refuse(fmt::format("a no-answer score names question {} of {}", entry.question,
                                      scores.size()));
        if (std::isnan(entry.value))
            return refuse(
                fmt::format("the no-answer score of question {} is not a number", entry.question));
        if (seen[entry.question])
            return refuse(fmt::format("question {} has two no-answer scores", entry.question));
        seen[entry.question] = true;
    }
    for (std::size_t i = 0; i < scores.size(); ++i)
        if (!scores[i].missing && !seen[i])
            return refuse(fmt::format("question {} is predicted but has no no-answer score", i));
    return {};
}

/// One walk over the questions by ascending no-answer score.
struct Walk {
    double best = 0.0;
    double bestThreshold = 0.0;
    BestScore reachable;
};

Walk walkThresholds(std::span<const QuestionScore> scores, std::span<const NoAnswerScore> ordered,
                    std::uint64_t unanswerable, std::uint64_t scored, double QuestionScore::*metric)
{
    Walk walk;
    auto current = static_cast<double>(unanswerable);
    walk.best = current;
    double reachableBest = current;
    for (std::size_t i = 0; i < ordered.size(); ++i) {
        const QuestionScore& score = scores[ordered[i].question];
        const double value = ordered[i].value;
        if (!score.missing) {
            if (score.answerable)
                current += score.*metric;
            else
                current += score.predictedNothing ? 0.0 : -1.0;
            if (current > walk.best) {
                walk.best = current;
                walk.bestThreshold = value;
            }
        }
        const bool groupEnds = i + 1 == ordered.size() || ordered[i + 1].value != value;
        if (groupEnds && current > reachableBest) {
            reachableBest = current;
            walk.reachable.threshold = value;
        }
    }
    const auto total = static_cast<double>(scored);
    walk.best = 100.0 * walk.best / total;
    walk.reachable.value = 100.0 * reachableBest / total;
    return walk;
}

template <typename Hit>
double averagePrecision(std::span<const QuestionScore> scores,
                        std::span<const NoAnswerScore> ordered, std::uint64_t answerable, Hit hit)
{
    double hits = 0.0;
    double previousRecall = 0.0;
    double sum = 0.0;
    for (std::size_t i = 0; i < ordered.size(); ++i) {
        const QuestionScore& score = scores[ordered[i].question];
        if (score.answerable)
            hits += hit(score);
        const double precision = hits / static_cast<double>(i + 1);
        const double recall = hits / static_cast<double>(answerable);
        if (i + 1 == ordered.size() || ordered[i].value != ordered[i + 1].value) {
            sum += precision * (recall - previousRecall);
            previousRecall = recall;
        }
    }
    return 100.0 * sum;
}

ThresholdScores thresholdScores(std::span<const QuestionScore> scores,
                                std::span<const NoAnswerScore> noAnswer, MissingPolicy policy)
{
    std::vector<NoAnswerScore> ordered(noAnswer.begin(), noAnswer.end());
    std::stable_sort(
        ordered.begin(), ordered.end(),
        [](const NoAnswerScore& a, const NoAnswerScore& b) { return a.value < b.value; });
    std::uint64_t unanswerable = 0;
    std::uint64_t answerable = 0;
    for (const QuestionScore& score : scores) {
        if (score.missing && policy != MissingPolicy::Skip) {
            answerable += score.answerable ? 1 : 0;
            continue;
        }
        ++(score.answerable ? answerable : unanswerable);
    }
    const std::uint64_t scored =
        scores.size() - (policy == MissingPolicy::Skip ? countMissing(scores) : 0);

    ThresholdScores result;
    const Walk exact = walkThresholds(scores, ordered, unanswerable, scored, &QuestionScore::em);
    const Walk f1 = walkThresholds(scores, ordered, unanswerable, scored, &QuestionScore::f1);
    result.bestExact = exact.best;
    result.bestExactThreshold = exact.bestThreshold;
    result.reachableExact = exact.reachable;
    result.bestF1 = f1.best;
    result.bestF1Threshold = f1.bestThreshold;
    result.reachableF1 = f1.reachable;
    if (answerable > 0) {
        result.exactAveragePrecision = averagePrecision(
            scores, ordered, answerable, [](const QuestionScore& s) { return s.em; });
        result.f1AveragePrecision = averagePrecision(scores, ordered, answerable,
                                                     [](const QuestionScore& s) { return s.f1; });
        result.oracleAveragePrecision =
            averagePrecision(scores, ordered, answerable, [](const QuestionScore&) { return 1.0; });
    }
    return result;
}

} // namespace

Result<SquadTotals> squadV1Totals(std::span<const QuestionScore> scores, MissingPolicy missing)
{
    SquadTotals totals;
    totals.missing = countMissing(scores);
    if (totals.missing > 0 && missing == MissingPolicy::Fail)
        return fail(refuseMissing(totals.missing, scores.size()).error());
    SubsetSum all(SumMode::Plain);
    SubsetSum hasAnswer(SumMode::Plain);
    SubsetSum noAnswer(SumMode::Plain);
    for (const QuestionScore& score : scores) {
        if (score.missing && missing == MissingPolicy::Skip)
            continue;
        totals.emWithoutF1 += score.emWithoutF1 ? 1U : 0U;
        totals.worded += saysNoAnswerInWords(score) ? 1U : 0U;
        const PythonNumber em{score.em};
        const PythonNumber f1{score.f1, false};
        all.add(em, f1);
        (score.answerable ? hasAnswer : noAnswer).add(em, f1);
    }
    totals.all = all.result();
    totals.hasAnswer = hasAnswer.result();
    totals.noAnswer = noAnswer.result();
    return totals;
}

Result<SquadTotals> squadV2Totals(std::span<const QuestionScore> scores,
                                  std::span<const NoAnswerScore> noAnswer,
                                  const SquadOptions& options)
{
    SquadTotals totals;
    totals.missing = countMissing(scores);
    if (totals.missing > 0 && options.missing == MissingPolicy::Fail)
        return fail(refuseMissing(totals.missing, scores.size()).error());
    std::vector<bool> refused(scores.size(), false);
    if (!noAnswer.empty()) {
        if (const Status checked = checkNoAnswer(scores, noAnswer); !checked)
            return fail(checked.error());
        for (const NoAnswerScore& entry : noAnswer)
            refused[entry.question] = entry.value > options.noAnswerThreshold;
    }
    SubsetSum all(options.sums);
    SubsetSum hasAnswer(options.sums);
    SubsetSum withoutAnswer(options.sums);
    for (std::size_t i = 0; i < scores.size(); ++i) {
        const QuestionScore& score = scores[i];
        if (score.missing && options.missing == MissingPolicy::Skip)
            continue;
        totals.emWithoutF1 += score.emWithoutF1 ? 1U : 0U;
        totals.worded += saysNoAnswerInWords(score) ? 1U : 0U;
        PythonNumber em{score.em};
        PythonNumber f1{score.f1, score.f1IsInteger};
        if (refused[i] && !score.missing)
            em = f1 = PythonNumber{score.answerable ? 0.0 : 1.0, false};
        all.add(em, f1);
        (score.answerable ? hasAnswer : withoutAnswer).add(em, f1);
    }
    totals.all = all.result();
    totals.hasAnswer = hasAnswer.result();
    totals.noAnswer = withoutAnswer.result();
    if (!noAnswer.empty() && totals.all.total > 0)
        totals.thresholds = thresholdScores(scores, noAnswer, options.missing);
    return totals;
}

std::string refusalHint(const SquadTotals& totals)
{
    if (totals.worded == 0)
        return {};
    return fmt::format(
        "{} unanswerable questions were answered with words such as 'unanswerable', which count as "
        "wrong; set qa.abstentions if these texts mean that there is no answer",
        totals.worded);
}

} // namespace muster::metrics
