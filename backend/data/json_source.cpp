// SPDX-License-Identifier: Apache-2.0
#include "data/json_source_p.h"

#include <fmt/format.h>
#include <utility>

#include <algorithm>
#include <array>
#include <cstdint>

namespace muster::data {

namespace {

constexpr std::size_t tableSize = 256;

/// Bytes at which the scan of a string has something to decide.
constexpr std::array<bool, tableSize> makeStringStops()
{
    std::array<bool, tableSize> stops{};
    for (std::size_t c = 0; c < 0x20; ++c)
        stops[c] = true;
    stops['"'] = true;
    stops['\\'] = true;
    return stops;
}

constexpr std::array<bool, tableSize> stringStops = makeStringStops();

bool isSpace(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool isDigit(char c)
{
    return c >= '0' && c <= '9';
}

std::optional<std::uint32_t> hex4(std::string_view text)
{
    if (text.size() < 4)
        return std::nullopt;
    std::uint32_t value = 0;
    for (const char c : text.substr(0, 4)) {
        std::uint32_t digit = 0;
        if (isDigit(c))
            digit = static_cast<std::uint32_t>(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = static_cast<std::uint32_t>(c - 'a' + 10);
        else if (c >= 'A' && c <= 'F')
            digit = static_cast<std::uint32_t>(c - 'A' + 10);
        else
            return std::nullopt;
        value = value * 16 + digit;
    }
    return value;
}

} // namespace

std::string JsonSource::place(std::size_t offset) const
{
    const std::string_view before = text.substr(0, std::min(offset, text.size()));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t newline = before.rfind('\n');
    std::string_view row = newline == std::string_view::npos ? before : before.substr(newline + 1);
    if (newline == std::string_view::npos && row.substr(0, 3) == "\xEF\xBB\xBF")
        row.remove_prefix(3);
    const auto startsCodePoint = [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    };
    const auto column = std::count_if(row.begin(), row.end(), startsCodePoint) + 1;
    return fmt::format("{}:{}:{}", name, line, column);
}

void JsonScanner::skipSpace()
{
    while (m_at < m_text.size() && isSpace(m_text[m_at]))
        ++m_at;
}

JsonScanner::Fault JsonScanner::skipString()
{
    ++m_at;
    while (m_at < m_text.size()) {
        const auto c = static_cast<unsigned char>(m_text[m_at]);
        if (!stringStops[c]) {
            ++m_at;
        } else if (c == '"') {
            ++m_at;
            return Fault::None;
        } else if (c == '\\') {
            m_at += 2;
        } else {
            return Fault::Control;
        }
    }
    m_at = m_text.size();
    return Fault::Truncated;
}

JsonScanner::Fault JsonScanner::skipValue()
{
    std::size_t depth = 0;
    while (m_at < m_text.size()) {
        switch (m_text[m_at]) {
        case '"':
            if (const Fault fault = skipString(); fault != Fault::None)
                return fault;
            if (depth == 0)
                return Fault::None;
            break;
        case '{':
        case '[':
            if (++depth > depthLimit)
                return Fault::TooDeep;
            ++m_at;
            break;
        case '}':
        case ']':
            if (depth == 0)
                return Fault::None;
            ++m_at;
            if (--depth == 0)
                return Fault::None;
            break;
        case ',':
        case ':':
        case ' ':
        case '\t':
        case '\r':
        case '\n':
            if (depth == 0)
                return Fault::None;
            ++m_at;
            break;
        default:
            ++m_at;
        }
    }
    return Fault::Truncated;
}

std::optional<EscapeFault> findBadEscape(std::string_view inside)
{
    std::size_t at = 0;
    while ((at = inside.find('\\', at)) != std::string_view::npos) {
        const char kind = at + 1 < inside.size() ? inside[at + 1] : '\0';
        if (kind != 'u') {
            if (kind == '\0' || std::string_view("\"\\/bfnrt").find(kind) == std::string_view::npos)
                return EscapeFault{at, false};
            at += 2;
            continue;
        }
        const auto unit = hex4(inside.substr(at + 2));
        if (!unit)
            return EscapeFault{at, false};
        if (*unit >= 0xDC00 && *unit <= 0xDFFF)
            return EscapeFault{at, true};
        if (*unit >= 0xD800 && *unit <= 0xDBFF) {
            const std::string_view next = inside.substr(at + 6);
            if (next.substr(0, 2) != "\\u")
                return EscapeFault{at, true};
            const auto low = hex4(next.substr(2));
            if (!low)
                return EscapeFault{at + 6, false};
            if (*low < 0xDC00 || *low > 0xDFFF)
                return EscapeFault{at, true};
            at += 6;
        }
        at += 6;
    }
    return std::nullopt;
}

bool isJsonNumber(std::string_view text)
{
    std::size_t at = 0;
    const auto digits = [&] {
        const std::size_t from = at;
        while (at < text.size() && isDigit(text[at]))
            ++at;
        return at > from;
    };
    if (at < text.size() && text[at] == '-')
        ++at;
    if (at < text.size() && text[at] == '0')
        ++at;
    else if (!digits())
        return false;
    if (at < text.size() && text[at] == '.') {
        ++at;
        if (!digits())
            return false;
    }
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
        ++at;
        if (at < text.size() && (text[at] == '+' || text[at] == '-'))
            ++at;
        if (!digits())
            return false;
    }
    return at == text.size();
}

Result<MappedSources> mapSources(std::span<const std::filesystem::path> files)
{
    MappedSources mapped;
    for (const std::filesystem::path& file : files) {
        auto opened = MappedFile::open(file);
        if (!opened)
            return fail(std::move(opened).error());
        mapped.files.push_back(std::move(*opened));
        mapped.sources.push_back(JsonSource{file.string(), mapped.files.back().text()});
    }
    return mapped;
}

std::vector<JsonSource> sourcesOf(std::span<const NamedText> texts)
{
    std::vector<JsonSource> sources;
    for (const NamedText& text : texts)
        sources.push_back(JsonSource{text.name, text.text});
    return sources;
}

} // namespace muster::data
