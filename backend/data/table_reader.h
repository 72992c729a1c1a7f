// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "data/dataset.h"
#include "data/squad_reader.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::data {

/// How the rows of a table are written.
enum class TableFormat {
    Auto,
    Delimited, ///< CSV, TSV and the like
    Jsonl,     ///< one JSON object a line
    LabelText  ///< label, one blank, text: the SST-2 files of sentence classifiers
};

enum class HeaderRule { Auto, Present, Absent };
enum class QuoteRule {
    Auto,    ///< RFC 4180; literal in a tab-separated file that is no valid RFC 4180
    Rfc4180, ///< a field in quotation marks may hold delimiters and line ends
    Literal  ///< a quotation mark is a character like any other
};

/// What of a table is the text, the label and so on. A field is named by its number from 1 or by
/// its name (the header's, or the key of a JSON line); a name is tried before a number.
struct TableOptions {
    TableFormat format = TableFormat::Auto;
    std::string textField;  ///< empty = by its name: text, sentence, sentence1, content, …
    std::string pairField;  ///< empty = none, or by its name when the text was found by its name
    std::string labelField; ///< empty = by its name: label, labels, class, category, …
    std::string idField;    ///< empty = the row's number from 0
    std::string groupField; ///< for clustered intervals; empty = none
    HeaderRule header = HeaderRule::Auto;
    std::string delimiter;      ///< one byte; empty = guessed
    std::string labelSeparator; ///< divides several labels of one row; empty = one label
    QuoteRule quotes = QuoteRule::Auto;
    ReadOptions read; ///< limit and subset
};

/// One row to be classified.
struct TableRow {
    SampleIndex index;    ///< among the rows that are kept, 0..N−1
    SampleIndex original; ///< among all rows of the files
    std::string id;       ///< the field's text, else the original number; unique
    std::string text;
    std::optional<std::string> pair; ///< second sentence
    /// As the file states them, in order; exactly one unless the data have several (multi-label),
    /// where there may be none.
    std::vector<std::string> labels;
    std::string group; ///< empty without a group field
    Hash128 hash;      ///< rowHash()

    bool operator==(const TableRow&) const = default;
};

/// Rows with everything that was decided while they were read.
struct Table {
    std::vector<TableRow> rows;      ///< [N] in canonical order
    std::uint64_t originalCount = 0; ///< rows in the files, before subset and limit
    TableFormat format = TableFormat::Delimited;
    std::vector<std::string> header;     ///< names of the columns; empty without a header
    std::vector<std::string> labelNames; ///< each label once, in the order of the rows
    bool isMultiLabel = false;           ///< labels were divided, or came as lists
    /// What was found out and not told, such as the delimiter; sentences to be shown.
    std::vector<std::string> notes;
    std::vector<Warning> warnings; ///< by code
    Hash128 digest;                ///< UnorderedDigest over (index, hash)
};

/// Hasher over id, text, 1 or 0 for a pair, the pair, the number of labels and each label.
[[nodiscard]] Hash128 rowHash(const TableRow& row);

/// Reads a table for classification. Several files are read as one; each has its own header, which
/// must be that of the first. Files are mapped, so that the memory is that of the rows.
///
/// Odd rows are kept and counted: W-DATA-014 empty text, W-DATA-015 a quotation mark inside an
/// unquoted field, W-DATA-007 byte-order mark. Blank lines at the end are ignored (C-066).
///
/// Errors with file:line:column and the row's number from 1 (without the header): Usage
/// `E-DATA-016` no file, `E-DATA-019` a delimiter of more than one byte; NotFound, Io of
/// MappedFile; Invalid: `E-DATA-001`, `E-DATA-002`, `E-DATA-008`, `E-DATA-010` … `E-DATA-012`,
/// `E-DATA-018` as readDocuments(), the JSON codes of readDocuments(), `E-DATA-020` a field that
/// the table does not have or that could not be found by its name (the message lists the columns),
/// `E-DATA-021` a row with another number of fields, `E-DATA-022` a quoted field without an end,
/// `E-DATA-023` something behind a closing quotation mark, `E-DATA-024` a row without a label,
/// `E-DATA-025` files with different headers.
[[nodiscard]] Result<Table> readTable(std::span<const std::filesystem::path> files,
                                      const TableOptions& options = {});

/// As readTable(), over texts in memory. The name of a text stands for the file's name.
[[nodiscard]] Result<Table> readTableTexts(std::span<const NamedText> texts,
                                           const TableOptions& options = {});

} // namespace muster::data
