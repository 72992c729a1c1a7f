// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "tokenizer/bert_normalizer_p.h"
#include "tokenizer/charsmap_p.h"
#include "tokenizer/pattern_p.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace muster::tokenizer {

/// A code point of a text that is being normalised, and the bytes of the original it stands for.
struct PlacedChar {
    char32_t codePoint;
    std::uint32_t begin;
    std::uint32_t end;
};

/// One step of a normalizer.
class NormalizerStep {
public:
    virtual ~NormalizerStep() = default;
    /// \param continues  the text goes on behind a cut: what is done at the start is left out
    virtual void apply(std::vector<PlacedChar>& text, bool continues) const = 0;
    /// Whether a text surely stays as it is; false when it would take work to know.
    [[nodiscard]] virtual bool keeps(std::string_view text, bool continues) const = 0;
    /// Whether the parts of a text that is cut between an ASCII letter or digit and a space, or
    /// between a new line and a letter, become the parts of what the text becomes.
    [[nodiscard]] virtual bool allowsCuts() const { return true; }
    virtual void addToDigest(Hasher& hasher) const = 0;
};

/// The normalizer of a tokenizer: steps in their order. Immutable.
class TextNormalizer final {
public:
    void add(std::unique_ptr<const NormalizerStep> step) { m_steps.push_back(std::move(step)); }
    [[nodiscard]] bool isEmpty() const { return m_steps.empty(); }
    /// Normalises valid UTF-8; false, and nothing in `into`, when the text stays as it is. The
    /// places in `into` are those of whole code points of `text`.
    [[nodiscard]] bool apply(std::string_view text, bool continues, NormalizedText& into) const;
    [[nodiscard]] bool allowsCuts() const;
    /// Whether a part behind an added token is treated as one that goes on.
    void setContinuesBehindTokens(bool continues) { m_continuesBehindTokens = continues; }
    [[nodiscard]] bool continuesBehindTokens() const { return m_continuesBehindTokens; }
    void addToDigest(Hasher& hasher) const;

private:
    std::vector<std::unique_ptr<const NormalizerStep>> m_steps;
    bool m_continuesBehindTokens = false;
};

/// The code points of valid UTF-8 in their places.
[[nodiscard]] std::vector<PlacedChar> placedChars(std::string_view text);

enum class NormalForm : std::uint8_t { nfc, nfd, nfkc, nfkd };

[[nodiscard]] std::unique_ptr<const NormalizerStep> makeNormalForm(NormalForm form);
[[nodiscard]] std::unique_ptr<const NormalizerStep> makeLowercase();
[[nodiscard]] std::unique_ptr<const NormalizerStep> makeStripAccents();
[[nodiscard]] std::unique_ptr<const NormalizerStep> makeNmt();
/// Puts a text in front of a text that is not empty.
[[nodiscard]] std::unique_ptr<const NormalizerStep> makePrepend(std::string prefix);
[[nodiscard]] std::unique_ptr<const NormalizerStep> makeReplace(Pattern pattern,
                                                                std::string content);
[[nodiscard]] std::unique_ptr<const NormalizerStep> makeStrip(bool left, bool right);
/// The charsmap as Hugging Face applies it: to a user-perceived character of less than six bytes as
/// a whole where an entry matches its start, else to each code point.
[[nodiscard]] std::unique_ptr<const NormalizerStep> makePrecompiled(Charsmap map);

/// The normalizer of a SentencePiece model.
struct SentencePieceNormalization {
    Charsmap map;
    std::vector<std::string> kept; ///< user-defined symbols: never changed, longest first
    bool addsDummyPrefix = true;
    bool removesExtraBlanks = true;
    bool escapesBlanks = true;
};
/// SentencePiece's own normalization (sentencepiece 0.1.99, normalizer.cc): the longest entry at
/// each place, blanks at the ends and repeated ones removed, a blank in front, blanks as U+2581.
[[nodiscard]] std::unique_ptr<const NormalizerStep>
makeSentencePiece(SentencePieceNormalization settings);

} // namespace muster::tokenizer
