// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/run_config.h"
#include "wire/output.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::task {

/// One feature of a question: what the rank returned and where its context tokens stand. Borrows
/// everything. `begin` and `end` are byte offsets into the context: [contextTokens].
struct FeatureView {
    const wire::QaOutput* output = nullptr; ///< decoded; positions count from the item's start
    std::uint32_t contextStart = 0;         ///< position of the first context token in the item
    std::uint32_t contextTokens = 0;
    std::span<const std::uint32_t> begin;
    std::span<const std::uint32_t> end;
};

/// Whether a question may be left unanswered.
enum class NoAnswer {
    Never,  ///< SQuAD 1.1
    Allowed ///< SQuAD 2.0: the null score competes
};

struct QaRules {
    std::uint32_t nBest = 20;           ///< starts, ends and kept answers
    std::uint32_t maxAnswerLength = 30; ///< tokens
    config::TieMode ties = config::TieMode::Hf;
    NoAnswer noAnswer = NoAnswer::Never;
    double nullThreshold = 0.0; ///< unanswered when the null odds are greater
};

/// One answer of the n-best list.
struct NBestAnswer {
    std::string text;
    float startLogit = 0.0F;
    float endLogit = 0.0F;
    double score = 0.0;       ///< startLogit + endLogit; in Hf mode rounded to float32
    double probability = 0.0; ///< softmax over the list; in Hf mode a float32 value
    std::uint32_t begin = 0;  ///< bytes of the context
    std::uint32_t end = 0;
    std::uint32_t feature = 0;
    bool isNull = false; ///< the "no answer" entry

    bool operator==(const NBestAnswer&) const = default;
};

/// What the outputs of a question say.
struct QaPrediction {
    std::string text; ///< the answer; empty = no answer
    std::vector<NBestAnswer> nBest;
    /// Null score minus the score of the best non-empty answer; only with NoAnswer::Allowed. When
    /// there is no such answer, its score counts as 0, as upstream; without features it is 0.
    std::optional<double> nullOdds;
    std::string bestNonNullText; ///< the answer if refusing were not allowed; may be empty
    bool noValidSpan = false;    ///< no candidate has text; to be counted and listed (C-024)

    bool operator==(const QaPrediction&) const = default;
};

/// Decodes one question from its features, given in window order. A pure function.
///
/// Candidates are all pairs of the nBest starts and nBest ends of each feature with both in the
/// context, end ≥ start and at most maxAnswerLength tokens; the best nBest by score are kept, the
/// first found first on equal scores. With NoAnswer::Allowed the null entry, the lowest
/// start[0] + end[0] of the features (the first of equal ones), joins them and is appended again
/// when it fell out.
///
/// - Hf mode: equal texts are kept; scores, odds and probabilities are float32.
/// - Bert mode: of equal texts the best is kept, so the list may reach further down; numbers are
///   double. The order of equal logits is the order of the output's lists (T-35).
///
/// The text is never a placeholder such as "empty" (T-70): without a valid span it is empty and
/// noValidSpan is set, also when every kept text is empty (T-34) or there is no feature at all.
/// Source: semantics.md 3.2.
[[nodiscard]] QaPrediction
decodeAnswer(std::string_view context, std::span<const FeatureView> features, const QaRules& rules);

} // namespace muster::task
