// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/code_points_p.h"
#include "tokenizer/described_tokenizer_p.h"
#include "tokenizer/merging_p.h"

#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace muster::tokenizer {

/// Turns a word of a text into tokens. Immutable; may be used from several threads at once.
class WordModel {
public:
    virtual ~WordModel() = default;
    /// Puts the tokens of a word (valid UTF-8, not empty) whose first byte is byte `at` of the
    /// text.
    virtual void put(std::string_view word, std::uint32_t at, EncodeSpace& space,
                     TokenSink& sink) const = 0;
    [[nodiscard]] virtual std::optional<std::int32_t> idOf(std::string_view token) const = 0;
    [[nodiscard]] virtual std::string kind() const = 0;
    /// Whether a text may be cut before each first U+2581 of a run without a change of tokens.
    [[nodiscard]] virtual bool splitsAtBlanks() const = 0;
    virtual void addToDigest(Hasher& hasher) const = 0;
};

/// U+2581, which stands for a space.
inline constexpr std::string_view blankMark = "\u2581";

/// Whether a U+2581 stands behind another character of a token.
[[nodiscard]] bool hasInnerBlank(std::string_view token);

/// Calls `each(begin, end)` for the words of a text that begin with a run of U+2581.
template <typename Each>
void splitAtBlanks(std::string_view text, Each each)
{
    for (std::size_t begin = 0; begin < text.size();) {
        std::size_t end = begin;
        while (text.substr(end).starts_with(blankMark))
            end += blankMark.size();
        end = std::min(text.find(blankMark, end), text.size());
        each(begin, end);
        begin = end;
    }
}

/// Text of the token of a byte: `<0x0A>`.
[[nodiscard]] std::string byteToken(unsigned byte);

/// Everything that a BPE over code points is made of.
struct CodePointBpeParts {
    std::vector<std::pair<std::int32_t, std::string_view>> vocabulary;
    /// A merge of two tokens by their texts. Merges of equal rank go from left to right.
    struct Merge {
        std::string_view left;
        std::string_view right;
        std::uint32_t rank = 0;
    };
    std::vector<Merge> merges;
    std::vector<std::string> whole; ///< symbols that are found first and never merged
    std::optional<std::int32_t> unk;
    bool fusesUnk = false;
    bool fallsBackToBytes = false;
    bool ignoresMerges = false; ///< a word that is a token is not built by merges
};

/// BPE whose first symbols are code points; a code point without a token becomes tokens of its
/// bytes or the unknown token.
class CodePointBpe final : public WordModel {
public:
    /// Error: `E-TOK-006`.
    [[nodiscard]] static Result<std::unique_ptr<WordModel>> make(CodePointBpeParts parts);

    void put(std::string_view word, std::uint32_t at, EncodeSpace& space,
             TokenSink& sink) const override;
    [[nodiscard]] std::optional<std::int32_t> idOf(std::string_view token) const override;
    [[nodiscard]] std::string kind() const override { return "bpe"; }
    [[nodiscard]] bool splitsAtBlanks() const override { return m_splitsAtBlanks; }
    void addToDigest(Hasher& hasher) const override { hasher.add(m_hash); }

private:
    explicit CodePointBpe(const CodePointBpeParts& parts);
    void putBetweenBlanks(std::string_view word, std::uint32_t at, EncodeSpace& space,
                          TokenSink& sink) const;
    void start(std::string_view word, std::vector<MergeSymbol>& symbols) const;

    PieceTable m_pieces;
    MergeTable m_merges;
    CodePointTable<std::int32_t> m_single{PieceTable::none};
    std::array<std::int32_t, 256> m_byteId{};
    std::vector<std::pair<std::string, std::int32_t>> m_whole; // longest first
    std::optional<std::int32_t> m_unk;
    bool m_fusesUnk;
    bool m_fallsBack;
    bool m_ignoresMerges;
    bool m_splitsAtBlanks = false;
    Hash128 m_hash;
};

/// Everything that a Unigram model is made of.
struct UnigramParts {
    struct Piece {
        std::string_view text;
        double score = 0;
        bool isMatched = true; ///< control symbols are not
    };
    std::vector<Piece> pieces; ///< [vocabulary], by id
    std::int32_t unk = 0;
    bool fallsBackToBytes = false;
    std::optional<double> leastScore; ///< nothing: the least of all pieces
    /// Look at each word that begins with U+2581 alone, where that cannot change the path. The sums
    /// are then those of words and not of the text, which only their last digits tell.
    bool looksAtWords = false;
};

/// Unigram: the path of the highest sum of scores, as Hugging Face's `Unigram` finds it (ties go to
/// the piece that starts first; neighbouring unknown characters are one token).
class Unigram final : public WordModel {
public:
    explicit Unigram(const UnigramParts& parts);

    void put(std::string_view word, std::uint32_t at, EncodeSpace& space,
             TokenSink& sink) const override;
    [[nodiscard]] std::optional<std::int32_t> idOf(std::string_view token) const override;
    [[nodiscard]] std::string kind() const override { return "unigram"; }
    [[nodiscard]] bool splitsAtBlanks() const override { return m_splitsAtBlanks; }
    void addToDigest(Hasher& hasher) const override { hasher.add(m_hash); }

private:
    static constexpr std::uint32_t noNode = 0xFFFFFFFFU;
    struct Edge {
        std::uint64_t key = ~std::uint64_t{0}; // node << 8 | byte
        std::uint32_t node = noNode;
        std::int32_t id = -1; // of the piece that ends there
    };
    [[nodiscard]] const Edge& edge(std::uint32_t node, unsigned char byte) const
    {
        const std::uint64_t key = std::uint64_t{node} << 8U | byte;
        for (std::size_t at = slotOf(key);; at = (at + 1) & m_mask) {
            if (m_edges[at].key == key || m_edges[at].node == noNode)
                return m_edges[at];
        }
    }
    [[nodiscard]] std::size_t slotOf(std::uint64_t key) const
    {
        key *= 0x9E3779B97F4A7C15ULL;
        return static_cast<std::size_t>(key >> m_shift);
    }
    void putBetweenBlanks(std::string_view word, std::uint32_t at, EncodeSpace& space,
                          TokenSink& sink) const;
    void putUnknown(std::string_view bytes, std::uint32_t at, TokenSink& sink) const;

    std::vector<Edge> m_edges;
    std::size_t m_mask = 0;
    unsigned m_shift = 0;
    std::vector<double> m_scores; // by id
    double m_unkScore = 0;
    std::int32_t m_unk;
    bool m_fallsBack;
    bool m_splitsAtBlanks = false;
    std::array<std::int32_t, 256> m_byteId{};
    std::unordered_map<std::string, std::int32_t> m_ids;
    Hash128 m_hash;
};

} // namespace muster::tokenizer
