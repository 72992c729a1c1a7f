// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "data/dataset.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace muster::data {

/// Which samples to keep. The whole data set is read and checked in any case.
struct ReadOptions {
    std::optional<std::uint64_t> limit; ///< the first n of what the subset leaves
    std::string subset;                 ///< see Subset; empty = everything
};

/// Reads SQuAD-style JSON (SQuAD 1.1 and 2.0, XQuAD, CMRC 2018, DRCD): `data[]`, `paragraphs[]`
/// with `context` and `qas[]`, each with `id`, `question`, `answers[]` of `text` and
/// `answer_start`. `plausible_answers` and unknown keys are checked to be JSON and ignored.
///
/// Several files are read one after the other as one data set. Samples keep reading order and get
/// the indices 0..N−1; `original` is the place before subset and limit. Files are mapped and parsed
/// one element of `data` at a time, so the memory beside the result is that of the largest article.
///
/// Oddities that are counted as warnings, and all treatments: docs/data.md. Errors say
/// file:line:column and the JSON path, such as `data[3].paragraphs[0].qas[2].id`:
/// Usage `E-DATA-016` no file given; NotFound, Io of MappedFile; Invalid: `E-DATA-001` empty file,
/// `E-DATA-002` broken UTF-8, `E-DATA-003` no JSON, `E-DATA-004` the file ends too early,
/// `E-DATA-005` something behind the end, `E-DATA-006` wrong type, `E-DATA-007` missing field,
/// `E-DATA-008` duplicate id, `E-DATA-009` half a surrogate pair, `E-DATA-010` no samples,
/// `E-DATA-011` and `E-DATA-012` of the subset, `E-DATA-013` nested too deep, `E-DATA-014` a key
/// stands twice, `E-DATA-015` an article too large for the parser.
[[nodiscard]] Result<Dataset> readSquad(std::span<const std::filesystem::path> files,
                                        const ReadOptions& options = {});

/// A text in memory with the name that messages show.
struct NamedText {
    std::string name;
    std::string_view text;
};

/// As readSquad(), over texts in memory.
[[nodiscard]] Result<Dataset> readSquadTexts(std::span<const NamedText> texts,
                                             const ReadOptions& options = {});

} // namespace muster::data
