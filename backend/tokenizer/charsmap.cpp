// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/charsmap_p.h"

#include "base/utf8.h"

#include <array>

namespace muster::tokenizer {

namespace {

bool hasLeaf(std::uint32_t unit)
{
    return (unit >> 8U & 1U) != 0;
}

std::uint32_t valueOf(std::uint32_t unit)
{
    return unit & 0x7FFFFFFFU;
}

std::uint32_t labelOf(std::uint32_t unit)
{
    return unit & 0x800000FFU;
}

std::uint32_t offsetOf(std::uint32_t unit)
{
    return unit >> 10U << ((unit & (1U << 9U)) >> 6U);
}

std::uint32_t word(std::string_view blob, std::size_t at)
{
    std::uint32_t value = 0;
    for (unsigned i = 0; i < 4; ++i)
        value |= std::uint32_t{static_cast<unsigned char>(blob[at + i])} << (8 * i);
    return value;
}

} // namespace

Result<Charsmap> Charsmap::parse(std::string_view blob)
{
    const auto bad = [](const char* why) {
        return fail(Error::Kind::Invalid, "E-TOK-011",
                    std::string("the precompiled charsmap is broken: ") + why);
    };
    Charsmap map;
    if (blob.empty())
        return map;
    if (blob.size() < 4)
        return bad("it is shorter than its header");
    const std::size_t trieBytes = word(blob, 0);
    if (trieBytes % 4 != 0 || trieBytes == 0 || trieBytes > blob.size() - 4)
        return bad("the size of its trie is not that of the data");
    map.m_units.reserve(trieBytes / 4);
    for (std::size_t at = 4; at < 4 + trieBytes; at += 4)
        map.m_units.push_back(word(blob, at));
    map.m_replacements = std::string(blob.substr(4 + trieBytes));
    if (utf8::firstInvalid(map.m_replacements))
        return bad("a replacement is not UTF-8");
    map.m_blob = std::string(blob);
    return map;
}

template <typename Each>
void Charsmap::visit(std::string_view text, Each each) const
{
    if (m_units.empty())
        return;
    std::size_t node = offsetOf(m_units[0]);
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        node ^= byte;
        if (byte == 0 || node >= m_units.size() || labelOf(m_units[node]) != byte)
            return;
        const std::uint32_t unit = m_units[node];
        node ^= offsetOf(unit);
        if (!hasLeaf(unit))
            continue;
        if (node >= m_units.size())
            return;
        const std::size_t start = valueOf(m_units[node]);
        if (start > m_replacements.size())
            return;
        const std::size_t stop = std::min(m_replacements.find('\0', start), m_replacements.size());
        const std::string_view replacement =
            std::string_view(m_replacements).substr(start, stop - start);
        // A place inside a code point is not one that a sound file names.
        if (utf8::firstInvalid(replacement))
            return;
        if (!each(Match{i + 1, replacement}))
            return;
    }
}

std::optional<Charsmap::Match> Charsmap::shortest(std::string_view text) const
{
    std::optional<Match> found;
    visit(text, [&](const Match& match) {
        found = match;
        return false;
    });
    return found;
}

std::optional<Charsmap::Match> Charsmap::longest(std::string_view text) const
{
    std::optional<Match> found;
    visit(text, [&](const Match& match) {
        found = match;
        return true;
    });
    return found;
}

bool Charsmap::hasInnerSpace() const
{
    // Which unit belongs to which node is not written down; a unit with the label of a space that
    // fits some node with children counts, except below the root.
    if (m_units.empty())
        return false;
    const std::size_t root = offsetOf(m_units[0]);
    std::vector<std::size_t> open{root};
    std::vector<bool> seen(m_units.size(), false);
    while (!open.empty()) {
        const std::size_t base = open.back();
        open.pop_back();
        for (std::uint32_t byte = 1; byte < 256; ++byte) {
            const std::size_t child = base ^ byte;
            if (child >= m_units.size() || labelOf(m_units[child]) != byte || seen[child])
                continue;
            if (byte == ' ' && base != root)
                return true;
            seen[child] = true;
            open.push_back(child ^ offsetOf(m_units[child]));
        }
    }
    return false;
}

std::optional<std::string> fromBase64(std::string_view text)
{
    static constexpr auto values = [] {
        std::array<std::int8_t, 256> table{};
        table.fill(-1);
        constexpr std::string_view digits =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        for (std::size_t i = 0; i < digits.size(); ++i)
            table[static_cast<unsigned char>(digits[i])] = static_cast<std::int8_t>(i);
        return table;
    }();
    std::size_t size = text.size();
    if (size % 4 != 0)
        return std::nullopt;
    while (size > 0 && text.size() - size < 2 && text[size - 1] == '=')
        --size;
    std::string out;
    out.reserve(size / 4 * 3 + 3);
    std::uint32_t bits = 0;
    unsigned count = 0;
    for (std::size_t i = 0; i < size; ++i) {
        const int value = values[static_cast<unsigned char>(text[i])];
        if (value < 0)
            return std::nullopt;
        bits = bits << 6U | static_cast<std::uint32_t>(value);
        count += 6;
        if (count >= 8) {
            count -= 8;
            out.push_back(static_cast<char>(bits >> count & 0xFFU));
        }
    }
    return out;
}

} // namespace muster::tokenizer
