// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "foreign/result_file.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::foreign {

/// Names that columns usually have, the likeliest first.
[[nodiscard]] std::span<const std::string_view> indexNames();
[[nodiscard]] std::span<const std::string_view> idNames();
[[nodiscard]] std::span<const std::string_view> predictionNames();
[[nodiscard]] std::span<const std::string_view> labelNames();

/// Which of `present` is meant: the name asked for, else the first usual one.
/// Error: Usage (`E-FOREIGN-004`) when the name asked for is not there.
[[nodiscard]] Result<std::string> chosenField(std::string_view what, const std::string& asked,
                                              std::span<const std::string_view> usual,
                                              std::span<const std::string> present,
                                              std::string_view file);

/// An integer that is written as text; nothing for anything else.
[[nodiscard]] std::optional<std::int64_t> integerOf(std::string_view text);

[[nodiscard]] Result<ResultFile> readJsonl(std::string_view name, std::string_view text,
                                           const FieldNames& fields);
[[nodiscard]] Result<ResultFile> readJson(std::string_view name, std::string_view text,
                                          const FieldNames& fields);
[[nodiscard]] Result<ResultFile> readDelimited(std::string_view name, std::string_view text,
                                               char delimiter, const FieldNames& fields);

} // namespace muster::foreign
