// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/bert_normalizer_p.h"
#include "tokenizer/cutting_p.h"
#include "tokenizer/described_tokenizer_p.h"
#include "tokenizer/piece_table_p.h"

#include <array>

namespace muster::tokenizer {

/// Everything that a WordPiece tokenizer is made of.
struct WordPieceParts {
    Description description;
    BertNormalization normalization;
    std::vector<std::pair<std::int32_t, std::string_view>>
        vocabulary; ///< views of the caller's text
    std::string unkToken = "[UNK]";
    std::string continuingPrefix = "##";
    std::size_t maxWordChars = 100; ///< a longer word is unknown; in code points
};

/// BERT's tokenizer: BertNormalizer, BertPreTokenizer, WordPiece (greedy longest match first).
///
/// Two ways lead to the same tokens. The fast one reads the bytes once and normalises on the fly;
/// it leaves out characters that may change places with their neighbours and tokenizers with
/// added tokens that are matched in normalised text. Those take the plain way, which normalises
/// step by step.
class WordPieceTokenizer final : public DescribedTokenizer {
public:
    /// \param parts    unkToken must stand in the vocabulary
    /// \param unkId    its id
    WordPieceTokenizer(WordPieceParts parts, std::int32_t unkId);

    void encode(std::string_view text, Encoding& into) const override;
    /// A word is cut at white space whatever stands before it, so a part is a text of its own.
    void encodeContinuation(std::string_view text, Encoding& into) const override
    {
        encode(text, into);
    }
    [[nodiscard]] std::size_t cutBefore(std::string_view text, std::size_t at) const override
    {
        return m_cuts.cutBefore(text, at);
    }
    /// The same result by the plain way alone, for comparison.
    void encodePlainly(std::string_view text, Encoding& into) const;
    [[nodiscard]] std::string kind() const override { return "wordpiece"; }
    [[nodiscard]] std::optional<std::int32_t> idOf(std::string_view token) const override;

private:
    enum class ByteRole : std::uint8_t { word, space, alone, drop, high };
    struct WordBuffer;

    [[nodiscard]] bool encodeFast(std::string_view text, std::size_t begin, std::size_t end,
                                  TokenSink& sink) const;
    void encodePlain(std::string_view text, std::size_t begin, std::size_t end,
                     TokenSink& sink) const;
    void putAsciiWord(std::string_view text, std::size_t begin, std::size_t end,
                      TokenSink& sink) const;
    void putBuffer(WordBuffer& word, TokenSink& sink) const;
    void putAlone(const char* bytes, std::size_t size, std::uint32_t begin, std::uint32_t end,
                  TokenSink& sink) const;
    template <typename Place>
    void putPieces(const char* bytes, std::size_t size, TokenSink& sink, Place place) const;
    [[nodiscard]] ByteRole role(char byte) const
    {
        return m_roles[static_cast<unsigned char>(byte)];
    }

    BertNormalization m_normalization;
    BertCodePoints m_codePoints;
    PieceTable m_pieces;
    CutRule m_cuts;
    AddedTokenMatcher m_rawTokens;
    AddedTokenMatcher m_normalizedTokens;
    std::array<ByteRole, 256> m_roles{};
    std::string m_continuingPrefix;
    std::int32_t m_unk;
    std::size_t m_maxWordChars;
    bool m_alwaysPlain = false;
};

} // namespace muster::tokenizer
