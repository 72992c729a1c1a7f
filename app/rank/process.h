// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

/// Facts about this process and its machine, and what is set for it at the start.
namespace muster::rank {

/// What the launcher's environment says about this process.
struct LauncherPlace {
    std::string family; ///< `openmpi`, `pmi`, `slurm`; empty when there is none
    std::optional<std::uint32_t> rank{};
    std::optional<std::uint32_t> world{};
    std::optional<std::uint32_t> localRank{};
    std::optional<std::uint32_t> localSize{};
};

/// Reads OMPI_COMM_WORLD_*, then PMI_*, then SLURM_*.
[[nodiscard]] LauncherPlace launcherPlace();

/// One line on standard error, at most 200 bytes, and nothing else: `muster-rank 3: text`.
void say(std::uint32_t rank, std::string_view text);

/// Asks for SIGKILL when the parent ends. Returns the parent, or nothing when it ended meanwhile.
[[nodiscard]] std::optional<pid_t> dieWithParent();

/// Keeps large blocks instead of giving them back to the system after each unit (DESIGN 7).
void keepLargeBlocks();

[[nodiscard]] std::string hostName();
[[nodiscard]] std::string machineName(); ///< such as `x86_64`
/// Field 22 of /proc/self/stat; 0 when it cannot be read.
[[nodiscard]] std::uint64_t startTimeTicks();
/// Nanoseconds since this process was started; 0 when it cannot be told.
[[nodiscard]] std::int64_t ageNs();
[[nodiscard]] std::uint64_t residentBytes();
/// Limit of the control group or of the address space; 0 = none.
[[nodiscard]] std::uint64_t memoryLimitBytes();

/// Numbers of the CPUs that the calling thread may use, ascending.
[[nodiscard]] std::vector<std::uint32_t> allowedCpus();
/// `0-3,8`.
[[nodiscard]] std::string rangesText(const std::vector<std::uint32_t>& numbers);
/// The CPUs grouped by physical core, cores in the order of their first CPU.
[[nodiscard]] std::vector<std::vector<std::uint32_t>>
physicalCores(const std::vector<std::uint32_t>& cpus);

/// The CPUs of the cores that local rank `localRank` of `localSize` gets, `threads` cores for each
/// rank. Nothing when the cores do not suffice: then nobody is pinned.
[[nodiscard]] std::optional<std::vector<std::uint32_t>>
coresOf(const std::vector<std::vector<std::uint32_t>>& cores, std::uint32_t localRank,
        std::uint32_t localSize, std::uint32_t threads);
/// Binds the calling thread, and threads that it makes from now on. False when it failed.
[[nodiscard]] bool bindTo(const std::vector<std::uint32_t>& cpus);

} // namespace muster::rank
