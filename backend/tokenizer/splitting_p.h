// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "base/utf8.h"
#include "tokenizer/code_points_p.h"
#include "tokenizer/pattern_p.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace muster::tokenizer {

/// What a pre-tokenizer does with what it found (SplitDelimiterBehavior of Hugging Face).
enum class SplitBehavior : std::uint8_t {
    removed,
    isolated,
    mergedWithPrevious,
    mergedWithNext,
    contiguous
};

/// What the patterns of byte-level tokenizers distinguish.
enum class CharClass : std::uint8_t { other, letter, number, space };

/// The class of every code point, with the tables of Hugging Face's regular expressions.
class CharClasses final {
public:
    CharClasses()
    {
        m_table.set(unicode::letter, CharClass::letter);
        m_table.set(unicode::number, CharClass::number);
        m_table.set(unicode::space, CharClass::space);
    }
    [[nodiscard]] CharClass operator[](char32_t codePoint) const { return m_table[codePoint]; }

private:
    CodePointTable<CharClass> m_table;
};

/// The patterns that have a hand-written reader.
enum class KnownPattern : std::uint8_t {
    gpt2,       ///< `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
    cl100k,     ///< that of Llama 3: numbers of at most three digits
    cl100kDigit ///< that of Qwen 2: each digit alone
};

/// The text of a known pattern as tokenizer.json has it.
[[nodiscard]] std::string_view expressionOf(KnownPattern pattern);
/// The known pattern that an expression is.
[[nodiscard]] std::optional<KnownPattern> knownPattern(std::string_view expression);

/// One step of a pre-tokenizer that cuts texts and leaves their characters alone.
class SplitStep final {
public:
    enum class Kind : std::uint8_t {
        pattern,     ///< Split and CharDelimiterSplit
        known,       ///< Split by an expression that has a reader of its own
        digits,      ///< Digits
        blanks,      ///< WhitespaceSplit
        words,       ///< Whitespace: `\w+|[^\w\s]+`
        punctuation, ///< Punctuation
    };
    Kind kind = Kind::pattern;
    SplitBehavior behavior = SplitBehavior::isolated;
    bool isInverted = false;
    Pattern pattern;
    KnownPattern known = KnownPattern::gpt2;

    using Range = Pattern::Range;

    /// Appends the parts of `text` in `piece`, which are never empty.
    void split(std::string_view text, Range piece, const CharClasses& classes,
               std::vector<Range>& into) const;
    void addToDigest(Hasher& hasher) const;
};

/// Reads one class after another from valid UTF-8.
class ClassReader final {
public:
    struct Seen {
        CharClass kind = CharClass::other;
        std::size_t size = 0; ///< bytes; 0 at the end
    };
    ClassReader(std::string_view text, std::size_t end, const CharClasses& classes)
        : m_text(text), m_end(end), m_classes(classes)
    {
    }
    [[nodiscard]] Seen look(std::size_t at) const
    {
        if (at >= m_end)
            return {};
        const auto byte = static_cast<unsigned char>(m_text[at]);
        if (byte < 0x80)
            return {m_classes[byte], 1};
        const utf8::Decoded d = utf8::decode(m_text, at);
        return {m_classes[d.codePoint], d.size};
    }
    [[nodiscard]] std::size_t end() const { return m_end; }
    [[nodiscard]] std::string_view text() const { return m_text; }

private:
    std::string_view m_text;
    std::size_t m_end;
    const CharClasses& m_classes;
};

/// Bytes of the contraction behind an apostrophe at `at` ('s, 't, 're, 've, 'm, 'll, 'd), with the
/// apostrophe; 0 when there is none.
[[nodiscard]] std::size_t contractionAt(std::string_view text, std::size_t at, std::size_t end,
                                        bool ignoresCase);

