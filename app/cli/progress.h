// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "controller_api.h"
#include "terminal.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace muster::cli {

/// How progress is shown.
enum class ProgressStyle {
    None,  ///< not at all
    Bar,   ///< one line that is redrawn, at most ten times a second
    Lines, ///< a line every 30 seconds
    Events ///< one JSON object per line for each change, at most ten a second
};

/// The style for the options and for standard error.
[[nodiscard]] ProgressStyle progressStyle(const GlobalOptions& options, const Terminal& terminal);

/// Shows the progress of one run. Lives in the main thread; writes through the function that it is
/// given, so tests need no terminal.
class ProgressDisplay final {
public:
    using Write = std::function<void(std::string_view)>;

    ProgressDisplay(ProgressStyle style, Terminal terminal, Write write);

    /// Shows the state if it is time to. `nowNs` is of a monotonic clock.
    void update(const ProgressView& progress, std::int64_t nowNs);
    /// Writes a line of text without breaking the bar.
    void say(std::string_view line);
    /// Takes the bar away, so that other output can follow.
    void clear();

private:
    ProgressStyle m_style;
    Terminal m_terminal;
    Write m_write;
    std::int64_t m_lastNs = 0;
    bool m_hasShown = false;
    std::string m_drawn;
    std::string m_stage;
};

/// The bar for a terminal of the given width, without escape sequences; parts that do not fit are
/// left out from the right.
[[nodiscard]] std::string barText(const ProgressView& progress, std::size_t columns);

/// The line that is written every 30 seconds.
[[nodiscard]] std::string lineText(const ProgressView& progress);

/// The event of `--ndjson`.
[[nodiscard]] nlohmann::ordered_json toJson(const ProgressView& progress);

/// `0:07`, `12:05`, `3:04:05`; `--:--` for a negative number.
[[nodiscard]] std::string durationText(double seconds);

/// `57.2`, `840`, `10.1k`, `2.3M`.
[[nodiscard]] std::string rateText(double perSecond);

} // namespace muster::cli
