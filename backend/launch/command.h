// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "config/run_config.h"
#include "launch/flavour.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace muster::launch {

/// Everything a launch of one group depends on; a plain value, so that every command line can be
/// tested as text.
struct LaunchRequest {
    LauncherInfo launcher;
    std::filesystem::path rankProgram;
    std::uint32_t ranks = 1;
    std::uint32_t threadsPerRank = 1;
    std::uint32_t physicalCores = 1; ///< usable cores of this machine (CpuTopology::usableCores)
    bool isRoot = false;             ///< effective user id 0
    config::Switch allowRoot = config::Switch::Auto;
    config::Switch oversubscribe = config::Switch::Auto;
    std::vector<std::string> rankArguments; ///< as they are; never holds a secret
    std::filesystem::path temporaryFolder;  ///< private to this launch; becomes TMPDIR
    std::string launchId;                   ///< marks the processes of this launch
    std::vector<std::string> environment;   ///< of the controller, `NAME=value`
    std::vector<std::string> passNames;     ///< variables passed although not on the list
    std::vector<std::pair<std::string, std::string>> setVariables; ///< set after all others
};

/// A program and its arguments.
struct LaunchCommand {
    std::filesystem::path program;
    std::vector<std::string> arguments;
    bool operator==(const LaunchCommand&) const = default;
};

/// What to start: one launcher command, or one command for each rank with plain processes.
struct LaunchPlan {
    Family family = Family::Plain;
    std::vector<LaunchCommand> commands;
    std::vector<std::string> environment; ///< `NAME=value`; all that the children get
    std::vector<std::string> notices;     ///< one line each, for the person who starts the run
    std::string launchId;
    bool operator==(const LaunchPlan&) const = default;
};

/// Name of the environment variable that holds LaunchRequest::launchId.
inline constexpr std::string_view launchIdVariable = "MUSTER_LAUNCH_ID";

/// Builds the command line and the environment of a launch on this machine. Pure: looks at nothing
/// but the request.
///
/// Open MPI and MPICH are told not to bind (C-058), to use no network between ranks (F-29) and to
/// start nothing on other hosts. More ranks than cores and running as root work with one notice
/// each unless the configuration says `false`.
/// Errors: Invalid (`E-LAUNCH-009` no rank), Launch (`E-LAUNCH-010` root is not allowed,
/// `E-LAUNCH-011` more ranks than cores are not allowed, `E-LAUNCH-012` Slurm steps are started by
/// a cluster profile).
[[nodiscard]] Result<LaunchPlan> buildLaunch(const LaunchRequest& request);

/// The command as a person could type it, quoted for a POSIX shell. For logs and for `plan`.
[[nodiscard]] std::string commandText(const LaunchCommand& command);

} // namespace muster::launch
