// SPDX-License-Identifier: Apache-2.0
#include "metrics/answer_score.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace muster::metrics {

namespace {

/// Wordings that models use to refuse; only for the hint, never for the score.
constexpr std::string_view refusals[] = {"unanswerable",
                                         "not answerable",
                                         "cannot be answered",
                                         "no answer",
                                         "the answer is not in the text",
                                         "not enough information",
                                         "not mentioned",
                                         "not given",
                                         "not stated",
                                         "i don't know",
                                         "unknown",
                                         "n/a",
                                         "none",
                                         "无法回答",
                                         "无答案",
                                         "没有答案"};

constexpr std::size_t fewTokens = 64;

/// Splits at single spaces into `into`, up to its size.
template <std::size_t size>
std::size_t split(std::string_view text, std::array<std::string_view, size>& into)
{
    std::size_t count = 0;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        into[count++] = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return count;
}

std::vector<std::string_view> sortedTokens(const NormalizedAnswer& answer)
{
    std::vector<std::string_view> tokens;
    tokens.reserve(answer.tokens);
    for (std::string_view rest = answer.text; !rest.empty();) {
        const std::size_t end = std::min(rest.find(' '), rest.size());
        tokens.push_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    std::sort(tokens.begin(), tokens.end());
    return tokens;
}

/// Size of the intersection of the two token multisets.
std::uint64_t sharedTokens(const NormalizedAnswer& a, const NormalizedAnswer& b)
{
    if (a.tokens <= fewTokens && b.tokens <= fewTokens) {
        std::array<std::string_view, fewTokens> left;
        std::array<std::string_view, fewTokens> right;
        const std::size_t leftCount = split(a.text, left);
        std::size_t rightCount = split(b.text, right);
        std::uint64_t same = 0;
        for (std::size_t i = 0; i < leftCount; ++i)
            for (std::size_t j = 0; j < rightCount; ++j)
                if (left[i] == right[j]) {
                    ++same;
                    right[j] = right[--rightCount];
                    break;
                }
        return same;
    }
    const auto left = sortedTokens(a);
    const auto right = sortedTokens(b);
    std::uint64_t same = 0;
    for (std::size_t i = 0, j = 0; i < left.size() && j < right.size();) {
        const int order = left[i].compare(right[j]);
        same += order == 0 ? 1 : 0;
        i += order <= 0 ? 1 : 0;
        j += order >= 0 ? 1 : 0;
    }
    return same;
}

bool contains(const std::vector<std::string>& list, const std::string& text)
{
    return std::find(list.begin(), list.end(), text) != list.end();
}

} // namespace

double tokenF1(const NormalizedAnswer& prediction, const NormalizedAnswer& gold)
{
    if (prediction.tokens == 0 || gold.tokens == 0)
        return prediction.tokens == gold.tokens ? 1.0 : 0.0;
    const auto same = static_cast<double>(sharedTokens(prediction, gold));
    if (same == 0.0)
        return 0.0;
    const double precision = same / static_cast<double>(prediction.tokens);
    const double recall = same / static_cast<double>(gold.tokens);
    return (2 * precision * recall) / (precision + recall);
}

AnswerScorer::AnswerScorer(SquadVersion version, Normalizer normalizer,
                           std::span<const std::string> abstentions)
    : m_version(version), m_normalizer(normalizer),
      m_abstentions(abstentions.begin(), abstentions.end())
{
    for (const std::string& text : m_abstentions) {
        NormalizedAnswer normalized = normalize(normalizer, text);
        if (normalized.tokens > 0)
            m_normalizedAbstentions.push_back(std::move(normalized.text));
    }
    for (const std::string_view text : refusals)
        m_refusals.push_back(normalize(normalizer, text).text);
}

Status AnswerScorer::addQuestion(std::string_view id, std::span<const std::string_view> golds)
{
    if (!m_byId.emplace(std::string(id), m_questions.size()).second)
        return fail(Error::Kind::Invalid, "E-METRICS-002",
                    fmt::format("question id '{}' occurs twice; ids must be unique, because "
                                "predictions are matched by id",
                                id));
    Question question;
    question.id = std::string(id);
    question.answerable = !golds.empty();
    for (const std::string_view gold : golds) {
        NormalizedAnswer answer = normalize(m_normalizer, gold);
        if (m_version == SquadVersion::V2 && answer.tokens == 0)
            continue;
        if (std::find(question.golds.begin(), question.golds.end(), answer) == question.golds.end())
            question.golds.push_back(std::move(answer));
    }
    if (m_version == SquadVersion::V2 && question.golds.empty())
        question.golds.emplace_back();
    m_questions.push_back(std::move(question));
    return {};
}

std::optional<std::size_t> AnswerScorer::find(std::string_view id) const
{
    const auto entry = m_byId.find(id);
    if (entry == m_byId.end())
        return std::nullopt;
    return entry->second;
}

QuestionScore AnswerScorer::score(std::size_t question, std::optional<std::string_view> text) const
{
    const Question& asked = m_questions[question];
    QuestionScore score{.answerable = asked.answerable};
    if (!text) {
        score.missing = true;
        return score;
    }
    NormalizedAnswer predicted = normalize(m_normalizer, *text);
    score.predictedNothing = text->empty();
    if (predicted.tokens > 0) {
        if (contains(m_normalizedAbstentions, predicted.text)) {
            predicted = {};
            score.predictedNothing = true;
        } else {
            score.looksLikeRefusal = contains(m_refusals, predicted.text);
        }
    }
    if (asked.golds.empty()) {
        score.em = score.f1 = predicted.tokens == 0 ? 1.0 : 0.0;
        score.f1IsInteger = true;
        return score;
    }
    const bool literalV1 = m_version == SquadVersion::V1 && m_normalizer == Normalizer::SquadEn1;
    bool f1Comes0From1 = false;
    for (const NormalizedAnswer& gold : asked.golds) {
        const bool equal = predicted.text == gold.text;
        double f1 = 0.0;
        if (equal && predicted.tokens == 0)
            f1 = literalV1 ? 0.0 : 1.0;
        else
            f1 = equal ? 1.0 : tokenF1(predicted, gold);
        if (equal) {
            score.em = 1.0;
            f1Comes0From1 = f1Comes0From1 || f1 == 0.0;
        }
        score.f1 = std::max(score.f1, f1);
    }
    score.emWithoutF1 = f1Comes0From1 && score.f1 == 0.0;
    score.f1IsInteger = score.f1 == 0.0 || predicted.tokens == 0;
    return score;
}

Result<std::vector<QuestionScore>>
AnswerScorer::scoreAll(std::span<const Prediction> predictions) const
{
    std::vector<QuestionScore> scores(m_questions.size());
    std::vector<bool> seen(m_questions.size(), false);
    std::uint64_t unknown = 0;
    std::string_view firstUnknown;
    for (const Prediction& prediction : predictions) {
        const auto question = find(prediction.id);
        if (!question) {
            if (unknown++ == 0)
                firstUnknown = prediction.id;
            continue;
        }
        if (seen[*question])
            return fail(Error::Kind::Invalid, "E-METRICS-004",
                        fmt::format("question '{}' is predicted twice", prediction.id));
        seen[*question] = true;
        scores[*question] = score(*question, prediction.text);
    }
    if (unknown > 0)
        return fail(Error::Kind::Invalid, "E-METRICS-003",
                    fmt::format("{} of {} predictions have ids that the data set does not have, "
                                "the first is '{}'; are these the predictions of another set?",
                                unknown, predictions.size(), firstUnknown));
    for (std::size_t i = 0; i < scores.size(); ++i)
        if (!seen[i])
            scores[i] = score(i, std::nullopt);
    return scores;
}

} // namespace muster::metrics
