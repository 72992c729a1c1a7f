// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::foreign {

/// One row of a result file as it was read. Untrusted: index and id may be anything.
struct Row {
    std::optional<std::int64_t> index; ///< as stated; −1 is usual for padding
    std::string id;                    ///< empty: none
    std::string text;                  ///< prediction; a number or truth value in its usual form
    std::string label;                 ///< reference that the row itself carries; may be empty
    std::string hash;                  ///< content hash that the row states; may be empty
    bool hasAnswer = true;             ///< false: null or absent
    bool hasLabel = false;
    bool isPad = false;     ///< the row says that it is padding
    std::int32_t rank = -1; ///< as stated, or the part it came from; −1: not known
};

/// What another program wrote, in the order of the file.
struct ResultFile {
    std::string name;   ///< as messages show it
    std::string format; ///< `JSONL`, `SQuAD predictions`, `lm-eval samples`, …
    std::vector<Row> rows;
    std::string indexField;         ///< column used; empty: none
    std::string idField;            ///< column used; empty: none
    std::string predictionField;    ///< column used; empty: the format has no names
    std::vector<std::string> parts; ///< files, when there are several, in the order taken
    std::vector<std::string> notes; ///< what was guessed or odd, a sentence each
    /// Numbers that the file itself states, such as `exact_match` of an lm-eval result.
    std::vector<std::pair<std::string, double>> stated;
};

/// Column names that are not to be guessed; empty = guess and say so.
struct FieldNames {
    std::string index;
    std::string id;
    std::string prediction;
    std::string label;
};

/// Reads a file, a folder of shards, or a pattern with `*` in its last part.
///
/// By content: JSON Lines; CSV and TSV (RFC 4180) with or without a header; a JSON object from id
/// to text or to an n-best list (SQuAD); an object with the keys "0", "1", … (OpenCompass); JSON
/// arrays of objects; lm-eval samples and, for its stated numbers only, results; NumPy `.npy`;
/// torch `.pt` and `.pth` when they hold plain tensors. Nothing of a pickle is ever executed.
/// Parts `…0…`, `…1…` are joined in numerical order, each part being a rank. Arrays named like
/// indices, predictions and labels in one folder are columns of one file.
///
/// Errors: NotFound, Io of readFile(); Usage `E-FOREIGN-004` for a named field that is not there;
/// Invalid: `E-FOREIGN-001` unknown format, `E-FOREIGN-002` broken JSON or text (with the line),
/// `E-FOREIGN-003` no column of predictions, `E-FOREIGN-005` a value that is no prediction,
/// `E-FOREIGN-006` no rows, `E-FOREIGN-007` a broken array, `E-FOREIGN-008` a torch file that is
/// refused, `E-FOREIGN-009` results without samples, `E-FOREIGN-010` a key twice,
/// `E-FOREIGN-012` columns of unequal length, `E-FOREIGN-013` a part is missing.
[[nodiscard]] Result<ResultFile> readResultFile(const std::filesystem::path& target,
                                                const FieldNames& fields = {});

/// The same from a text or bytes in memory; `name` decides nothing but messages and the extension.
[[nodiscard]] Result<ResultFile> readResultText(std::string_view name, std::string_view bytes,
                                                const FieldNames& fields = {});

} // namespace muster::foreign
