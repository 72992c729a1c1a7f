// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::data {

enum class CsvQuotes {
    Rfc4180, ///< a field that starts with `"` ends at the next single one; `""` is one inside
    Literal  ///< a quotation mark is a character like any other
};

struct CsvField {
    std::string text;
    std::size_t offset = 0; ///< byte of the text where the field starts, at its quotation mark
};

/// Divides delimited text into records (RFC 4180). Records end with LF or CR LF; a quoted field may
/// hold both. A quotation mark inside a field that does not start with one is kept as it is.
class CsvScanner final {
public:
    enum class Fault {
        None,
        OpenQuote,  ///< the text ends inside of a quoted field
        BehindQuote ///< something other than a delimiter stands behind a closing mark
    };

    CsvScanner(std::string_view text, std::size_t at, char delimiter, CsvQuotes quotes)
        : m_text(text), m_at(at), m_delimiter(delimiter), m_quotes(quotes)
    {
    }

    [[nodiscard]] bool atEnd() const { return m_at >= m_text.size(); }
    [[nodiscard]] std::size_t at() const { return m_at; }
    /// Reads the record that starts here; `fields` is reused. At a fault at() is its place.
    [[nodiscard]] Fault readRecord(std::vector<CsvField>& fields);
    /// Number of marks that stood inside of unquoted fields.
    [[nodiscard]] std::uint64_t strayQuotes() const { return m_strayQuotes; }

private:
    [[nodiscard]] Fault readQuoted(std::string& into);
    std::string_view m_text;
    std::size_t m_at = 0;
    char m_delimiter = ',';
    CsvQuotes m_quotes = CsvQuotes::Rfc4180;
    std::uint64_t m_strayQuotes = 0;
};

/// A delimiter and why it was taken.
struct DelimiterGuess {
    char delimiter = ',';
    std::string reason;
};

/// Looks at the first 64 KiB, at most 50 records. Of comma, tab, semicolon and `|` the one that
/// gives the most records the same number of fields above one; more fields win ties, then this
/// order. A comma when none divides anything.
[[nodiscard]] DelimiterGuess guessDelimiter(std::string_view text);

} // namespace muster::data
