// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/code_points_p.h"
#include "tokenizer/described_tokenizer_p.h"
#include "tokenizer/piece_table_p.h"

#include <array>
#include <atomic>
#include <memory>

namespace muster::tokenizer {

/// Everything that a byte-level BPE tokenizer is made of.
struct ByteLevelBpeParts {
    Description description;
    std::vector<std::pair<std::int32_t, std::string_view>>
        vocabulary; ///< views of the caller's text
    /// In the order of their rank; views of the caller's text.
    std::vector<std::pair<std::string_view, std::string_view>> merges;
    std::optional<std::string> unkToken; ///< for a byte that has no token; nothing drops the byte
    bool fusesUnk = false;
    bool ignoresMerges = false; ///< a word that is a token is not built by merges
    bool addsPrefixSpace = false;
    /// One entry for each post-processing step that trims offsets: whether it takes one leading
    /// space for an added one.
    std::vector<bool> trims;
};

/// What the byte-level pattern of GPT-2 distinguishes.
enum class BpeClass : std::uint8_t { other, letter, number, space };

/// Byte-level BPE as GPT-2 and RoBERTa use it: ByteLevel pre-tokenizer with its regular expression,
/// merges by rank, ByteLevel or RobertaProcessing trimming of offsets.
class ByteLevelBpeTokenizer final : public DescribedTokenizer {
public:
    /// Errors: `E-TOK-005`, `E-TOK-006`.
    [[nodiscard]] static Result<std::unique_ptr<Tokenizer>> make(ByteLevelBpeParts parts);

    void encode(std::string_view text, Encoding& into) const override;
    [[nodiscard]] std::string kind() const override { return "bpe"; }
    [[nodiscard]] std::optional<std::int32_t> idOf(std::string_view token) const override;

private:
    struct Merge {
        std::uint64_t pair = ~std::uint64_t{0}; // left << 32 | right; all ones: free
        std::uint32_t rank = 0;
        std::int32_t id = 0;
    };
    struct Symbol;
    struct Edges { // blanks at the ends of a token's text
        std::uint32_t leading = 0;
        std::uint32_t trailing = 0;
    };

    [[nodiscard]] static Edges edgesOf(std::string_view token);

    explicit ByteLevelBpeTokenizer(ByteLevelBpeParts& parts);
    [[nodiscard]] Status setMerges(const ByteLevelBpeParts& parts);
    void setDigestOf(ByteLevelBpeParts& parts);
    [[nodiscard]] const Merge* findMerge(std::int32_t left, std::int32_t right) const;
    void encodeValid(std::string_view text, TokenSink& sink) const;
    void encodePart(std::string_view text, std::size_t begin, std::size_t end,
                    TokenSink& sink) const;
    void putWord(std::string_view text, std::size_t begin, std::size_t end, bool hasPrefixSpace,
                 TokenSink& sink) const;
    void putTrimmed(std::string_view text, std::int32_t id, std::size_t begin, std::size_t end,
                    Edges edges, TokenSink& sink) const;

    PieceTable m_pieces;                                     // by raw bytes
    std::unordered_map<std::string, std::int32_t> m_foreign; // tokens outside the alphabet
    std::vector<Merge> m_merges;
    std::size_t m_mergeMask = 0;
    std::array<std::int32_t, 256> m_byteId{};
    CodePointTable<BpeClass> m_classes;
    AddedTokenMatcher m_rawTokens;
    AddedTokenMatcher m_normalizedTokens;
    std::optional<std::int32_t> m_unk;
    bool m_fusesUnk = false;
    bool m_ignoresMerges = false;
    bool m_addsPrefixSpace = false;
    bool m_hasAllBytes = true;
    std::vector<bool> m_trims;
    std::unordered_map<std::int32_t, Edges> m_edges; // tokens with blanks at their ends
    // Whether merging the bytes of a token gives the token: 0 not known yet, 1 yes, 2 no. The
    // answer does not depend on who finds it first.
    std::unique_ptr<std::atomic<std::uint8_t>[]> m_isWhole;
    std::size_t m_isWholeSize = 0;
};

} // namespace muster::tokenizer
