// SPDX-License-Identifier: Apache-2.0
#include "metrics/normalize.h"

#include "base/utf8.h"
#include "metrics/unicode_p.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::metrics {

namespace {

constexpr std::string_view names[] = {"squad-en/1", "zh-mixed/1", "squad-extended/1"};

bool isAsciiDigit(char c)
{
    return c >= '0' && c <= '9';
}

/// Collects tokens joined by single spaces and takes articles out again when their run of word
/// characters ends.
class TokenWriter final {
public:
    enum class Articles { Keep, Remove };

    TokenWriter(std::size_t size, Articles articles) : m_articles(articles)
    {
        m_text.reserve(size);
    }

    void space()
    {
        endRun();
        m_pendingSpace = true;
    }

    void put(char32_t c, bool isWord)
    {
        if (!isWord)
            endRun();
        if (m_pendingSpace && !m_text.empty())
            m_text.push_back(' ');
        m_pendingSpace = false;
        if (isWord && !m_inRun) {
            m_inRun = true;
            m_runStart = m_text.size();
        }
        if (c < 0x80)
            m_text.push_back(static_cast<char>(c));
        else
            utf8::append(m_text, c);
    }

    NormalizedAnswer take()
    {
        endRun();
        NormalizedAnswer answer{.text = std::move(m_text)};
        if (!answer.text.empty())
            answer.tokens = static_cast<std::uint32_t>(
                1 + std::count(answer.text.begin(), answer.text.end(), ' '));
        return answer;
    }

private:
    void endRun()
    {
        if (!m_inRun)
            return;
        m_inRun = false;
        if (m_articles == Articles::Keep || m_text.size() - m_runStart > 3)
            return;
        const std::string_view run = std::string_view(m_text).substr(m_runStart);
        if (run != "a" && run != "an" && run != "the")
            return;
        m_text.resize(m_runStart);
        if (!m_text.empty() && m_text.back() == ' ')
            m_text.pop_back();
        m_pendingSpace = true;
    }

    std::string m_text;
    std::size_t m_runStart = 0;
    bool m_inRun = false;
    bool m_pendingSpace = false;
    Articles m_articles;
};

/// What to do with a lower-cased code point.
enum class Fate { Drop, Space, Word, Other, OwnToken };

Fate fateOf(Normalizer normalizer, std::uint8_t properties, char32_t c)
{
    if ((properties & unicode::isSpace) != 0)
        return Fate::Space;
    switch (normalizer) {
    case Normalizer::SquadEn1:
        if (c < 0x80 && (properties & unicode::isPunctuation) != 0)
            return Fate::Drop;
        break;
    case Normalizer::ZhMixed1:
        if ((properties & unicode::isCjkMark) != 0)
            return Fate::Drop;
        if ((properties & unicode::isIdeograph) != 0)
            return Fate::OwnToken;
        break;
    case Normalizer::SquadExtended1:
        if ((properties & unicode::isPunctuation) != 0 || c == 0x2212)
            return Fate::Drop;
        break;
    }
    return (properties & unicode::isWord) != 0 ? Fate::Word : Fate::Other;
}

using AsciiFates = std::array<Fate, 128>;

const AsciiFates& asciiFates(Normalizer normalizer)
{
    static const auto all = [] {
        std::array<AsciiFates, std::size(names)> fates{};
        for (std::size_t n = 0; n < fates.size(); ++n)
            for (char32_t c = 0; c < 128; ++c)
                fates[n][c] = fateOf(static_cast<Normalizer>(n), unicode::properties(c), c);
        return fates;
    }();
    return all[static_cast<std::size_t>(normalizer)];
}

} // namespace

std::string_view normalizerName(Normalizer normalizer)
{
    return names[static_cast<std::size_t>(normalizer)];
}

Result<Normalizer> normalizerByName(std::string_view name)
{
    for (std::size_t n = 0; n < std::size(names); ++n)
        if (names[n] == name)
            return static_cast<Normalizer>(n);
    return fail(Error::Kind::Invalid, "E-METRICS-001",
                fmt::format("there is no normalizer named '{}'; known are {}", name,
                            fmt::join(names, ", ")));
}

NormalizedAnswer normalize(Normalizer normalizer, std::string_view text)
{
    using Articles = TokenWriter::Articles;
    TokenWriter out(text.size(),
                    normalizer == Normalizer::ZhMixed1 ? Articles::Keep : Articles::Remove);
    const AsciiFates& fates = asciiFates(normalizer);
    const auto place = [&](Fate fate, char32_t c) {
        switch (fate) {
        case Fate::Drop:
            break;
        case Fate::Space:
            out.space();
            break;
        case Fate::Word:
            out.put(c, true);
            break;
        case Fate::Other:
            out.put(c, false);
            break;
        case Fate::OwnToken:
            out.space();
            out.put(c, true);
            out.space();
            break;
        }
    };
    for (std::size_t at = 0; at < text.size();) {
        const auto byte = static_cast<unsigned char>(text[at]);
        if (byte < 0x80) {
            const bool upper = byte >= 'A' && byte <= 'Z';
            const auto c = static_cast<char32_t>(upper ? byte + ('a' - 'A') : byte);
            if (c == U'.' && normalizer == Normalizer::SquadExtended1 && at > 0 &&
                at + 1 < text.size() && isAsciiDigit(text[at - 1]) && isAsciiDigit(text[at + 1]))
                out.put(c, false);
            else
                place(fates[c], c);
            ++at;
            continue;
        }
        const utf8::Decoded d = utf8::decode(text, at);
        char32_t c = d.codePoint;
        std::uint8_t p = unicode::properties(c);
        if ((p & unicode::hasLower) != 0) {
            c = c == 0x3A3 ? (unicode::isFinalSigma(text, at) ? U'\u03C2' : U'\u03C3')
                           : unicode::toLower(c);
            p = unicode::properties(c);
        }
        place(fateOf(normalizer, p, c), c);
        if (d.codePoint == 0x130)
            place(fateOf(normalizer, unicode::properties(0x307), 0x307), 0x307);
        at += d.size;
    }
    return out.take();
}

} // namespace muster::metrics
