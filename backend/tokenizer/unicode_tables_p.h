// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

/// Unicode properties as Hugging Face's `tokenizers` has them, found by asking it about every code
/// point (tests/tokenizer/make_unicode_tables.py). Own tables, because ids may not depend on the
/// Unicode version of a library of the machine.
namespace muster::tokenizer::unicode {

/// Code points `first`..`last`, both included. Tables are sorted and do not overlap.
struct CodePointRange {
    char32_t first;
    char32_t last;
};

/// What a code point turns into: 1 to 4 code points, the rest 0.
struct CodePointMapping {
    char32_t from;
    char32_t to[4];
};

/// Code points with a canonical combining class other than 0.
struct CombiningRange {
    char32_t first;
    char32_t last;
    std::uint8_t value;
};

/// A code point whose compatibility decomposition is not the canonical one: `count` code points of
/// `compatibilityPart` from `first` on.
struct CompatibilityMapping {
    char32_t from;
    std::uint32_t first;
    std::uint32_t count;
};

/// Two code points that compose to a third (Unicode 15, 3.11, primary composites); Hangul is left
/// out.
struct CompositionPair {
    char32_t first;
    char32_t second;
    char32_t composed;
};

extern const std::span<const CodePointRange> removed;  ///< dropped by clean_text
extern const std::span<const CodePointRange> blank;    ///< becomes a space by clean_text
extern const std::span<const CodePointRange> isolated; ///< handle_chinese_chars puts spaces around
extern const std::span<const CodePointRange> nonspacing;  ///< marks that strip_accents drops
extern const std::span<const CodePointRange> punctuation; ///< a word of its own for BERT
extern const std::span<const CodePointRange> separator;   ///< white space between words
extern const std::span<const CodePointRange> letter;      ///< \p{L} of the byte-level pattern
extern const std::span<const CodePointRange> number;      ///< \p{N} of the byte-level pattern
extern const std::span<const CodePointRange> space;       ///< \s of the byte-level pattern
extern const std::span<const CodePointRange> word;        ///< \w beside a single-word added token

/// Lower case of a code point without context.
extern const std::span<const CodePointMapping> lowerCase;
/// Full canonical decomposition; Hangul syllables are left out, they decompose by arithmetic.
extern const std::span<const CodePointMapping> decomposition;
extern const std::span<const CombiningRange> combiningClass;

extern const std::span<const CodePointRange> mark; ///< what StripAccents drops
extern const std::span<const CompatibilityMapping> compatibility;
extern const std::span<const char32_t> compatibilityPart;
extern const std::span<const CompositionPair> composition; ///< sorted by first, then second

} // namespace muster::tokenizer::unicode
