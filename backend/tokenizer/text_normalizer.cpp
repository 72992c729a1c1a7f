// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/text_normalizer_p.h"

#include "base/utf8.h"

#include <algorithm>

namespace muster::tokenizer {

namespace {

bool isAscii(std::string_view text)
{
    return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

class Lowercase final : public NormalizerStep {
public:
    void apply(std::vector<PlacedChar>& text, bool) const override
    {
        std::vector<PlacedChar> out;
        out.reserve(text.size());
        for (const PlacedChar& p : text) {
            const unicode::CodePointMapping* row = findMapping(unicode::lowerCase, p.codePoint);
            if (row == nullptr) {
                out.push_back(p);
                continue;
            }
            for (const char32_t part : row->to) {
                if (part != 0)
                    out.push_back({part, p.begin, p.end});
            }
        }
        text = std::move(out);
    }
    [[nodiscard]] bool keeps(std::string_view text, bool) const override
    {
        return isAscii(text) &&
               std::ranges::none_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
    }
    void addToDigest(Hasher& hasher) const override { hasher.add("lowercase"); }
};

class StripAccents final : public NormalizerStep {
public:
    void apply(std::vector<PlacedChar>& text, bool) const override
    {
        std::erase_if(text,
                      [](const PlacedChar& p) { return contains(unicode::mark, p.codePoint); });
    }
    [[nodiscard]] bool keeps(std::string_view text, bool) const override { return isAscii(text); }
    void addToDigest(Hasher& hasher) const override { hasher.add("strip accents"); }
};

/// Control characters vanish and other separators become spaces (normalizers/unicode.rs).
class Nmt final : public NormalizerStep {
public:
    void apply(std::vector<PlacedChar>& text, bool) const override
    {
        std::erase_if(text, [](const PlacedChar& p) { return vanishes(p.codePoint); });
        for (PlacedChar& p : text) {
            if (isBlank(p.codePoint))
                p.codePoint = U' ';
        }
    }
    [[nodiscard]] bool keeps(std::string_view text, bool) const override
    {
        return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7F; });
    }
    // A new line becomes a space, so that a word behind it may have a space in front.
    [[nodiscard]] bool allowsCuts() const override { return false; }
    void addToDigest(Hasher& hasher) const override { hasher.add("nmt"); }

private:
    static bool vanishes(char32_t c)
    {
        return (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F ||
               c == 0x8F || c == 0x9F;
    }
    static bool isBlank(char32_t c)
    {
        return c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
               (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
               c == 0xFEFF || c == 0xFFFD;
    }
};

class Prepend final : public NormalizerStep {
public:
    explicit Prepend(std::string prefix) : m_prefix(std::move(prefix)) {}
    void apply(std::vector<PlacedChar>& text, bool continues) const override
    {
        if (text.empty() || continues)
            return;
        std::vector<PlacedChar> prefix = placedChars(m_prefix);
        for (PlacedChar& p : prefix)
            p = {p.codePoint, text.front().begin, text.front().end};
        text.insert(text.begin(), prefix.begin(), prefix.end());
    }
    [[nodiscard]] bool keeps(std::string_view text, bool continues) const override
    {
        return text.empty() || continues || m_prefix.empty();
    }
    void addToDigest(Hasher& hasher) const override { hasher.add("prepend").add(m_prefix); }

private:
    std::string m_prefix;
};

class Replace final : public NormalizerStep {
public:
    Replace(Pattern pattern, std::string content)
        : m_pattern(std::move(pattern)), m_content(std::move(content))
    {
    }
    void apply(std::vector<PlacedChar>& text, bool) const override
    {
        const std::vector<PlacedChar> content = placedChars(m_content);
        if (!m_pattern.isRegex() && m_pattern.source().size() == 1 && content.size() == 1) {
            const auto wanted = static_cast<unsigned char>(m_pattern.source()[0]);
            for (PlacedChar& p : text) {
                if (p.codePoint == wanted)
                    p.codePoint = content[0].codePoint;
            }
            return;
        }
        std::string bytes;
        std::vector<std::uint32_t> charOf; // [bytes]
        for (std::size_t i = 0; i < text.size(); ++i) {
            char one[4];
            const std::size_t size = writeUtf8(text[i].codePoint, one);
            bytes.append(one, size);
            charOf.insert(charOf.end(), size, static_cast<std::uint32_t>(i));
        }
        std::vector<PlacedChar> out;
        out.reserve(text.size());
        m_pattern.split(bytes, [&](Pattern::Range range, bool isMatch) {
            const std::size_t last = charOf[range.end - 1];
            if (!isMatch) {
                for (std::size_t i = charOf[range.begin]; i <= last; ++i)
                    out.push_back(text[i]);
                return;
            }
            for (const PlacedChar& p : content)
                out.push_back({p.codePoint, text[last].begin, text[last].end});
        });
        text = std::move(out);
    }
    [[nodiscard]] bool keeps(std::string_view text, bool) const override
    {
        return !m_pattern.find(text, 0);
    }
    [[nodiscard]] bool allowsCuts() const override
    {
        return !m_pattern.isRegex() && m_pattern.source() == " ";
    }
    void addToDigest(Hasher& hasher) const override
    {
        hasher.add("replace").add(std::uint64_t{m_pattern.isRegex()});
        hasher.add(m_pattern.source()).add(m_content);
    }

private:
    Pattern m_pattern;
    std::string m_content;
};

class Strip final : public NormalizerStep {
public:
    Strip(bool left, bool right) : m_left(left), m_right(right) {}
    void apply(std::vector<PlacedChar>& text, bool) const override
    {
        const auto isBlank = [](const PlacedChar& p) {
            return contains(unicode::separator, p.codePoint);
        };
        if (m_right) {
            while (!text.empty() && isBlank(text.back()))
                text.pop_back();
        }
        if (m_left)
            text.erase(text.begin(), std::ranges::find_if_not(text, isBlank));
    }
    [[nodiscard]] bool keeps(std::string_view text, bool) const override
    {
        const auto isWord = [](char c) { return c > 0x20 && c < 0x7F; };
        return text.empty() || (isWord(text.front()) && isWord(text.back()));
    }
    [[nodiscard]] bool allowsCuts() const override { return false; }
    void addToDigest(Hasher& hasher) const override
    {
        hasher.add("strip").add(std::uint64_t{m_left}).add(std::uint64_t{m_right});
    }

private:
    bool m_left;
    bool m_right;
};

} // namespace

std::vector<PlacedChar> placedChars(std::string_view text)
{
    std::vector<PlacedChar> out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const utf8::Decoded d = utf8::decode(text, at);
        const auto begin = static_cast<std::uint32_t>(at);
        at += d.size;
        out.push_back({d.codePoint, begin, static_cast<std::uint32_t>(at)});
    }
    return out;
}

bool TextNormalizer::apply(std::string_view text, bool continues, NormalizedText& into) const
{
    auto step = m_steps.begin();
    while (step != m_steps.end() && (*step)->keeps(text, continues))
        ++step;
    if (step == m_steps.end())
        return false;
    std::vector<PlacedChar> placed = placedChars(text);
    for (; step != m_steps.end(); ++step)
        (*step)->apply(placed, continues);
    std::size_t bytes = 0;
    char one[4];
    for (const PlacedChar& p : placed)
        bytes += writeUtf8(p.codePoint, one);
    into.bytes.resize(bytes);
    into.begin.resize(bytes);
    into.end.resize(bytes);
    std::size_t at = 0;
    for (const PlacedChar& p : placed) {
        const std::size_t size = writeUtf8(p.codePoint, one);
        for (std::size_t i = 0; i < size; ++i, ++at) {
            into.bytes[at] = one[i];
            into.begin[at] = p.begin;
            into.end[at] = p.end;
        }
    }
    return true;
}

bool TextNormalizer::allowsCuts() const
{
    return std::ranges::all_of(m_steps, [](const auto& step) { return step->allowsCuts(); });
}

void TextNormalizer::addToDigest(Hasher& hasher) const
{
    hasher.add(std::uint64_t{m_steps.size()}).add(std::uint64_t{m_continuesBehindTokens});
    for (const auto& step : m_steps)
        step->addToDigest(hasher);
}

std::unique_ptr<const NormalizerStep> makeLowercase()
{
    return std::make_unique<Lowercase>();
}

std::unique_ptr<const NormalizerStep> makeStripAccents()
{
    return std::make_unique<StripAccents>();
}

std::unique_ptr<const NormalizerStep> makeNmt()
{
    return std::make_unique<Nmt>();
}

std::unique_ptr<const NormalizerStep> makePrepend(std::string prefix)
{
    return std::make_unique<Prepend>(std::move(prefix));
}

std::unique_ptr<const NormalizerStep> makeReplace(Pattern pattern, std::string content)
{
    return std::make_unique<Replace>(std::move(pattern), std::move(content));
}

std::unique_ptr<const NormalizerStep> makeStrip(bool left, bool right)
{
    return std::make_unique<Strip>(left, right);
}

} // namespace muster::tokenizer
