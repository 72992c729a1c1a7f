// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/code_points_p.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::tokenizer {

/// The settings of Hugging Face's BertNormalizer, with the default of strip_accents resolved.
struct BertNormalization {
    bool cleansText = true;
    bool isolatesChinese = true;
    bool stripsAccents = true;
    bool lowers = true;

    bool operator==(const BertNormalization&) const = default;
};

/// Normalised text; each of its bytes remembers the bytes of the original that it stands for.
struct NormalizedText {
    std::string bytes;
    std::vector<std::uint32_t> begin; ///< [bytes.size()], in bytes of the original
    std::vector<std::uint32_t> end;   ///< [bytes.size()]
};

/// Normalises step by step over the whole text, the plain way: the rule that the fast path of
/// WordPiece must agree with, and the way that texts take which the fast path leaves out.
///
/// The steps are those of BertNormalizer in their order: clean, isolate Chinese characters,
/// canonical decomposition without nonspacing marks, lower case. A character that took another
/// place in the canonical order keeps the offsets of the place, as Hugging Face does.
[[nodiscard]] NormalizedText normalize(std::string_view text, std::uint32_t offset,
                                       const BertNormalization& settings);

/// What a byte-by-byte reader does with a code point of the original text.
enum class CodePointAction : std::uint8_t {
    keep,    ///< stands for itself inside a word
    drop,    ///< vanishes
    space,   ///< ends a word
    alone,   ///< is a word of its own, as itself
    replace, ///< becomes the parts of its replacement
    hangul,  ///< a syllable that becomes 2 or 3 letters, by arithmetic
    reorder  ///< may change places with its neighbours: take the plain way
};

/// Code point `part` (0, 1, 2) of the canonical decomposition of a Hangul syllable; 0 when it has
/// no third (Unicode 15, 3.12).
[[nodiscard]] constexpr char32_t hangulPart(char32_t syllable, int part)
{
    const char32_t index = syllable - 0xAC00;
    if (part == 0)
        return 0x1100 + index / 588;
    if (part == 1)
        return 0x1161 + index % 588 / 28;
    return index % 28 == 0 ? 0 : 0x11A7 + index % 28;
}

/// One code point of a replacement and what it does to words.
struct ReplacementPart {
    enum class Role : std::uint8_t { word, alone, space };
    std::uint8_t size = 0; ///< bytes
    Role role = Role::word;
    char bytes[4] = {};
};

/// The action of each code point under given settings; made once for a tokenizer.
class BertCodePoints final {
public:
    explicit BertCodePoints(const BertNormalization& settings);

    [[nodiscard]] CodePointAction action(char32_t codePoint) const
    {
        return static_cast<CodePointAction>(m_entries[codePoint] & 7U);
    }
    /// The parts of a code point whose action is `replace`.
    [[nodiscard]] std::span<const ReplacementPart> replacement(char32_t codePoint) const
    {
        const std::uint32_t row = m_entries[codePoint] >> 3U;
        return std::span(m_parts).subspan(row >> 3U, row & 7U);
    }

private:
    void add(char32_t codePoint, const BertNormalization& settings,
             std::vector<ReplacementPart>& scratch);

    CodePointTable<std::uint32_t> m_entries; // action | parts << 3 | first part << 6
    std::vector<ReplacementPart> m_parts;
};

} // namespace muster::tokenizer
