// SPDX-License-Identifier: Apache-2.0
#include "task/qa_decode.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

namespace muster::task {

namespace {

using config::TieMode;

struct Candidate {
    double score = 0.0;
    float startLogit = 0.0F;
    float endLogit = 0.0F;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::uint32_t feature = 0;
    std::uint32_t found = 0; ///< order of finding
    bool isNull = false;
};

double scoreOf(float start, float end, TieMode ties)
{
    if (ties == TieMode::Hf)
        return static_cast<double>(start + end);
    return static_cast<double>(start) + static_cast<double>(end);
}

/// Infinite logits of opposite sign have no sum; they sort last.
double sortKey(double score)
{
    return std::isnan(score) ? -std::numeric_limits<double>::infinity() : score;
}

bool ranksBefore(const Candidate& a, const Candidate& b)
{
    const double left = sortKey(a.score);
    const double right = sortKey(b.score);
    return left != right ? left > right : a.found < b.found;
}

void addSpans(std::vector<Candidate>& candidates, const FeatureView& feature, std::uint32_t number,
              const QaRules& rules)
{
    const wire::QaOutput& output = *feature.output;
    const std::size_t starts = std::min<std::size_t>(rules.nBest, output.startPosition.size());
    const std::size_t ends = std::min<std::size_t>(rules.nBest, output.endPosition.size());
    const auto tokens = static_cast<std::uint32_t>(std::min<std::size_t>(
        feature.contextTokens, std::min(feature.begin.size(), feature.end.size())));
    for (std::size_t s = 0; s < starts; ++s) {
        // Unsigned wrap puts positions before the context out of range as well.
        const std::uint32_t start = output.startPosition[s] - feature.contextStart;
        if (start >= tokens)
            continue;
        for (std::size_t e = 0; e < ends; ++e) {
            const std::uint32_t end = output.endPosition[e] - feature.contextStart;
            if (end >= tokens || end < start || end - start >= rules.maxAnswerLength)
                continue;
            candidates.push_back(
                {.score = scoreOf(output.startLogit[s], output.endLogit[e], rules.ties),
                 .startLogit = output.startLogit[s],
                 .endLogit = output.endLogit[e],
                 .begin = feature.begin[start],
                 .end = feature.end[end],
                 .feature = number,
                 .found = static_cast<std::uint32_t>(candidates.size()),
                 .isNull = false});
        }
    }
}

std::optional<Candidate> nullCandidate(std::span<const FeatureView> features, TieMode ties)
{
    std::optional<Candidate> lowest;
    for (std::size_t i = 0; i < features.size(); ++i) {
        const wire::QaOutput& output = *features[i].output;
        const double score = scoreOf(output.nullStart, output.nullEnd, ties);
        if (!lowest || lowest->score > score) {
            lowest.emplace();
            lowest->score = score;
            lowest->startLogit = output.nullStart;
            lowest->endLogit = output.nullEnd;
            lowest->feature = static_cast<std::uint32_t>(i);
            lowest->isNull = true;
        }
    }
    return lowest;
}

std::string_view textOf(std::string_view context, const Candidate& candidate)
{
    if (candidate.isNull || candidate.end <= candidate.begin || candidate.end > context.size())
        return {};
    return context.substr(candidate.begin, candidate.end - candidate.begin);
}

/// Softmax in float32, summed as numpy does below 128 values: eight running sums added pairwise,
/// then the rest in order.
void softmaxFloat(std::vector<NBestAnswer>& list)
{
    std::vector<float> values;
    values.reserve(list.size());
    float largest = -std::numeric_limits<float>::infinity();
    for (const NBestAnswer& answer : list)
        largest = std::max(largest, static_cast<float>(answer.score));
    for (const NBestAnswer& answer : list) {
        const float below = static_cast<float>(answer.score) - largest;
        values.push_back(static_cast<float>(std::exp(static_cast<double>(below))));
    }
    float sum = 0.0F;
    std::size_t at = 0;
    if (values.size() >= 8) {
        float part[8];
        std::copy_n(values.begin(), 8, part);
        for (at = 8; at + 8 <= values.size(); at += 8)
            for (std::size_t lane = 0; lane < 8; ++lane)
                part[lane] += values[at + lane];
        sum = ((part[0] + part[1]) + (part[2] + part[3])) +
              ((part[4] + part[5]) + (part[6] + part[7]));
    }
    for (; at < values.size(); ++at)
        sum += values[at];
    for (std::size_t i = 0; i < list.size(); ++i)
        list[i].probability = static_cast<double>(values[i] / sum);
}

void softmaxDouble(std::vector<NBestAnswer>& list)
{
    double largest = -std::numeric_limits<double>::infinity();
    for (const NBestAnswer& answer : list)
        largest = std::max(largest, answer.score);
    double sum = 0.0;
    for (NBestAnswer& answer : list) {
        answer.probability = std::exp(answer.score - largest);
        sum += answer.probability;
    }
    for (NBestAnswer& answer : list)
        answer.probability /= sum;
}

double oddsOf(double nullScore, const NBestAnswer* best, TieMode ties)
{
    if (best == nullptr)
        return nullScore;
    if (ties == TieMode::Bert)
        return nullScore - static_cast<double>(best->startLogit) -
               static_cast<double>(best->endLogit);
    const float left = static_cast<float>(nullScore) - best->startLogit;
    return static_cast<double>(left - best->endLogit);
}

} // namespace

QaPrediction decodeAnswer(std::string_view context, std::span<const FeatureView> features,
                          const QaRules& rules)
{
    std::vector<Candidate> candidates;
    candidates.reserve(features.size() * 64);
    for (std::size_t i = 0; i < features.size(); ++i)
        addSpans(candidates, features[i], static_cast<std::uint32_t>(i), rules);
    std::optional<Candidate> null;
    if (rules.noAnswer == NoAnswer::Allowed)
        null = nullCandidate(features, rules.ties);
    if (null) {
        null->found = static_cast<std::uint32_t>(candidates.size());
        candidates.push_back(*null);
    }

    QaPrediction prediction;
    std::unordered_set<std::string_view> seen;
    bool hasNull = false;
    const auto keep = [&](const Candidate& candidate) {
        const std::string_view text = textOf(context, candidate);
        if (rules.ties == TieMode::Bert && !candidate.isNull && !seen.insert(text).second)
            return;
        // Upstream takes any entry at (0, 0) for the null one.
        hasNull = hasNull || candidate.isNull || (candidate.begin == 0 && candidate.end == 0);
        prediction.nBest.push_back({.text = std::string(text),
                                    .startLogit = candidate.startLogit,
                                    .endLogit = candidate.endLogit,
                                    .score = candidate.score,
                                    .begin = candidate.begin,
                                    .end = candidate.end,
                                    .feature = candidate.feature,
                                    .isNull = candidate.isNull});
    };
    const std::size_t wanted = std::min<std::size_t>(rules.nBest, candidates.size());
    const auto sortedEnd = rules.ties == TieMode::Bert
                               ? candidates.end()
                               : candidates.begin() + static_cast<std::ptrdiff_t>(wanted);
    std::partial_sort(candidates.begin(), sortedEnd, candidates.end(), ranksBefore);
    for (auto at = candidates.begin(); at != sortedEnd && prediction.nBest.size() < rules.nBest;
         ++at)
        keep(*at);
    if (null && !hasNull)
        keep(*null);
    if (!prediction.nBest.empty())
        rules.ties == TieMode::Hf ? softmaxFloat(prediction.nBest)
                                  : softmaxDouble(prediction.nBest);

    const auto best = std::find_if(prediction.nBest.begin(), prediction.nBest.end(),
                                   [](const NBestAnswer& answer) { return !answer.text.empty(); });
    prediction.noValidSpan = best == prediction.nBest.end();
    if (!prediction.noValidSpan)
        prediction.bestNonNullText = best->text;
    if (rules.noAnswer == NoAnswer::Never) {
        if (!prediction.nBest.empty())
            prediction.text = prediction.nBest.front().text;
        return prediction;
    }
    prediction.nullOdds =
        null ? oddsOf(null->score, prediction.noValidSpan ? nullptr : &*best, rules.ties) : 0.0;
    if (!(*prediction.nullOdds > rules.nullThreshold))
        prediction.text = prediction.bestNonNullText;
    return prediction;
}

} // namespace muster::task
