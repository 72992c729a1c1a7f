// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/staged_tokenizer_p.h"

#include "base/utf8.h"

namespace muster::tokenizer {

StagedTokenizer::StagedTokenizer(Description described, TextNormalizer normalizer)
    : DescribedTokenizer(std::move(described)), m_normalizer(std::move(normalizer))
{
    std::vector<AddedToken> byWay[2];
    std::vector<std::string> patterns[2];
    for (const AddedToken& token : description().addedTokens) {
        const std::size_t way = token.isNormalized ? 1 : 0;
        NormalizedText normalized;
        const bool isChanged =
            token.isNormalized && m_normalizer.apply(token.content, false, normalized);
        byWay[way].push_back(token);
        patterns[way].push_back(isChanged ? normalized.bytes : token.content);
        m_cuts.consider(token, token.content);
        m_cuts.consider(token, patterns[way].back());
    }
    m_rawTokens = AddedTokenMatcher(std::move(byWay[0]), patterns[0]);
    m_normalizedTokens = AddedTokenMatcher(std::move(byWay[1]), patterns[1]);
}

void StagedTokenizer::finish(std::string_view, bool, TokenSink&) const
{
}

void StagedTokenizer::encode(std::string_view text, Encoding& into) const
{
    encodeAny(text, false, into);
}

void StagedTokenizer::encodeContinuation(std::string_view text, Encoding& into) const
{
    encodeAny(text, true, into);
}

void StagedTokenizer::encodeAny(std::string_view text, bool continues, Encoding& into) const
{
    text = text.substr(0, maxTextBytes);
    if (!utf8::firstInvalid(text)) {
        TokenSink sink(into, text.size() / 3 + 16);
        encodeValid(text, continues, sink);
        return;
    }
    // The repaired text is longer; its offsets are mapped back, so that a token covers the broken
    // byte that became its U+FFFD.
    std::string repaired;
    std::vector<std::uint32_t> begin;
    std::vector<std::uint32_t> end;
    for (std::size_t at = 0; at < text.size();) {
        const utf8::Decoded d = utf8::decode(text, at);
        char bytes[4];
        const std::size_t size = writeUtf8(d.codePoint, bytes);
        repaired.append(bytes, size);
        for (std::size_t i = 0; i < size; ++i) {
            begin.push_back(static_cast<std::uint32_t>(d.valid ? at + i : at));
            end.push_back(static_cast<std::uint32_t>(d.valid ? at + i + 1 : at + 1));
        }
        at += d.size;
    }
    begin.push_back(static_cast<std::uint32_t>(text.size()));
    {
        TokenSink sink(into, repaired.size() / 3 + 16);
        encodeValid(repaired, continues, sink);
    }
    for (std::size_t i = 0; i < into.size(); ++i) {
        const std::uint32_t from = into.begin[i];
        const std::uint32_t to = into.end[i];
        into.begin[i] = begin[from];
        into.end[i] = to > from ? end[to - 1] : begin[from];
    }
}

void StagedTokenizer::encodeValid(std::string_view text, bool continues, TokenSink& sink) const
{
    const SpacePool::Loan space(m_spaces);
    const auto put = [&](const AddedTokenMatcher::Part& part, std::size_t shift) {
        sink.put(*part.id, static_cast<std::uint32_t>(shift + part.begin),
                 static_cast<std::uint32_t>(shift + part.end));
    };
    m_rawTokens.split(text, [&](const AddedTokenMatcher::Part& outer) {
        if (outer.id) {
            put(outer, 0);
            return;
        }
        const std::string_view between = text.substr(outer.begin, outer.end - outer.begin);
        const bool goesOn = outer.begin == 0 ? continues : m_normalizer.continuesBehindTokens();
        NormalizedText normalized;
        if (!m_normalizer.apply(between, goesOn, normalized)) {
            m_normalizedTokens.split(between, [&](const AddedTokenMatcher::Part& inner) {
                if (inner.id) {
                    put(inner, outer.begin);
                    return;
                }
                const std::size_t begin = outer.begin + inner.begin;
                encodePart({text, begin, outer.begin + inner.end, begin == 0 && !continues,
                            begin == 0 && continues},
                           *space, sink);
            });
            return;
        }
        const std::string_view bytes = normalized.bytes;
        const std::size_t first = sink.count();
        m_normalizedTokens.split(bytes, [&](const AddedTokenMatcher::Part& inner) {
            if (inner.id) {
                put(inner, 0);
                return;
            }
            const bool isFirst = outer.begin + normalized.begin[inner.begin] == 0;
            encodePart({bytes, inner.begin, inner.end, isFirst && !continues, isFirst && continues},
                       *space, sink);
        });
        sink.place(first, [&](std::uint32_t& begin, std::uint32_t& end) {
            const std::uint32_t from = begin;
            begin = from < bytes.size() ? normalized.begin[from]
                                        : static_cast<std::uint32_t>(between.size());
            end = end > from ? std::max(begin, normalized.end[end - 1]) : begin;
            begin += static_cast<std::uint32_t>(outer.begin);
            end += static_cast<std::uint32_t>(outer.begin);
        });
    });
    finish(text, continues, sink);
}

} // namespace muster::tokenizer
