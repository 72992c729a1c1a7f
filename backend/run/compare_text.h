// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run/compare.h"

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <vector>

namespace muster::run {

/// What a comparison shows. All of them say first whether the runs can be compared.
enum class ComparePreset {
    Metrics,     ///< metrics, intervals, tests, flips
    Determinism, ///< what changed at all
    Scaling      ///< throughput over rank counts
};
/// For people on a terminal, or to be pasted. Csv is the main table of the preset alone.
enum class CompareFormat { Text, Markdown, Latex, Csv };

/// Everything that one comparison came to.
struct Comparison {
    std::span<const ComparedRun> runs;
    std::vector<PairComparison> pairs; ///< each other run with the first
    std::vector<FailOutcome> conditions;
    ComparePreset preset = ComparePreset::Metrics;
    bool hasAllSettings = false; ///< also those that are equal
    std::uint64_t samples = 10;  ///< how many changed samples are shown
    double confidence = 0.95;
};

/// 8 when a pair cannot be compared, 7 when a condition holds, else 0.
[[nodiscard]] int exitCodeOf(const Comparison& comparison);

/// The last line: what the comparison found, in plain words.
[[nodiscard]] std::string conclusionOf(const Comparison& comparison);

[[nodiscard]] std::string textOf(const Comparison& comparison, CompareFormat format);
/// The document of `--json`; numbers that are not finite are null.
[[nodiscard]] nlohmann::ordered_json jsonOf(const Comparison& comparison);

} // namespace muster::run
