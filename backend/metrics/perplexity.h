// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "metrics/intervals.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::metrics {

/// Losses of one window, summed by the rank that computed it.
struct LossRow {
    std::uint64_t index = 0;    ///< of the item
    std::uint64_t document = 0; ///< number of the document; does not fall with the index
    double nllNats = 0.0;       ///< sum of −ln p over the scored tokens
    std::uint64_t tokens = 0;   ///< scored
    /// Weight of the window's mean in Hugging Face's documented loop: target length − 1 (T-44).
    /// Equal to `tokens` where that loop is right.
    std::uint64_t hfDocWeight = 0;

    bool operator==(const LossRow&) const = default;
};

/// How long one document is, in the units by which a loss can be divided.
struct TextCounts {
    std::uint64_t words = 0;      ///< pieces between runs of white space, empty ends counted
    std::uint64_t bytes = 0;      ///< of UTF-8
    std::uint64_t characters = 0; ///< code points
    std::uint64_t tokens = 0;     ///< of the document, scored or not; 0 = not known

    bool operator==(const TextCounts&) const = default;
};

/// Counts words, bytes and characters; `tokens` stays 0. Words as lm-evaluation-harness counts
/// them: `re.split(r"\s+", text)`, so " a b " has 4 and the empty text 1. Source: semantics.md 4.4.
[[nodiscard]] TextCounts countText(std::string_view text);

/// How the losses of windows become one mean.
enum class LossAveraging {
    ByTokens, ///< Σ nll / Σ tokens
    HfDoc ///< Σ (nll/tokens)·weight / Σ weight; undefined when a window scored nothing (T-45)
};

struct PerplexityOptions {
    LossAveraging averaging = LossAveraging::ByTokens;
    double confidence = 0.95;
    /// Σ x² over the scored tokens, when their losses were kept: for llama.cpp's error bar.
    std::optional<double> sumOfSquares{};
};

/// Corpus perplexity with everything that is said beside it. All logarithms are natural unless the
/// name says bits.
struct Perplexity {
    double nllNats = 0.0;        ///< exact sum, rounded once
    std::uint64_t tokens = 0;    ///< scored
    std::uint64_t windows = 0;   ///< that scored something finite
    std::uint64_t documents = 0; ///< that scored something finite
    double meanNats = 0.0;       ///< always finite
    /// exp(meanNats), the one exponential; infinite above about 709.78 nats (C-038).
    double perplexity = 0.0;
    /// exp(Σ nll / Σ words), as lm-evaluation-harness; without counts absent.
    std::optional<double> wordPerplexity;
    std::optional<double> bytePerplexity;
    std::optional<double> bitsPerByte;      ///< Σ nll / (Σ bytes · ln 2)
    std::optional<double> bitsPerCharacter; ///< Σ nll / (Σ code points · ln 2)
    /// Scored tokens of all tokens of the texts, 0 to 1; absent when their number is not known
    /// (C-039). Word, byte and character figures mean little when much of the text is not scored.
    std::optional<double> scoredFraction;
    /// Of the perplexity; see perplexityInterval(). Absent with fewer than two clusters.
    std::optional<Interval> interval;
    std::string intervalMethod; ///< what the clusters are, or why there is no interval
    /// llama.cpp's ± of the perplexity: tokens as if independent, so usually too small.
    std::optional<double> llamaCppError;
    std::vector<std::uint64_t> emptyWindows;     ///< indices without a scored token (C-040)
    std::vector<std::uint64_t> nonFiniteWindows; ///< indices whose loss is NaN or infinite
};

/// Perplexity of all windows: exp(Σ nll / Σ tokens), sums exact and counts in 64 bits, so the value
/// does not depend on how the windows were dealt (C-032 to C-034, C-037; T-43, T-53).
///
/// \param rows       one per window, ascending by index; rows without tokens are skipped and
///                   listed, rows with a loss that is no finite number too, and not averaged in.
/// \param documents  counts by document number, or empty; of the original texts (T-49).
/// Errors: Undefined `E-METRICS-020` when no token was scored, or in HfDoc when a window scored
/// nothing or all weights are 0; Invalid `E-METRICS-021` when rows do not ascend or name a document
/// without counts; Invalid `E-METRICS-011` for a confidence outside (0, 1).
/// Source: semantics.md 4.1 to 4.4, 4.6.
[[nodiscard]] Result<Perplexity> corpusPerplexity(std::span<const LossRow> rows,
                                                  std::span<const TextCounts> documents = {},
                                                  const PerplexityOptions& options = {});

