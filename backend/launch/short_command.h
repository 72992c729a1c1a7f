// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

namespace muster::launch {

/// What a command that ended by itself left behind.
struct ShortAnswer {
    int exitCode = 0;   ///< 128 + signal when a signal ended it
    std::string output; ///< standard output and standard error together, at most 64 KiB
};

/// Runs a program that answers at once, such as `mpirun --version`, and waits for it. No shell, no
/// standard input. The program is killed when the limit runs out. Blocks; may be called from any
/// thread, and needs no event loop. `environment` holds `NAME=value` entries and is all the program
/// gets. Error: Launch (`E-LAUNCH-001`) when it does not start or does not end in time.
[[nodiscard]] Result<ShortAnswer> runShortCommand(const std::filesystem::path& program,
                                                  const std::vector<std::string>& arguments,
                                                  const std::vector<std::string>& environment,
                                                  std::chrono::milliseconds limit);

} // namespace muster::launch
