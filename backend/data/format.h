// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <filesystem>
#include <string>

namespace muster::data {

/// What a data file looks like from outside.
enum class Format {
    Squad, ///< SQuAD-style JSON: readSquad()
    Jsonl, ///< one JSON object a line
    Csv,   ///< comma-separated values
    Tsv,   ///< tab-separated values
    Text,  ///< plain text
    Unknown
};

/// A guess, with the reason in words for people: "it starts with { and has `paragraphs`".
struct DetectedFormat {
    Format format = Format::Unknown;
    std::string reason;
};

/// `SQuAD JSON`, `JSONL`, …
[[nodiscard]] const char* formatName(Format format);

/// Looks at the name and the first 64 KiB. Errors: NotFound (`E-FILE-001`), Io (`E-FILE-002`).
[[nodiscard]] Result<DetectedFormat> detectFormat(const std::filesystem::path& path);

} // namespace muster::data
