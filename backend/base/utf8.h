// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::utf8 {

/// One code point and the bytes it takes. `size` is 1 and `valid` false at a broken sequence.
struct Decoded {
    char32_t codePoint = 0xFFFD;
    std::size_t size = 1;
    bool valid = false;
};

/// Decodes the code point that starts at byte `at` (< text.size()). Overlong forms, surrogates and
/// values above U+10FFFF are broken (Unicode 15, table 3-7).
[[nodiscard]] Decoded decode(std::string_view text, std::size_t at);

/// Appends the code point; U+FFFD for a value that is none.
void append(std::string& text, char32_t codePoint);

/// Byte position of the first broken sequence, nothing when the text is valid.
[[nodiscard]] std::optional<std::size_t> firstInvalid(std::string_view text);

/// Number of code points; each broken byte counts as one.
[[nodiscard]] std::size_t length(std::string_view text);

/// Byte offset of each code point, and text.size() at the end: [code points + 1].
[[nodiscard]] std::vector<std::size_t> codePointOffsets(std::string_view text);

/// Byte offset of code point number `index`; nothing when the text is shorter.
[[nodiscard]] std::optional<std::size_t> byteOffset(std::string_view text, std::size_t index);

/// The text with every broken byte replaced by U+FFFD.
[[nodiscard]] std::string repaired(std::string_view text);

} // namespace muster::utf8
