// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::config {

/// The strings of a TOML array on one line, nothing when it is anything else.
[[nodiscard]] std::optional<std::vector<std::string>> tomlStringList(std::string_view text);

} // namespace muster::config
