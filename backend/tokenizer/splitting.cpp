// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/splitting_p.h"

#include <array>
#include <cstring>

namespace muster::tokenizer {

namespace {

using Range = Pattern::Range;

struct Known {
    KnownPattern pattern;
    std::string_view expression;
};

constexpr std::array<Known, 3> knownPatterns{{
    {KnownPattern::gpt2,
     R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {KnownPattern::cl100k,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {KnownPattern::cl100kDigit,
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
}};

/// Folds matches and what lies between into parts, as Hugging Face's NormalizedString::split does.
class Folding final {
public:
    Folding(SplitBehavior behavior, bool isInverted, std::vector<Range>& into)
        : m_behavior(behavior), m_isInverted(isInverted), m_into(into), m_first(into.size())
    {
    }

    void add(Range range, bool isMatch)
    {
        isMatch = isMatch != m_isInverted;
        const bool hasLast = m_into.size() > m_first;
        switch (m_behavior) {
        case SplitBehavior::removed:
            if (!isMatch)
                m_into.push_back(range);
            break;
        case SplitBehavior::isolated:
            m_into.push_back(range);
            break;
        case SplitBehavior::contiguous:
            if (isMatch == m_previous && hasLast)
                m_into.back().end = range.end;
            else
                m_into.push_back(range);
            break;
        case SplitBehavior::mergedWithPrevious:
            if (isMatch && !m_previous && hasLast)
                m_into.back().end = range.end;
            else
                m_into.push_back(range);
            break;
        case SplitBehavior::mergedWithNext:
            // From the right: a match takes what follows it unless that is a match, too.
            if (m_previous && hasLast && !isMatch)
                m_into.back().end = range.end;
            else
                m_into.push_back(range);
            break;
        }
        m_previous = isMatch;
    }

private:
    SplitBehavior m_behavior;
    bool m_isInverted;
    std::vector<Range>& m_into;
    std::size_t m_first;
    bool m_previous = false;
};

/// Each code point of the set is a match of its own.
template <typename IsMatch>
void splitByCodePoint(std::string_view text, Range piece, Folding& folding, IsMatch isMatch)
{
    std::size_t done = piece.begin;
    for (std::size_t at = piece.begin; at < piece.end;) {
        const utf8::Decoded d = utf8::decode(text, at);
        const std::size_t next = at + d.size;
        if (isMatch(d.codePoint)) {
            if (done < at)
                folding.add({done, at}, false);
            folding.add({at, next}, true);
            done = next;
        }
        at = next;
    }
    if (done < piece.end)
        folding.add({done, piece.end}, false);
}

/// `\w+|[^\w\s]+`
void splitWords(std::string_view text, Range piece, Folding& folding)
{
    enum class Run : std::uint8_t { blank, word, other };
    const auto runAt = [&](std::size_t at, std::size_t& size) {
        const utf8::Decoded d = utf8::decode(text, at);
        size = d.size;
        if (contains(unicode::word, d.codePoint))
            return Run::word;
        return contains(unicode::separator, d.codePoint) ? Run::blank : Run::other;
    };
    for (std::size_t at = piece.begin; at < piece.end;) {
        std::size_t size = 0;
        const Run run = runAt(at, size);
        std::size_t stop = at + size;
        while (stop < piece.end && runAt(stop, size) == run)
            stop += size;
        folding.add({at, stop}, run != Run::blank);
        at = stop;
    }
}

} // namespace

std::string_view expressionOf(KnownPattern pattern)
{
    for (const Known& known : knownPatterns) {
        if (known.pattern == pattern)
            return known.expression;
    }
    return {};
}

std::optional<KnownPattern> knownPattern(std::string_view expression)
{
    for (const Known& known : knownPatterns) {
        if (known.expression == expression)
            return known.pattern;
    }
    return std::nullopt;
}

std::size_t contractionAt(std::string_view text, std::size_t at, std::size_t end, bool ignoresCase)
{
    const auto letterAt = [&](std::size_t place) {
        if (place >= end)
            return '\0';
        const char c = text[place];
        return ignoresCase && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 0x20) : c;
    };
    const char first = letterAt(at + 1);
    if (first == 's' || first == 't' || first == 'm' || first == 'd')
        return 2;
    const char second = letterAt(at + 2);
    if ((first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
        (first == 'l' && second == 'l'))
        return 3;
    // The long s folds to s.
    if (ignoresCase && text.substr(at + 1, std::min<std::size_t>(end - at - 1, 2)) == "\u017f")
        return 3;
    return 0;
}

void SplitStep::split(std::string_view text, Range piece, const CharClasses& classes,
                      std::vector<Range>& into) const
{
    Folding folding(behavior, isInverted, into);
    switch (kind) {
    case Kind::pattern:
        pattern.split(
            text.substr(piece.begin, piece.end - piece.begin), [&](Range range, bool isMatch) {
                folding.add({piece.begin + range.begin, piece.begin + range.end}, isMatch);
            });
        break;
    case Kind::known:
        // These patterns leave nothing between their matches.
        readKnown(known, text, piece.begin, piece.end, classes,
                  [&](std::size_t from, std::size_t to) {
                      folding.add({from, to}, true);
                  });
        break;
    case Kind::digits:
        splitByCodePoint(text, piece, folding,
                         [&](char32_t c) { return classes[c] == CharClass::number; });
        break;
    case Kind::blanks:
        splitByCodePoint(text, piece, folding,
                         [](char32_t c) { return contains(unicode::separator, c); });
        break;
    case Kind::words:
        splitWords(text, piece, folding);
        break;
    case Kind::punctuation:
        splitByCodePoint(text, piece, folding,
                         [](char32_t c) { return contains(unicode::punctuation, c); });
        break;
    }
}

void SplitStep::addToDigest(Hasher& hasher) const
{
    // A known pattern and the expression that it stands for are the same.
    const bool isKnown = kind == Kind::known;
    const bool isRegex = isKnown || (kind == Kind::pattern && pattern.isRegex());
    hasher.add(static_cast<std::uint64_t>(isKnown ? Kind::pattern : kind));
    hasher.add(static_cast<std::uint64_t>(behavior)).add(std::uint64_t{isInverted});
    hasher.add(std::uint64_t{isRegex});
    hasher.add(isKnown ? expressionOf(known) : std::string_view(pattern.source()));
}

} // namespace muster::tokenizer
