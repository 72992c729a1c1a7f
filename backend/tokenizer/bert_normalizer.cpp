// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/bert_normalizer_p.h"

#include "base/utf8.h"

namespace muster::tokenizer {

namespace {

struct Placed {
    char32_t codePoint = 0;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
};

constexpr char32_t hangulFirst = 0xAC00;
constexpr char32_t hangulLast = 0xD7A3;

bool isHangul(char32_t codePoint)
{
    return codePoint >= hangulFirst && codePoint <= hangulLast;
}

/// Calls `each` for the code points of the full canonical decomposition (Unicode 15, 3.12).
template <typename Each>
void decompose(char32_t codePoint, Each each)
{
    if (isHangul(codePoint)) {
        for (int i = 0; i < 3; ++i) {
            if (const char32_t part = hangulPart(codePoint, i))
                each(part);
        }
    } else if (const auto* row = findMapping(unicode::decomposition, codePoint)) {
        for (const char32_t part : row->to) {
            if (part != 0)
                each(part);
        }
    } else {
        each(codePoint);
    }
}

template <typename Each>
void lower(char32_t codePoint, Each each)
{
    if (codePoint < 0x80) {
        each(codePoint >= 'A' && codePoint <= 'Z' ? codePoint + 0x20 : codePoint);
    } else if (const auto* row = findMapping(unicode::lowerCase, codePoint)) {
        for (const char32_t part : row->to) {
            if (part != 0)
                each(part);
        }
    } else {
        each(codePoint);
    }
}

std::vector<Placed> clean(const std::vector<Placed>& text)
{
    std::vector<Placed> out;
    out.reserve(text.size());
    for (Placed p : text) {
        if (contains(unicode::removed, p.codePoint))
            continue;
        if (contains(unicode::blank, p.codePoint))
            p.codePoint = U' ';
        out.push_back(p);
    }
    return out;
}

std::vector<Placed> isolateChinese(const std::vector<Placed>& text)
{
    std::vector<Placed> out;
    out.reserve(text.size());
    for (const Placed& p : text) {
        const bool isChinese = contains(unicode::isolated, p.codePoint);
        if (isChinese)
            out.push_back({U' ', p.begin, p.end});
        out.push_back(p);
        if (isChinese)
            out.push_back({U' ', p.begin, p.end});
    }
    return out;
}

std::vector<Placed> stripAccents(const std::vector<Placed>& text)
{
    struct Part {
        char32_t codePoint;
        std::uint8_t combining;
        bool opensSource; // the first part of a code point of `text`
    };
    std::vector<Part> parts;
    parts.reserve(text.size());
    for (const Placed& p : text) {
        bool opensSource = true;
        decompose(p.codePoint, [&](char32_t part) {
            parts.push_back({part, combiningClassOf(part), opensSource});
            opensSource = false;
        });
    }
    for (auto at = parts.begin(); at != parts.end();) {
        if (at->combining == 0) {
            ++at;
            continue;
        }
        const auto stop = std::find_if(at, parts.end(), [](const Part& p) { return !p.combining; });
        std::stable_sort(at, stop,
                         [](const Part& a, const Part& b) { return a.combining < b.combining; });
        at = stop;
    }
    std::vector<Placed> out;
    out.reserve(parts.size());
    std::size_t consumed = 0;
    for (const Part& part : parts) {
        if (part.opensSource)
            ++consumed;
        if (contains(unicode::nonspacing, part.codePoint))
            continue;
        const Placed& place = text[consumed == 0 ? 0 : consumed - 1];
        out.push_back({part.codePoint, place.begin, place.end});
    }
    return out;
}

std::vector<Placed> lowered(const std::vector<Placed>& text)
{
    std::vector<Placed> out;
    out.reserve(text.size());
    for (const Placed& p : text)
        lower(p.codePoint, [&](char32_t part) { out.push_back({part, p.begin, p.end}); });
    return out;
}

} // namespace

NormalizedText normalize(std::string_view text, std::uint32_t offset,
                         const BertNormalization& settings)
{
    std::vector<Placed> placed;
    placed.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const utf8::Decoded d = utf8::decode(text, at);
        const auto begin = static_cast<std::uint32_t>(offset + at);
        at += d.size;
        placed.push_back({d.codePoint, begin, static_cast<std::uint32_t>(offset + at)});
    }
    if (settings.cleansText)
        placed = clean(placed);
    if (settings.isolatesChinese)
        placed = isolateChinese(placed);
    if (settings.stripsAccents)
        placed = stripAccents(placed);
    if (settings.lowers)
        placed = lowered(placed);
    NormalizedText out;
    out.bytes.reserve(placed.size());
    for (const Placed& p : placed) {
        char bytes[4];
        const std::size_t size = writeUtf8(p.codePoint, bytes);
        out.bytes.append(bytes, size);
        out.begin.insert(out.begin.end(), size, p.begin);
        out.end.insert(out.end.end(), size, p.end);
    }
    return out;
}

