// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::task {

/// How a text is cut into model inputs, which of its tokens are scored, and how the windows are
/// weighted. Each name is that of the procedure whose numbers it gives.
enum class LmProtocol {
    PerDocument,     ///< rolling windows, every token but the first (or all of them, with a prefix)
    NonOverlapping,  ///< blocks of L tokens; each loses its first one
    Stream,          ///< blocks of L inputs and L targets; a tail that fills no block is dropped
    HfDoc,           ///< Hugging Face's strided loop with its weights (T-44)
    HfExact,         ///< the same windows, weighted by the tokens scored
    HfFixed,         ///< the same, without the window that scores nothing (T-45)
    LmEval,          ///< rolling log-likelihood of lm-evaluation-harness
    LlamaCpp,        ///< second half of each chunk of n_ctx tokens
    LlamaCppStrided, ///< llama.cpp with --ppl-stride
    OpenCompass      ///< sliding windows of block + 1 tokens; the last tokens may stay unscored
};

/// `hf-doc`, `llama.cpp`, …: what the configuration and the results say.
[[nodiscard]] std::string_view lmProtocolName(LmProtocol protocol);
/// The protocol with this name, nothing for another word.
[[nodiscard]] std::optional<LmProtocol> lmProtocolByName(std::string_view name);
/// All names, in the order of the enumeration.
[[nodiscard]] std::span<const std::string_view> lmProtocolNames();

/// What NonOverlapping scores of a window (C-039).
enum class ScoredPart {
    All,       ///< everything that has a context
    SecondHalf ///< the tokens from ⌊L/2⌋ on
};

/// What PerDocument does with a document that is longer than the model.
enum class LongDocument {
    Roll,    ///< further windows
    Truncate ///< one window; the rest is not scored
};

/// Settings of a protocol. Those that it does not use have no effect.
struct LmRules {
    LmProtocol protocol = LmProtocol::HfFixed;
    std::uint32_t maxLength = 1024; ///< L in tokens: model inputs of a window; n_ctx of llama.cpp
    /// Tokens between two windows: hf-doc, hf-exact, hf-fixed, llama.cpp-strided, opencompass.
    std::uint32_t stride = 512;
    std::uint32_t contextLength = 1; ///< c of lm-eval
    /// Stands in front of the first window, so that the document's first token is scored: LmEval
    /// (required there), PerDocument. C-036.
    std::optional<std::int32_t> prefixToken{};
    /// Takes the place of the first token of each chunk: LlamaCpp, when the vocabulary has a BOS.
    std::optional<std::int32_t> chunkBos{};
    ScoredPart scoredPart = ScoredPart::All;
    LongDocument longDocument = LongDocument::Roll;

    bool operator==(const LmRules&) const = default;
};

/// One model input: tokens [begin, end) of the document, after the prefix token when there is one.
/// The last token is a target only; what comes before it is what the model reads.
struct LmWindow {
    std::uint64_t begin = 0; ///< token of the document
    std::uint64_t end = 0;   ///< behind the last target
    /// Place in [begin, end) of the first scored target; all later ones are scored too. 0 only with
    /// a prefix. Equal to end − begin when nothing is scored.
    std::uint32_t scoredFrom = 1;
    std::optional<std::int32_t> prefix{};       ///< fed in front of `begin`
    std::optional<std::int32_t> replaceFirst{}; ///< fed instead of the token at `begin`
    /// By what the window's mean loss is multiplied before the sum is divided by the sum of the
    /// weights. The tokens scored, except in HfDoc: target length − 1.
    std::uint64_t weight = 0;

    bool operator==(const LmWindow&) const = default;

    /// Number of targets that are scored.
    [[nodiscard]] std::uint64_t scored() const { return end - begin - scoredFrom; }
};

/// Cuts a document of `tokens` tokens into windows, in order. No windows for a document that is too
/// short to score anything (C-040). A pure function: the number of ranks is not known here.
///
/// \return  windows; in HfDoc and HfExact a last window of one token that scores nothing stays, as
///          it makes their value undefined (T-45); every other window scores at least one token.
/// Errors: Invalid `E-TASK-020` for a length with which no window scores a token, `E-TASK-021` for
/// a stride of 0 or one that leaves gaps, `E-TASK-022` for llama.cpp with fewer than 2 n_ctx tokens
/// (strided: than one window), `E-TASK-023` for lm-eval without a prefix token or with a context
/// length outside 1..L.
/// Source: semantics.md 4.1, 4.2, 4.4, 4.6, 4.8 and traps T-44, T-45, T-51, T-57.
[[nodiscard]] Result<std::vector<LmWindow>> planLmWindows(std::uint64_t tokens,
                                                          const LmRules& rules);

/// Checks the rules alone: the errors of planLmWindows() that do not depend on the document.
[[nodiscard]] Status checkLmRules(const LmRules& rules);

/// What is fed to the model and scored for one window: [prefix] + tokens[begin, end) with the first
/// one replaced where the window says so. `tokens` is the whole document; `window.end` must not be
/// larger.
[[nodiscard]] std::vector<std::int32_t> lmItemTokens(std::span<const std::int32_t> tokens,
                                                     const LmWindow& window);
/// Position of the first scored target in lmItemTokens(): wire::Unit::scoredFrom.
[[nodiscard]] std::uint32_t lmItemScoredFrom(const LmWindow& window);

/// The weight that the window has in Hugging Face's documented loop, whatever of the hf protocols
/// the rules name: target length − 1, one less than the tokens scored unless the window's first
/// token is among its targets. In other protocols the number of tokens scored (T-44).
[[nodiscard]] std::uint64_t hfDocWeight(const LmWindow& window, const LmRules& rules);

/// One sentence that identifies the procedure in results: name, lengths, what is scored, BOS rule
/// and weights. Two runs whose sentences differ are not comparable (C-042).
[[nodiscard]] std::string lmProtocolSentence(const LmRules& rules);

} // namespace muster::task
