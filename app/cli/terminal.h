// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "options.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::cli {

/// What a stream can show.
struct Terminal {
    bool isInteractive = false; ///< a terminal that can redraw a line
    bool hasColour = false;
    std::size_t columns = 80;
};

/// What the descriptor can show under the options and the variables NO_COLOR, TERM and COLUMNS.
[[nodiscard]] Terminal terminalOf(int descriptor, const GlobalOptions& options);

/// Columns that the text takes on a terminal: 2 for wide and full-width characters, 0 for combining
/// and control characters (Unicode East Asian Width, annex 11).
[[nodiscard]] std::size_t displayWidth(std::string_view text);

/// The longest start of the text that fits into `columns`, with `…` at its end when it is cut.
[[nodiscard]] std::string clipped(std::string_view text, std::size_t columns);

/// The text filled with spaces to `columns`, never cut.
[[nodiscard]] std::string padded(std::string_view text, std::size_t columns);

} // namespace muster::cli
