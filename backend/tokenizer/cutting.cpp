// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/cutting_p.h"

#include "base/utf8.h"

#include <algorithm>

namespace muster::tokenizer {

namespace {

bool isAsciiAlphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// Whether a white space character ends at `end`; also true when nothing valid ends there.
bool endsWithBlank(std::string_view text, std::size_t end)
{
    for (std::size_t size = 1; size <= 4 && size <= end; ++size) {
        const utf8::Decoded d = utf8::decode(text, end - size);
        if (d.valid && d.size == size)
            return contains(unicode::space, d.codePoint) ||
                   contains(unicode::separator, d.codePoint);
    }
    return true;
}

} // namespace

CutRule::CutRule()
{
    m_letters.set(unicode::letter, true);
}

void CutRule::consider(const AddedToken& token, std::string_view pattern)
{
    if (pattern.empty())
        return;
    bool reachesOver = pattern.find('\n') != std::string_view::npos;
    for (std::size_t i = 0; i + 1 < pattern.size(); ++i)
        reachesOver = reachesOver || (pattern[i + 1] == ' ' && isAsciiAlphanumeric(pattern[i]));
    // It takes the space behind a cut with it.
    reachesOver = reachesOver || (token.stripsRight && isAsciiAlphanumeric(pattern.back()));
    // It looks at the letter before a cut, and behind the cut that letter is not there.
    reachesOver = reachesOver || (token.isSingleWord && pattern.front() == ' ');
    // It takes the new line before a cut with it.
    const bool startsLikeLetter =
        isAsciiAlphanumeric(pattern.front()) || static_cast<unsigned char>(pattern.front()) >= 0x80;
    reachesOver = reachesOver || (token.stripsLeft && startsLikeLetter);
    m_isForbidden = m_isForbidden || reachesOver;
}

std::size_t CutRule::cutBefore(std::string_view text, std::size_t at) const
{
    if (m_cuts == Cuts::none || m_isForbidden || text.empty())
        return 0;
    for (at = std::min(at, text.size() - 1); at > 1; --at) {
        const char before = text[at - 1];
        if (text[at] == ' ' && isAsciiAlphanumeric(before))
            return at;
        if (before == '\n' && m_cuts == Cuts::beforeSpaceOrNewWords &&
            !endsWithBlank(text, at - 1)) {
            const utf8::Decoded d = utf8::decode(text, at);
            if (d.valid && m_letters[d.codePoint])
                return at;
        }
    }
    return 0;
}

} // namespace muster::tokenizer
