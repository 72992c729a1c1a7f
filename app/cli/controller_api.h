// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "config/read.h"
#include "options.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace muster::cli {

/// A metric with its interval, as people and JSON see it.
struct MetricValue {
    std::string key;   ///< name in JSON: `exact_match`, `f1`
    std::string label; ///< name for people: `EM`, `F1`, `PPL`
    std::optional<double> value;
    std::optional<double> halfWidth; ///< of the interval around `value`
    std::string unit = "%";          ///< `%` or empty
    int decimals = 2;
    std::string undefinedReason; ///< why there is no value
};

/// Where a run stands. Shares are of elapsed time, 0..1; negative numbers mean unknown.
struct ProgressView {
    std::string stage; ///< `planning`, `launching`, `running`, …
    std::uint64_t samplesDone = 0;
    std::uint64_t samples = 0;
    double samplesPerSecond = 0.0;
    double tokensPerSecond = 0.0;
    double etaSeconds = -1.0;
    double elapsedSeconds = 0.0;
    double transferShare = -1.0;
    double waitShare = -1.0;
    std::vector<MetricValue> soFar;
};

/// One gate with its outcome.
struct GateOutcome {
    std::string text; ///< `em >= 60`
    std::optional<double> found;
    bool isMet = false;
};

/// How a run ended.
struct RunEnd {
    std::string verdict; ///< `ALIGNED`, …; empty when nothing was scored
    std::uint64_t samplesDone = 0;
    std::uint64_t samples = 0;
    std::vector<MetricValue> metrics;
    double elapsedSeconds = 0.0;
    std::uint32_t ranks = 0;
    double transferShare = 0.0; ///< of elapsed time, 0..1
    double waitShare = 0.0;
    std::filesystem::path folder;
    std::vector<GateOutcome> gates;
    std::vector<std::string> findings; ///< sentences on what breaks the alignment
    std::optional<Error> error;        ///< why there is no result, or why it is not whole
    int signal = 0;                    ///< SIGINT or SIGTERM when one ended the run
    std::vector<std::string> nextSteps;
};

/// What a run tells while it goes on. Called in the main thread.
struct RunListener {
    std::function<void(const ProgressView&)> progressed;
    /// `level`: `info`, `notice`, `warning`, `error`.
    std::function<void(const std::string& level, const std::string& code, const std::string& text)>
        said;
};

/// Result of a command that is not a run: text for people and a document for programs.
struct Answer {
    int exitCode = 0;
    std::string text;
    nlohmann::ordered_json json;
};

/// What the commands need of the controller. An empty function means that this build has no such
/// part; its command then says so (`E-CLI-010`). All of them run the event loop themselves and
/// handle signals.
struct ControllerApi {
    std::function<RunEnd(const config::Resolved&, const RunListener&)> run;
    std::function<RunEnd(const ResumeOptions&, const config::Resolved&, const RunListener&)> resume;
    std::function<Result<Answer>(const config::Resolved&)> plan;
    std::function<Result<Answer>(const StopOptions&)> stop;
    std::function<Result<Answer>(const VerifyOptions&)> verify;
    std::function<Result<Answer>(const ShowOptions&)> show;
    std::function<Result<Answer>(const ExportOptions&)> exported;
    std::function<Result<Answer>(const HistoryOptions&)> history;
    std::function<Result<Answer>(const BenchOptions&, const config::Resolved&)> bench;
    /// Configuration of the demo (bundled model and data) under the flags given.
    std::function<Result<config::Resolved>(const DemoOptions&)> demo;
    std::function<Result<Answer>(const CompareOptions&)> compare;
    std::function<Result<Answer>(const ExplainPplOptions&)> explainPpl;
    std::function<Result<Answer>(const ReportOptions&)> report;
};

/// The functions of this build.
[[nodiscard]] ControllerApi controllerApi();

/// Fills in what looks at finished runs: compare, explain-ppl, report.
void addComparisons(ControllerApi& api);

} // namespace muster::cli
