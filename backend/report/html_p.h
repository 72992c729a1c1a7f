// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report/run_result.h"

#include <string>
#include <string_view>

namespace muster::report {

/// Style and script of the page.
extern const std::string_view htmlStyle;
extern const std::string_view htmlScript;

/// The same words in both languages; the page shows one of them. The texts are not escaped.
[[nodiscard]] std::string bilingual(std::string_view english, std::string_view chinese);

/// Owner, state, arrival time and order of arrival by sample index, as SVG with captions.
[[nodiscard]] std::string alignmentStrips(const RunResult& result);
/// Time of each rank by phase, as stacked bars.
[[nodiscard]] std::string timeBars(const RunResult& result);
/// Throughput of each rank.
[[nodiscard]] std::string throughputBars(const RunResult& result);

} // namespace muster::report
