// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/read.h"

#include <string>

namespace muster::config {

/// Whether values are written with a comment on where they came from.
enum class Comments { Origins, None };

/// The configuration as TOML, every setting with a comment that says where its value came from.
/// readToml() of the text with an empty folder gives the same configuration back, to the bit, when
/// its values pass check() and gates stand in the order of their metrics.
[[nodiscard]] std::string toToml(const Resolved& resolved, Comments comments = Comments::Origins);

/// A file to start from: every setting with its meaning and its default, commented out except the
/// few that a first run needs.
[[nodiscard]] std::string templateToml();

/// JSON Schema (draft 2020-12) of the configuration file, one document.
[[nodiscard]] std::string jsonSchema();

} // namespace muster::config