BertCodePoints::BertCodePoints(const BertNormalization& settings)
{
    using Action = CodePointAction;
    const auto plain = [](Action action) { return static_cast<std::uint32_t>(action); };
    std::vector<ReplacementPart> scratch;
    // What stands for itself after normalisation is set in bulk, what changes one by one.
    m_entries.set(unicode::punctuation, plain(Action::alone));
    m_entries.set(unicode::separator, plain(Action::space));
    if (settings.isolatesChinese)
        m_entries.set(unicode::isolated, plain(Action::alone));
    if (settings.stripsAccents) {
        for (const unicode::CombiningRange& range : unicode::combiningClass)
            m_entries.set(unicode::CodePointRange{range.first, range.last}, plain(Action::reorder));
        m_entries.set(unicode::nonspacing, plain(Action::drop));
        for (const unicode::CodePointMapping& row : unicode::decomposition)
            add(row.from, settings, scratch);
        m_entries.set(unicode::CodePointRange{hangulFirst, hangulLast}, plain(Action::hangul));
    }
    if (settings.lowers) {
        for (const unicode::CodePointMapping& row : unicode::lowerCase)
            add(row.from, settings, scratch);
    }
    if (settings.cleansText) {
        m_entries.set(unicode::removed, plain(Action::drop));
        m_entries.set(unicode::blank, plain(Action::space));
    }
}

void BertCodePoints::add(char32_t codePoint, const BertNormalization& settings,
                         std::vector<ReplacementPart>& parts)
{
    parts.clear();
    const bool isIsolated = settings.isolatesChinese && contains(unicode::isolated, codePoint);
    bool reorders = false;
    const auto put = [&](char32_t c) {
        ReplacementPart part;
        part.size = static_cast<std::uint8_t>(writeUtf8(c, part.bytes));
        if (contains(unicode::separator, c))
            part.role = ReplacementPart::Role::space;
        else if (isIsolated || contains(unicode::punctuation, c))
            part.role = ReplacementPart::Role::alone;
        parts.push_back(part);
    };
    const auto finish = [&](char32_t c) {
        if (settings.lowers)
            lower(c, put);
        else
            put(c);
    };
    if (settings.stripsAccents) {
        decompose(codePoint, [&](char32_t c) {
            if (contains(unicode::nonspacing, c))
                return;
            reorders = reorders || combiningClassOf(c) != 0;
            finish(c);
        });
    } else {
        finish(codePoint);
    }
    std::uint32_t entry = static_cast<std::uint32_t>(CodePointAction::replace);
    if (reorders)
        entry = static_cast<std::uint32_t>(CodePointAction::reorder);
    else if (parts.empty())
        entry = static_cast<std::uint32_t>(CodePointAction::drop);
    else
        entry |= static_cast<std::uint32_t>(parts.size() << 3U | m_parts.size() << 6U);
    m_entries.set(codePoint, entry);
    m_parts.insert(m_parts.end(), parts.begin(), parts.end());
}

} // namespace muster::tokenizer
