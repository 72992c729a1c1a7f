// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/unicode_tables_p.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace muster::tokenizer {

/// A value for every code point, in blocks of 256; blocks of one value everywhere are shared.
template <typename Value>
class CodePointTable final {
public:
    explicit CodePointTable(Value everywhere = Value{}) : m_blockOf(blockCount, 0)
    {
        newBlock(Sharing::shared, everywhere);
    }

    /// \param codePoint  at most U+10FFFF
    [[nodiscard]] Value operator[](char32_t codePoint) const
    {
        return m_values[(std::size_t{m_blockOf[codePoint >> 8U]} << 8U) | (codePoint & 0xFFU)];
    }

    void set(char32_t codePoint, Value value)
    {
        const std::size_t block = codePoint >> 8U;
        if (m_sharing[m_blockOf[block]] == Sharing::shared) {
            const std::size_t from = std::size_t{m_blockOf[block]} * blockSize;
            const std::uint16_t fresh = newBlock(Sharing::own, Value{});
            std::copy_n(m_values.begin() + static_cast<std::ptrdiff_t>(from), blockSize,
                        m_values.begin() + static_cast<std::ptrdiff_t>(fresh * blockSize));
            m_blockOf[block] = fresh;
        }
        m_values[std::size_t{m_blockOf[block]} * blockSize + (codePoint & 0xFFU)] = value;
    }

    void set(const unicode::CodePointRange& range, Value value)
    {
        std::uint16_t whole = 0;
        for (char32_t at = range.first; at <= range.last;) {
            if ((at & 0xFFU) == 0 && range.last - at >= 0xFFU) {
                if (whole == 0)
                    whole = newBlock(Sharing::shared, value);
                m_blockOf[at >> 8U] = whole;
                at += blockSize;
            } else {
                set(at++, value);
            }
        }
    }

    void set(std::span<const unicode::CodePointRange> ranges, Value value)
    {
        for (const unicode::CodePointRange& range : ranges)
            set(range, value);
    }

private:
    enum class Sharing : std::uint8_t { own, shared };
    static constexpr std::size_t blockSize = 256;
    static constexpr std::size_t blockCount = 0x1100;

    std::uint16_t newBlock(Sharing sharing, Value value)
    {
        m_values.resize(m_values.size() + blockSize, value);
        m_sharing.push_back(sharing);
        return static_cast<std::uint16_t>(m_sharing.size() - 1);
    }

    std::vector<std::uint16_t> m_blockOf;
    std::vector<Value> m_values;
    std::vector<Sharing> m_sharing;
};

/// Whether a sorted table of ranges has the code point.
[[nodiscard]] inline bool contains(std::span<const unicode::CodePointRange> ranges,
                                   char32_t codePoint)
{
    const auto next = std::ranges::upper_bound(ranges, codePoint, {},
                                               [](const auto& range) { return range.first; });
    return next != ranges.begin() && codePoint <= std::prev(next)->last;
}

/// The row of a code point in a sorted table of mappings; null when it maps to itself.
[[nodiscard]] inline const unicode::CodePointMapping*
findMapping(std::span<const unicode::CodePointMapping> rows, char32_t codePoint)
{
    const auto row =
        std::ranges::lower_bound(rows, codePoint, {}, &unicode::CodePointMapping::from);
    return row != rows.end() && row->from == codePoint ? &*row : nullptr;
}

/// Canonical combining class; 0 for a starter.
[[nodiscard]] inline std::uint8_t combiningClassOf(char32_t codePoint)
{
    const auto rows = unicode::combiningClass;
    const auto next =
        std::ranges::upper_bound(rows, codePoint, {}, &unicode::CombiningRange::first);
    if (next == rows.begin() || codePoint > std::prev(next)->last)
        return 0;
    return std::prev(next)->value;
}

/// Writes the UTF-8 form of a valid code point; returns its 1 to 4 bytes.
inline std::size_t writeUtf8(char32_t codePoint, char* to)
{
    const auto put = [&](std::size_t at, char32_t bits) { to[at] = static_cast<char>(bits); };
    if (codePoint < 0x80) {
        put(0, codePoint);
        return 1;
    }
    if (codePoint < 0x800) {
        put(0, 0xC0U | (codePoint >> 6U));
        put(1, 0x80U | (codePoint & 0x3FU));
        return 2;
    }
    if (codePoint < 0x10000) {
        put(0, 0xE0U | (codePoint >> 12U));
        put(1, 0x80U | ((codePoint >> 6U) & 0x3FU));
        put(2, 0x80U | (codePoint & 0x3FU));
        return 3;
    }
    put(0, 0xF0U | (codePoint >> 18U));
    put(1, 0x80U | ((codePoint >> 12U) & 0x3FU));
    put(2, 0x80U | ((codePoint >> 6U) & 0x3FU));
    put(3, 0x80U | (codePoint & 0x3FU));
    return 4;
}

} // namespace muster::tokenizer
