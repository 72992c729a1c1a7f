// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/cutting_p.h"
#include "tokenizer/described_tokenizer_p.h"
#include "tokenizer/merging_p.h"
#include "tokenizer/text_normalizer_p.h"

#include <memory>

namespace muster::tokenizer {

/// A tokenizer in the stages of Hugging Face's pipeline: broken bytes are repaired, added tokens
/// are cut out of the raw text, what lies between is normalised, added tokens are cut out of that,
/// and the rest goes to the derived class. Offsets come back to the original here.
class StagedTokenizer : public DescribedTokenizer {
public:
    void encode(std::string_view text, Encoding& into) const final;
    void encodeContinuation(std::string_view text, Encoding& into) const final;
    [[nodiscard]] std::size_t cutBefore(std::string_view text, std::size_t at) const final
    {
        return m_cuts.cutBefore(text, at);
    }

protected:
    StagedTokenizer(Description description, TextNormalizer normalizer);

    /// A part of a text that holds no added token.
    struct Part {
        std::string_view text;  ///< valid UTF-8, normalised
        std::size_t begin = 0;  ///< of the part in `text`
        std::size_t end = 0;    ///< > begin
        bool opensText = false; ///< its first byte is the first of the original
        bool continues = false; ///< it goes on where a part ended before, behind a cut
    };

    /// Puts the tokens of a part with offsets in `part.text`.
    virtual void encodePart(const Part& part, EncodeSpace& space, TokenSink& sink) const = 0;
    /// Called when all tokens of a text stand in the sink with offsets in `text`.
    virtual void finish(std::string_view text, bool continues, TokenSink& sink) const;
    /// Where texts may be cut, as far as the derived class can prove it.
    void setCuts(Cuts cuts) { m_cuts.set(m_normalizer.allowsCuts() ? cuts : Cuts::none); }
    [[nodiscard]] const TextNormalizer& normalizer() const { return m_normalizer; }

private:
    void encodeAny(std::string_view text, bool continues, Encoding& into) const;
    void encodeValid(std::string_view text, bool continues, TokenSink& sink) const;

    TextNormalizer m_normalizer;
    AddedTokenMatcher m_rawTokens;
    AddedTokenMatcher m_normalizedTokens;
    CutRule m_cuts;
    mutable SpacePool m_spaces;
};

} // namespace muster::tokenizer
