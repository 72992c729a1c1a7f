// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <cstring>

namespace muster::utf8 {

Decoded decode(std::string_view text, std::size_t at)
{
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(at);
    if (lead < 0x80)
        return {lead, 1, true};
    std::size_t size = 0;
    char32_t value = 0;
    char32_t lowest = 0;
    if (lead >= 0xC2 && lead <= 0xDF) {
        size = 2;
        value = lead & 0x1FU;
        lowest = 0x80;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
        size = 3;
        value = lead & 0x0FU;
        lowest = 0x800;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        size = 4;
        value = lead & 0x07U;
        lowest = 0x10000;
    } else {
        return {};
    }
    if (text.size() - at < size)
        return {};
    for (std::size_t i = 1; i < size; ++i) {
        const unsigned char next = byte(at + i);
        if ((next & 0xC0U) != 0x80)
            return {};
        value = (value << 6U) | (next & 0x3FU);
    }
    if (value < lowest || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
        return {};
    return {value, size, true};
}

void append(std::string& text, char32_t codePoint)
{
    if (codePoint > 0x10FFFF || (codePoint >= 0xD800 && codePoint <= 0xDFFF))
        codePoint = 0xFFFD;
    const auto put = [&](char32_t bits) { text.push_back(static_cast<char>(bits)); };
    if (codePoint < 0x80) {
        put(codePoint);
    } else if (codePoint < 0x800) {
        put(0xC0U | (codePoint >> 6U));
        put(0x80U | (codePoint & 0x3FU));
    } else if (codePoint < 0x10000) {
        put(0xE0U | (codePoint >> 12U));
        put(0x80U | ((codePoint >> 6U) & 0x3FU));
        put(0x80U | (codePoint & 0x3FU));
    } else {
        put(0xF0U | (codePoint >> 18U));
        put(0x80U | ((codePoint >> 12U) & 0x3FU));
        put(0x80U | ((codePoint >> 6U) & 0x3FU));
        put(0x80U | (codePoint & 0x3FU));
    }
}

std::optional<std::size_t> firstInvalid(std::string_view text)
{
    std::size_t at = 0;
    while (at < text.size()) {
        // Eight ASCII bytes at once.
        if (text.size() - at >= 8) {
            unsigned long long word = 0;
            std::memcpy(&word, text.data() + at, 8);
            if ((word & 0x8080808080808080ULL) == 0) {
                at += 8;
                continue;
            }
        }
        const Decoded d = decode(text, at);
        if (!d.valid)
            return at;
        at += d.size;
    }
    return std::nullopt;
}

std::size_t length(std::string_view text)
{
    std::size_t count = 0;
    for (std::size_t at = 0; at < text.size(); at += decode(text, at).size)
        ++count;
    return count;
}

std::vector<std::size_t> codePointOffsets(std::string_view text)
{
    std::vector<std::size_t> offsets;
    offsets.reserve(text.size() + 1);
    for (std::size_t at = 0; at < text.size(); at += decode(text, at).size)
        offsets.push_back(at);
    offsets.push_back(text.size());
    return offsets;
}

std::optional<std::size_t> byteOffset(std::string_view text, std::size_t index)
{
    std::size_t at = 0;
    for (; index > 0; --index) {
        if (at >= text.size())
            return std::nullopt;
        at += decode(text, at).size;
    }
    return at;
}

std::string repaired(std::string_view text)
{
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const Decoded d = decode(text, at);
        if (d.valid)
            out.append(text.substr(at, d.size));
        else
            append(out, 0xFFFD);
        at += d.size;
    }
    return out;
}

} // namespace muster::utf8
