// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::launch {

/// One process of this machine, told apart from a later one with the same number by its start.
struct ProcessRef {
    std::int64_t pid = 0;
    std::uint64_t startTicks = 0; ///< field 22 of /proc/PID/stat, clock ticks since boot
    bool operator==(const ProcessRef&) const = default;
};

/// Reads the start time from the content of /proc/PID/stat, whose second field may hold anything.
[[nodiscard]] std::optional<std::uint64_t> parseStartTicks(std::string_view stat);

/// The process with this number as it is now; nothing when there is none or it is a zombie.
[[nodiscard]] std::optional<ProcessRef> processRef(std::int64_t pid);

/// Whether exactly this process is alive (a zombie is not) and runs a program whose file name
/// starts with `muster-rank`.
[[nodiscard]] bool isLiveRank(const ProcessRef& process);

/// Sends SIGKILL to those of the processes for which isLiveRank() holds; the check and the signal
/// concern the same process, through a process descriptor. Returns how many got the signal.
std::size_t killRanks(const std::vector<ProcessRef>& processes);

/// All rank programs of this user whose environment has MUSTER_LAUNCH_ID equal to `launchId`, so
/// that also ranks which never said hello are found. Nothing for an empty id.
[[nodiscard]] std::vector<ProcessRef> ranksOfLaunch(std::string_view launchId);

} // namespace muster::launch