/// Interval of the perplexity by the delta method on the ratio Σ nll / Σ tokens, with whole
/// documents as independent clusters, or windows when there are fewer than two documents:
/// se² = m/(m−1) · Σ (nllᵢ − R·tokensᵢ)² / (Σ tokens)². `low` and `high` are exp(R ∓ z·se), and
/// `standardError` is PPL·se. Errors: Undefined `E-METRICS-010` for fewer than two clusters;
/// `E-METRICS-020`, `E-METRICS-021`, `E-METRICS-011` as corpusPerplexity().
/// Source: W. G. Cochran, Sampling Techniques (1977), 6.5 and 9A.
[[nodiscard]] Result<Interval> perplexityInterval(std::span<const LossRow> rows,
                                                  double confidence = 0.95);

/// llama.cpp's error of the perplexity: PPL·√((E[x²] − E[x]²)/(n−1)). Error: Undefined
/// `E-METRICS-010` for n ≤ 1. Source: semantics.md 4.6 (1, 2, 3 gives 7.389 ± 4.266).
[[nodiscard]] Result<double> llamaCppError(std::uint64_t tokens, double sum, double sumOfSquares);

/// One way to turn the same losses into a number.
struct LedgerEntry {
    std::string name;     ///< `mean-of-batch-losses, batch 8`
    double value = 0.0;   ///< may be infinite
    std::string sentence; ///< what was done, and why it is not the corpus perplexity
    bool isRight = false; ///< one of the figures that Muster reports as results

    bool operator==(const LedgerEntry&) const = default;
};

struct LedgerOptions {
    /// Windows per batch, each number once; those of 1 or below and the whole set are left out.
    std::vector<std::uint64_t> batchSizes = {8};
    /// Numbers of ranks; those below 2 are left out.
    std::vector<std::uint64_t> ranks = {2};
};

/// The right figures and the wrong averages of the same losses, beside each other. Entries that
/// need what is not there, such as words, are left out. Empty when no token was scored.
/// Windows are dealt in index order: batches are consecutive, ranks take every W-th window (stride)
/// or consecutive blocks of ⌈N/W⌉ or ⌊N/W⌋. Rows and documents as corpusPerplexity().
[[nodiscard]] std::vector<LedgerEntry> perplexityLedger(std::span<const LossRow> rows,
                                                        std::span<const TextCounts> documents = {},
                                                        const LedgerOptions& options = {});

/// An entry of the ledger beside a number that was seen elsewhere.
struct LedgerMatch {
    LedgerEntry entry;
    double difference = 0.0; ///< entry − seen
    bool isMatch = false;    ///< within the tolerance

    bool operator==(const LedgerMatch&) const = default;
};

/// Which procedures give a number: every finite entry, matches first and among them the right
/// figures, then nearest first. Looks through batch sizes of 2 to 128 (powers of two) and 2 to 8,
/// 16, 32 and 64 ranks besides those of the options. \param tolerance  greatest distance of a
/// match, absolute; see toleranceOf().
[[nodiscard]] std::vector<LedgerMatch> explainSeen(double seen, double tolerance,
                                                   std::span<const LossRow> rows,
                                                   std::span<const TextCounts> documents = {},
                                                   const LedgerOptions& options = {});

/// Half a unit of the last digit that was written: 0.05 for `17.2`, 0.5 for `17`, 0.005 for
/// `1.5e-1`, with one more part in 10¹² for the rounding of doubles. Nothing when the text is no
/// number.
[[nodiscard]] std::optional<double> toleranceOf(std::string_view written);

} // namespace muster::metrics
