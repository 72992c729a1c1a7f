// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "controller_api.h"
#include "exit_code.h"

#include <string>

namespace muster::cli {

/// `EM 61.42 % +-0.93`; `EM undefined` without a value.
[[nodiscard]] std::string metricText(const MetricValue& metric);

/// The last line for people:
/// `ALIGNED 10570/10570  EM 61.42 % +-0.93  F1 69.80 %  33.9 s on 8 ranks  comm 6.1 %`.
[[nodiscard]] std::string lastLine(const RunEnd& end);

/// Signal, then error, then verdict, then gates.
[[nodiscard]] ExitCode exitCodeOf(const RunEnd& end);

/// The document of `--json`: verdict, metrics (null where undefined, with the reason in
/// `undefined`), samples, run, elapsed_s, ranks, comm, wait, gates, findings, error, exit.
[[nodiscard]] nlohmann::ordered_json toJson(const RunEnd& end);

/// The document of an error.
[[nodiscard]] nlohmann::ordered_json toJson(const Error& error);

/// One strict JSON document on one line: no NaN, no Infinity, broken UTF-8 replaced (C-065).
[[nodiscard]] std::string jsonText(const nlohmann::ordered_json& document, int indent = -1);

/// A number for JSON; null when it is not finite.
[[nodiscard]] nlohmann::ordered_json jsonNumber(double value);

} // namespace muster::cli
