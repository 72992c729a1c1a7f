// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster::metrics::unicode {

/// Bits of properties().
enum Property : std::uint8_t {
    isWord = 1U << 0U,          ///< \w of Python's re
    isSpace = 1U << 1U,         ///< white space of Python's str.split
    isCased = 1U << 2U,         ///< cased neighbour for the final sigma
    isCaseIgnorable = 1U << 3U, ///< looked through for the final sigma
    isPunctuation = 1U << 4U,   ///< general category P*, or one of the 32 ASCII marks
    hasLower = 1U << 5U,        ///< toLower() differs from the code point
    isIdeograph = 1U << 6U,     ///< Han, kana or bopomofo: a token of its own in zh-mixed/1
    isCjkMark = 1U << 7U ///< Chinese, full-width or general punctuation removed by zh-mixed/1
};

/// Property bits of a code point; 0 for a value that is none.
[[nodiscard]] std::uint8_t properties(char32_t codePoint);

/// Lower case of one code point, without context. U+0130 gives `i`; its U+0307 is the caller's.
[[nodiscard]] char32_t toLower(char32_t codePoint);

/// The capital sigma at bytes [at, at+2) of `text` stands at the end of a word in the sense of
/// Unicode's Final_Sigma as Python applies it: a cased character before it and none after it, case
/// ignorable ones looked through.
[[nodiscard]] bool isFinalSigma(std::string_view text, std::size_t at);

} // namespace muster::metrics::unicode
