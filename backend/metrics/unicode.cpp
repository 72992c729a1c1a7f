// SPDX-License-Identifier: Apache-2.0
#include "metrics/unicode_p.h"

#include "base/utf8.h"
#include "metrics/unicode_tables_p.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <span>
#include <vector>

namespace muster::metrics::unicode {

namespace {

constexpr std::size_t blockBits = 7;
constexpr std::size_t blockSize = std::size_t{1} << blockBits;
constexpr std::size_t codePoints = 0x110000;

// Han, kana, bopomofo, with their extensions and compatibility forms (blocks of Unicode 15).
constexpr tables::Range ideographs[] = {
    {0x2E80, 0x2FD5}, {0x3005, 0x3007},   {0x3021, 0x3029},   {0x3031, 0x3035},  {0x3038, 0x303C},
    {0x3041, 0x3096}, {0x309D, 0x309F},   {0x30A1, 0x30FA},   {0x30FC, 0x30FF},  {0x3105, 0x312F},
    {0x31A0, 0x31BF}, {0x31F0, 0x31FF},   {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},  {0xF900, 0xFAFF},
    {0xFF66, 0xFF9F}, {0x1B000, 0x1B16F}, {0x20000, 0x2FA1F}, {0x30000, 0x323AF}};

constexpr tables::Range cjkMarks[] = {
    {0xA7, 0xA7},     {0xB7, 0xB7},     {0xD7, 0xD7},     {0x2010, 0x2027}, {0x2030, 0x205E},
    {0x2212, 0x2212}, {0x22EF, 0x22EF}, {0x2500, 0x2501}, {0x3001, 0x3003}, {0x3008, 0x3011},
    {0x3014, 0x301F}, {0x3030, 0x3030}, {0x303D, 0x303D}, {0x30A0, 0x30A0}, {0x30FB, 0x30FB},
    {0xFE10, 0xFE19}, {0xFE30, 0xFE4F}, {0xFE50, 0xFE6B}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF20},
    {0xFF3B, 0xFF40}, {0xFF5B, 0xFF65}};

class PropertyTable final {
public:
    PropertyTable()
    {
        std::vector<std::uint8_t> flat(codePoints, 0);
        paint(flat, tables::word, isWord);
        paint(flat, tables::space, isSpace);
        paint(flat, tables::cased, isCased);
        paint(flat, tables::caseIgnorable, isCaseIgnorable);
        paint(flat, tables::punctuation, isPunctuation);
        paint(flat, ideographs, isIdeograph);
        paint(flat, cjkMarks, isCjkMark);
        for (const auto& run : tables::lowerRuns)
            for (char32_t c = run.first; c <= run.last; c += run.step)
                flat[c] |= hasLower;
        flat[0x130] |= hasLower;
        for (char32_t c = 0x21; c < 0x7F; ++c) {
            const bool letter = (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z');
            const bool digit = c >= U'0' && c <= U'9';
            flat[c] |=
                static_cast<std::uint8_t>(letter || digit ? isWord : isPunctuation | isCjkMark);
        }
        flat[U'_'] |= isWord;

        std::map<std::vector<std::uint8_t>, std::uint16_t> known;
        for (std::size_t block = 0; block < m_index.size(); ++block) {
            const auto from = flat.begin() + static_cast<std::ptrdiff_t>(block * blockSize);
            std::vector<std::uint8_t> content(from, from + static_cast<std::ptrdiff_t>(blockSize));
            const auto next = static_cast<std::uint16_t>(known.size());
            const auto [entry, isNew] = known.emplace(content, next);
            if (isNew)
                m_blocks.insert(m_blocks.end(), content.begin(), content.end());
            m_index[block] = entry->second;
        }
    }

    [[nodiscard]] std::uint8_t at(char32_t c) const
    {
        return m_blocks[(std::size_t{m_index[c >> blockBits]} << blockBits) |
                        (c & (blockSize - 1))];
    }

private:
    static void paint(std::vector<std::uint8_t>& flat, std::span<const tables::Range> ranges,
                      std::uint8_t bit)
    {
        for (const auto& range : ranges)
            for (char32_t c = range.first; c <= range.last; ++c)
                flat[c] |= bit;
    }

    std::array<std::uint16_t, codePoints / blockSize> m_index{};
    std::vector<std::uint8_t> m_blocks;
};

const PropertyTable& table()
{
    static const PropertyTable only;
    return only;
}

/// Start of the code point before byte `at` (> 0) of valid or repaired text.
std::size_t previousStart(std::string_view text, std::size_t at)
{
    for (std::size_t back = 1; back <= 4 && back <= at; ++back) {
        const utf8::Decoded d = utf8::decode(text, at - back);
        if (d.valid && d.size == back)
            return at - back;
    }
    return at - 1;
}

} // namespace

std::uint8_t properties(char32_t codePoint)
{
    return codePoint < codePoints ? table().at(codePoint) : std::uint8_t{0};
}

char32_t toLower(char32_t codePoint)
{
    if (codePoint == 0x130)
        return U'i';
    const auto* const run =
        std::upper_bound(std::begin(tables::lowerRuns), std::end(tables::lowerRuns), codePoint,
                         [](char32_t c, const tables::LowerRun& r) { return c < r.first; });
    if (run == std::begin(tables::lowerRuns))
        return codePoint;
    const tables::LowerRun& r = *std::prev(run);
    if (codePoint > r.last || (codePoint - r.first) % r.step != 0)
        return codePoint;
    return static_cast<char32_t>(static_cast<std::int64_t>(codePoint) + r.delta);
}

bool isFinalSigma(std::string_view text, std::size_t at)
{
    bool casedBefore = false;
    for (std::size_t i = at; i > 0;) {
        i = previousStart(text, i);
        const std::uint8_t p = properties(utf8::decode(text, i).codePoint);
        if ((p & isCaseIgnorable) != 0)
            continue;
        casedBefore = (p & isCased) != 0;
        break;
    }
    if (!casedBefore)
        return false;
    for (std::size_t i = at + 2; i < text.size();) {
        const utf8::Decoded d = utf8::decode(text, i);
        const std::uint8_t p = properties(d.codePoint);
        if ((p & isCaseIgnorable) == 0)
            return (p & isCased) == 0;
        i += d.size;
    }
    return true;
}

} // namespace muster::metrics::unicode
