// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "data/dataset.h"
#include "data/json_source_p.h"

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::data {

inline constexpr std::string_view byteOrderMark = "\xEF\xBB\xBF";

/// Length of the mark at the start of the text: 3 or 0.
[[nodiscard]] std::size_t byteOrderMarkSize(std::string_view text);

/// Error: Invalid (`E-DATA-002`) with the place of the first broken byte in [begin, end).
[[nodiscard]] Status checkUtf8(const JsonSource& source, std::size_t begin, std::size_t end);

/// Only blanks, tabs and line ends, or nothing.
[[nodiscard]] bool isBlank(std::string_view text);

/// The text without blanks, tabs and line ends at both ends.
[[nodiscard]] std::string_view stripped(std::string_view text);

/// What a kind of warning says: for one case and for many (`{}` = how many), and the treatment.
struct OddityText {
    const char* code;
    const char* one;
    const char* many;
    const char* treatment;
};

/// Counts what is odd, by kind.
class OddityCounter final {
public:
    void note(const OddityText& text, std::optional<SampleIndex> sample = std::nullopt);
    /// The warnings, by code.
    [[nodiscard]] std::vector<Warning> warnings() const;

private:
    struct Count {
        const OddityText* text = nullptr;
        std::uint64_t count = 0;
        std::vector<SampleIndex> first20;
    };
    std::map<std::string, Count> m_counts;
};

extern const OddityText markOddity; ///< W-DATA-007

/// A value of one key of a JSON line.
struct JsonField {
    enum class Kind { Absent, Null, Text, Number, Truth, List, Object };
    Kind kind = Kind::Absent;
    std::string text; ///< decoded text; digits of a number as in the file; `true` or `false`
    std::vector<std::string> list; ///< elements of a List of texts, numbers, truth values
    std::size_t offset = 0;        ///< byte of the source where the value starts

    /// Text, Number or Truth.
    [[nodiscard]] bool isScalar() const;
};

/// Reads the JSON object in bytes [begin, end) of the source, one line, and gives the values of the
/// keys `names` in their order. The whole line is checked; other keys are ignored. The bytes must
/// be valid UTF-8. Errors as readSquad(): Invalid `E-DATA-003`, `E-DATA-004`, `E-DATA-006`,
/// `E-DATA-009`, `E-DATA-013`, `E-DATA-014`.
[[nodiscard]] Result<std::vector<JsonField>> readJsonLine(const JsonSource& source,
                                                          std::size_t begin, std::size_t end,
                                                          std::span<const std::string> names);

} // namespace muster::data