/// Cuts [begin, end) as GPT-2's pattern does and calls `word(begin, end, hasPrefixSpace)`. With
/// `hasPrefixSpace` the text is read as if one more space stood before it.
template <typename Word>
void readGpt2(const ClassReader& reader, std::size_t begin, bool hasPrefixSpace, Word word)
{
    using Seen = ClassReader::Seen;
    const std::string_view text = reader.text();
    const std::size_t end = reader.end();
    for (std::size_t at = begin; at < end;) {
        const std::size_t start = at;
        if (text[at] == '\'' && !hasPrefixSpace) {
            if (const std::size_t size = contractionAt(text, at, end, false); size != 0) {
                word(at, at + size, false);
                at += size;
                continue;
            }
        }
        Seen first = reader.look(at);
        std::size_t from = at;
        if (!hasPrefixSpace && text[at] == ' ') {
            const Seen second = reader.look(at + 1);
            if (second.size != 0 && second.kind != CharClass::space) {
                from = at + 1;
                first = second;
            }
        }
        std::size_t stop = from;
        std::size_t last = from;
        Seen s = first;
        do {
            last = stop;
            stop += s.size;
            s = reader.look(stop);
        } while (s.size != 0 && s.kind == first.kind);
        // Of white space the last one goes to what follows, unless the text ends or it is alone; an
        // added space makes one more.
        if (first.kind == CharClass::space && stop != end && (last != at || hasPrefixSpace))
            stop = last;
        word(start, stop, hasPrefixSpace);
        hasPrefixSpace = false;
        at = stop;
    }
}

/// Cuts [begin, end) as the pattern of cl100k does, with numbers of at most `digits` digits.
template <typename Word>
void readCl100k(const ClassReader& reader, std::size_t begin, std::size_t digits, Word word)
{
    using Seen = ClassReader::Seen;
    const std::string_view text = reader.text();
    const std::size_t end = reader.end();
    const auto isNewLine = [&](std::size_t at) { return text[at] == '\r' || text[at] == '\n'; };
    const auto runOf = [&](CharClass kind, std::size_t at) {
        for (Seen s = reader.look(at); s.size != 0 && s.kind == kind; s = reader.look(at))
            at += s.size;
        return at;
    };
    for (std::size_t at = begin; at < end;) {
        const Seen first = reader.look(at);
        std::size_t stop = at;
        if (text[at] == '\'')
            stop = at + contractionAt(text, at, end, true);
        if (stop == at && first.kind == CharClass::letter)
            stop = runOf(CharClass::letter, at + first.size);
        if (stop == at && first.kind != CharClass::number && !isNewLine(at)) {
            const std::size_t letters = runOf(CharClass::letter, at + first.size);
            if (letters > at + first.size)
                stop = letters;
        }
        if (stop == at && first.kind == CharClass::number) {
            Seen s = first;
            for (std::size_t n = 0; n < digits && s.size != 0 && s.kind == CharClass::number; ++n) {
                stop += s.size;
                s = reader.look(stop);
            }
        }
        if (stop == at) {
            const std::size_t from = text[at] == ' ' ? at + 1 : at;
            const std::size_t others = runOf(CharClass::other, from);
            if (others > from) {
                stop = others;
                while (stop < end && isNewLine(stop))
                    ++stop;
            }
        }
        if (stop == at) {
            std::size_t newLine = at; // behind the last one
            std::size_t last = at;
            for (Seen s = first; s.size != 0 && s.kind == CharClass::space; s = reader.look(stop)) {
                last = stop;
                stop += s.size;
                if (isNewLine(last))
                    newLine = stop;
            }
            if (newLine > at)
                stop = newLine;
            else if (stop != end && last != at)
                stop = last;
        }
        word(at, stop);
        at = stop;
    }
}

/// Calls `word(begin, end)` for the words of [begin, end) of a known pattern.
template <typename Word>
void readKnown(KnownPattern pattern, std::string_view text, std::size_t begin, std::size_t end,
               const CharClasses& classes, Word word)
{
    const ClassReader reader(text, end, classes);
    if (pattern == KnownPattern::gpt2)
        readGpt2(reader, begin, false,
                 [&](std::size_t from, std::size_t to, bool) { word(from, to); });
    else
        readCl100k(reader, begin, pattern == KnownPattern::cl100k ? 3 : 1, word);
}

} // namespace muster::tokenizer
