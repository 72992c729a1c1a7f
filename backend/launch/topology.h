// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace muster::launch {

/// The processors that this process may use, grouped by physical core.
struct CpuTopology {
    std::vector<std::vector<int>> cores; ///< usable CPU numbers of each core, in ascending order
    double quotaCpus = 0.0;              ///< CPU time the control group grants; 0 = no limit

    /// Cores that ranks can be placed on: the number of cores, cut by the quota (rounded down), at
    /// least 1.
    [[nodiscard]] std::uint32_t usableCores() const;
    bool operator==(const CpuTopology&) const = default;
};

/// Groups the given CPU numbers by core as `systemRoot`/sys/devices/system/cpu describes them; a
/// CPU without a description is a core of its own. The quota comes from `systemRoot`/sys/fs/cgroup.
[[nodiscard]] CpuTopology readTopology(const std::filesystem::path& systemRoot,
                                       const std::vector<int>& allowedCpus);

/// The topology of this machine inside the affinity mask of this process. Cannot fail: what the
/// machine does not tell counts as one core per CPU.
[[nodiscard]] CpuTopology machineTopology();

} // namespace muster::launch
