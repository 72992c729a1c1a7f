// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/added_tokens_p.h"

#include "base/utf8.h"
#include "tokenizer/code_points_p.h"

#include <cstring>

namespace muster::tokenizer {

namespace {

unsigned char byteAt(std::string_view text, std::size_t at)
{
    return static_cast<unsigned char>(text[at]);
}

/// Position of the code point that ends at `end` (> 0).
std::size_t previous(std::string_view text, std::size_t end)
{
    for (std::size_t size = 1; size <= 4 && size <= end; ++size) {
        const utf8::Decoded d = utf8::decode(text, end - size);
        if (d.valid && d.size == size)
            return end - size;
    }
    return end - 1;
}

} // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens,
                                     const std::vector<std::string>& patterns)
    : m_tokens(std::move(tokens)), m_tokenOf(1, -1)
{
    for (std::size_t i = 0; i < m_tokens.size(); ++i) {
        const std::string& pattern = patterns[i];
        if (pattern.empty())
            continue;
        std::uint32_t node = 0;
        for (std::size_t at = 0; at < pattern.size(); ++at) {
            const std::uint64_t key = std::uint64_t{node} << 8U | byteAt(pattern, at);
            const auto [edge, isNew] =
                m_edges.try_emplace(key, static_cast<std::uint32_t>(m_tokenOf.size()));
            if (isNew)
                m_tokenOf.push_back(-1);
            node = edge->second;
        }
        if (m_tokenOf[node] < 0)
            m_tokenOf[node] = static_cast<std::int32_t>(i);
        const unsigned char first = byteAt(pattern, 0);
        m_onlyStart = m_onlyStart == -1 || m_onlyStart == first ? first : -2;
        m_starts[first] = true;
    }
}

std::size_t AddedTokenMatcher::candidate(std::string_view text, std::size_t from) const
{
    if (from >= text.size() || m_onlyStart == -1)
        return text.size();
    if (m_onlyStart >= 0) {
        const void* hit = std::memchr(text.data() + from, m_onlyStart, text.size() - from);
        return hit == nullptr
                   ? text.size()
                   : static_cast<std::size_t>(static_cast<const char*>(hit) - text.data());
    }
    while (from < text.size() && !m_starts[byteAt(text, from)])
        ++from;
    return from;
}

AddedTokenMatcher::Match AddedTokenMatcher::matchAt(std::string_view text, std::size_t at) const
{
    Match best;
    std::uint32_t node = 0;
    for (std::size_t i = at; i < text.size(); ++i) {
        const auto edge = m_edges.find(std::uint64_t{node} << 8U | byteAt(text, i));
        if (edge == m_edges.end())
            break;
        node = edge->second;
        if (m_tokenOf[node] >= 0)
            best = {&m_tokens[static_cast<std::size_t>(m_tokenOf[node])], i + 1 - at};
    }
    return best;
}

bool AddedTokenMatcher::accept(std::string_view text, const AddedToken& token, std::size_t done,
                               std::size_t& begin, std::size_t& end)
{
    if (token.isSingleWord) {
        const bool joinsLeft =
            begin > 0 &&
            contains(unicode::word, utf8::decode(text, previous(text, begin)).codePoint);
        const bool joinsRight =
            end < text.size() && contains(unicode::word, utf8::decode(text, end).codePoint);
        if (joinsLeft || joinsRight)
            return false;
    }
    if (token.stripsLeft) {
        std::size_t at = begin;
        while (at > 0) {
            const std::size_t before = previous(text, at);
            if (!contains(unicode::separator, utf8::decode(text, before).codePoint))
                break;
            at = before;
        }
        begin = std::max(at, done);
    }
    if (token.stripsRight) {
        while (end < text.size()) {
            const utf8::Decoded d = utf8::decode(text, end);
            if (!contains(unicode::separator, d.codePoint))
                break;
            end += d.size;
        }
    }
    return true;
}

} // namespace muster::tokenizer
