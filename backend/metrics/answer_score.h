// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "metrics/normalize.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace muster::metrics {

/// Which rules turn an answer into EM and F1.
enum class SquadVersion {
    V1, ///< SQuAD 1.1 script
    V2  ///< SQuAD 2.0 script: golds that normalise to nothing are dropped
};

/// Token F1 of a prediction against one gold answer, in [0, 1], over token multisets:
/// P = same/|prediction|, R = same/|gold|, F1 = 2PR/(P+R), evaluated in double in this order.
/// When a side has no tokens: 1 if both have none, else 0 (the 2.0 rule).
/// Source: semantics.md 3.3 and 3.4.
[[nodiscard]] double tokenF1(const NormalizedAnswer& prediction, const NormalizedAnswer& gold);

/// The score of one question.
struct QuestionScore {
    double em = 0.0; ///< 0 or 1
    double f1 = 0.0; ///< 0..1
    bool answerable = true;
    bool missing = false;          ///< there was no prediction
    bool predictedNothing = false; ///< the prediction is the empty text, or an abstention
    bool emWithoutF1 = false;      ///< EM 1 and F1 0 by the letter of the 1.1 script (T-36)
    bool looksLikeRefusal = false; ///< says "unanswerable" in words that are not set as abstention
    bool f1IsInteger = true;       ///< Python holds this F1 as an int; matters to compensated sums

    bool operator==(const QuestionScore&) const = default;
};

/// A predicted text for the question with this id. Borrows both.
struct Prediction {
    std::string_view id;
    std::string_view text;
};

/// Holds the gold answers of a data set, normalised once, and scores predictions against them.
/// Questions are numbered in the order of adding and told apart by id only, never by their text
/// (C-030). score() is const and may be called from several threads.
class AnswerScorer final {
public:
    /// \param abstentions texts that mean "no answer"; compared after normalising, so case and
    ///                    white space do not matter; those that normalise to nothing are ignored.
    AnswerScorer(SquadVersion version, Normalizer normalizer,
                 std::span<const std::string> abstentions = {});

    /// Adds a question with its gold answers; none = unanswerable.
    /// Error: Invalid (`E-METRICS-002`) when the id is there already.
    [[nodiscard]] Status addQuestion(std::string_view id, std::span<const std::string_view> golds);

    [[nodiscard]] std::size_t size() const { return m_questions.size(); }
    [[nodiscard]] const std::string& id(std::size_t question) const
    {
        return m_questions[question].id;
    }
    [[nodiscard]] bool answerable(std::size_t question) const
    {
        return m_questions[question].answerable;
    }
    /// Number of the question with this id.
    [[nodiscard]] std::optional<std::size_t> find(std::string_view id) const;

    /// Scores one question (< size()); no text = missing, which scores 0 and 0. EM and F1 each take
    /// their best gold (C-031). Without golds, a prediction that normalises to nothing scores 1 and
    /// 1, anything else 0 and 0, in both versions (C-023).
    ///
    /// V1 with `squad-en/1` keeps F1 = 0 when both sides normalise to nothing, as the script does,
    /// and sets emWithoutF1; all others follow the 2.0 rule (T-36).
    [[nodiscard]] QuestionScore score(std::size_t question,
                                      std::optional<std::string_view> text) const;

    /// Scores a whole set of predictions, in any order: one row per question, in the order of
    /// adding. Errors: Invalid (`E-METRICS-003`) for an id that is no question, with the first of
    /// them (C-022); Invalid (`E-METRICS-004`) for an id predicted twice.
    [[nodiscard]] Result<std::vector<QuestionScore>>
    scoreAll(std::span<const Prediction> predictions) const;

    [[nodiscard]] SquadVersion version() const { return m_version; }
    [[nodiscard]] Normalizer normalizer() const { return m_normalizer; }
    /// The abstention texts as they were given.
    [[nodiscard]] const std::vector<std::string>& abstentions() const { return m_abstentions; }

private:
    struct Question {
        std::string id;
        std::vector<NormalizedAnswer> golds; ///< without repeats
        bool answerable = true;
    };
    struct TextHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const
        {
            return std::hash<std::string_view>{}(text);
        }
    };

    SquadVersion m_version;
    Normalizer m_normalizer;
    std::vector<std::string> m_abstentions;
    std::vector<std::string> m_normalizedAbstentions;
    std::vector<std::string> m_refusals;
    std::vector<Question> m_questions;
    std::unordered_map<std::string, std::size_t, TextHash, std::equal_to<>> m_byId;
};

} // namespace muster::metrics
