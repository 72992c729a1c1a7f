// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "data/dataset.h"
#include "data/squad_reader.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::data {

/// What one document of a text file is.
enum class DocumentRule {
    WholeFile,  ///< each file is one document
    Lines,      ///< each line, without its line end
    BlankLines, ///< paragraphs: what stands between lines that hold at most blanks
    Separator,  ///< what stands between occurrences of a text such as `<|endoftext|>`
    /// One document per file: its rows joined by two newlines, where a row keeps its own line end
    /// and a row of only blanks is the empty string. What evaluations in the manner of the Hugging
    /// Face documentation do with WikiText.
    HfJoin,
    Jsonl ///< each line is a JSON object, the text is one of its fields
};

enum class LineEnds {
    Keep,      ///< CR LF stays what it is
    Normalise, ///< CR LF becomes LF
};

enum class DocumentEnds {
    Keep, ///< the text as it stands
    Strip ///< without blanks, tabs and line ends at both ends
};

/// What happens to a text that no separator ends (Separator).
enum class UnfinishedDocument { Keep, Drop };

struct TextOptions {
    DocumentRule documents = DocumentRule::WholeFile;
    std::string separator;      ///< not empty for DocumentRule::Separator
    std::string field = "text"; ///< DocumentRule::Jsonl: key of the text
    std::string idField;        ///< DocumentRule::Jsonl: key of the id; empty = the number
    LineEnds lineEnds = LineEnds::Keep;
    DocumentEnds ends = DocumentEnds::Keep;
    UnfinishedDocument unfinished = UnfinishedDocument::Keep;
    ReadOptions read; ///< limit and subset
};

/// One document as it is handed out. The views end with the call.
struct Document {
    SampleIndex index;    ///< among the documents that are kept, 0..N−1
    SampleIndex original; ///< among all documents of the files
    std::string_view id;  ///< the field's text, else the original number
    std::string_view text;
    std::size_t file = 0;   ///< number of the file
    std::uint64_t line = 0; ///< where the document starts, from 1
    Hash128 hash;           ///< documentHash()
};

/// Takes one document; an error ends the reading and is returned as it is.
using DocumentSink = std::function<Status(const Document&)>;

/// What was read.
struct TextSummary {
    std::uint64_t documents = 0;     ///< that were handed out
    std::uint64_t originalCount = 0; ///< in the files, before subset and limit
    std::uint64_t bytes = 0;         ///< of the documents that were handed out
    std::vector<Warning> warnings;   ///< by code
    Hash128 digest;                  ///< UnorderedDigest over (index, hash)
};

/// Hasher over id and text.
[[nodiscard]] Hash128 documentHash(std::string_view id, std::string_view text);

/// Reads plain text or JSONL and hands out one document after the other. Several files are read as
/// one data set; no document spans two files. The files are mapped and walked through once, so that
/// the memory beside the sink's is that of the largest document, or less where it need not be
/// copied.
///
/// Empty documents and those of blanks only are kept and counted (W-DATA-010; C-040): they score
/// nothing, but their indices stay. BlankLines never gives one. A blank line between JSON lines is
/// an error, at the end of the file it is ignored (C-066).
///
/// Errors with file:line:column: Usage `E-DATA-016` no file, `E-DATA-017` an empty separator;
/// NotFound, Io of MappedFile; Invalid: `E-DATA-001` empty file, `E-DATA-002` broken UTF-8,
/// `E-DATA-003` … `E-DATA-006`, `E-DATA-009`, `E-DATA-013`, `E-DATA-014` of JSON lines,
/// `E-DATA-007` the field is missing, `E-DATA-008` duplicate id, `E-DATA-010` no documents,
/// `E-DATA-011` and `E-DATA-012` of the subset, `E-DATA-018` a blank line between two lines.
[[nodiscard]] Result<TextSummary> readDocuments(std::span<const std::filesystem::path> files,
                                                const TextOptions& options,
                                                const DocumentSink& sink);

/// As readDocuments(), over texts in memory.
[[nodiscard]] Result<TextSummary> readDocumentTexts(std::span<const NamedText> texts,
                                                    const TextOptions& options,
                                                    const DocumentSink& sink);

} // namespace muster::data
