// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/piece_table_p.h"
#include "tokenizer/splitting_p.h"
#include "tokenizer/staged_tokenizer_p.h"

#include <array>
#include <atomic>
#include <memory>
#include <unordered_map>

namespace muster::tokenizer {

/// Everything that a byte-level BPE tokenizer is made of.
struct ByteLevelBpeParts {
    Description description;
    TextNormalizer normalizer;
    std::vector<SplitStep> steps; ///< before the ByteLevel pre-tokenizer
    std::vector<std::pair<std::int32_t, std::string_view>>
        vocabulary; ///< views of the caller's text
    /// In the order of their rank; views of the caller's text.
    std::vector<std::pair<std::string_view, std::string_view>> merges;
    std::optional<std::string> unkToken; ///< for a byte that has no token; nothing drops the byte
    bool fusesUnk = false;
    bool ignoresMerges = false;   ///< a word that is a token is not built by merges
    bool addsPrefixSpace = false; ///< before each piece that does not begin with one
    bool usesRegex = true;        ///< cuts the pieces by GPT-2's pattern
    /// One entry for each post-processing step that trims offsets: whether it takes one leading
    /// space for an added one.
    std::vector<bool> trims;
};

/// Byte-level BPE: steps that cut the text, the ByteLevel pre-tokenizer with or without GPT-2's
/// pattern, merges by rank, ByteLevel or RobertaProcessing trimming of offsets.
class ByteLevelBpeTokenizer final : public StagedTokenizer {
public:
    /// Errors: `E-TOK-005`, `E-TOK-006`.
    [[nodiscard]] static Result<std::unique_ptr<Tokenizer>> make(ByteLevelBpeParts parts);

    [[nodiscard]] std::string kind() const override { return "bpe"; }
    [[nodiscard]] std::optional<std::int32_t> idOf(std::string_view token) const override;

protected:
    void encodePart(const Part& part, EncodeSpace& space, TokenSink& sink) const override;
    void finish(std::string_view text, bool continues, TokenSink& sink) const override;

private:
    struct Edges { // blanks at the ends of a token's text
        std::uint32_t leading = 0;
        std::uint32_t trailing = 0;
        bool isOfText = false; // an added token: what the text has there counts
    };
    /// A word and where it stands; `bytes` may have an added space in front.
    struct Word {
        std::string_view bytes;
        std::string_view text;
        std::size_t begin = 0; ///< in `text`, of the first byte that stands there
        std::size_t shift = 0; ///< 1 with an added space
    };

    [[nodiscard]] static Edges edgesOf(std::string_view token);

    explicit ByteLevelBpeTokenizer(ByteLevelBpeParts& parts);
    [[nodiscard]] Status setMerges(const ByteLevelBpeParts& parts);
    void setDigestOf(ByteLevelBpeParts& parts);
    void chooseCuts();
    void encodePiece(std::string_view text, std::size_t begin, std::size_t end, bool continues,
                     EncodeSpace& space, TokenSink& sink) const;
    void putWord(std::string_view text, std::size_t begin, std::size_t end, bool hasPrefixSpace,
                 EncodeSpace& space, TokenSink& sink) const;
    void putBytes(const Word& word, EncodeSpace& space, TokenSink& sink) const;
    /// The word as one token without a look at the merges, `none` when that is not sure.
    [[nodiscard]] std::int32_t wholeToken(std::int32_t inVocabulary) const;
    void rememberWhole(std::int32_t inVocabulary, bool isWhole) const;
    /// Fills `space.symbols` with the first symbols of a word of which every byte has a token.
    void startSymbols(std::string_view bytes, EncodeSpace& space) const;
    void putIncomplete(const Word& word, EncodeSpace& space, TokenSink& sink) const;
    [[nodiscard]] static std::uint32_t beginOf(const Word& word, std::size_t byte);
    [[nodiscard]] static std::uint32_t endOf(const Word& word, std::size_t byte);

    PieceTable m_pieces;                                     // by raw bytes
    std::unordered_map<std::string, std::int32_t> m_foreign; // tokens outside the alphabet
    MergeTable m_merges;
    std::array<std::int32_t, 256> m_byteId{};
    CharClasses m_classes;
    std::vector<SplitStep> m_steps;
    std::optional<std::int32_t> m_unk;
    bool m_fusesUnk = false;
    bool m_ignoresMerges = false;
    bool m_addsPrefixSpace = false;
    bool m_usesRegex = true;
    bool m_hasAllBytes = true;
    std::vector<bool> m_trims;
    std::unordered_map<std::int32_t, Edges>
        m_edges; // tokens with blanks at their ends, added tokens
    // Whether merging the bytes of a token gives the token: 0 not known yet, 1 yes, 2 no. The
    // answer does not depend on who finds it first.
    std::unique_ptr<std::atomic<std::uint8_t>[]> m_isWhole;
    std::size_t m_isWholeSize = 0;
};

} // namespace muster::tokenizer
