// SPDX-License-Identifier: Apache-2.0
#include "launch/topology.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <tuple>

#include <sched.h>

namespace muster::launch {

namespace {

namespace fs = std::filesystem;

std::optional<long long> readNumber(const fs::path& file)
{
    std::ifstream stream(file);
    long long value = 0;
    if (stream >> value) {
        return value;
    }
    return std::nullopt;
}

double quotaOf(const fs::path& groups)
{
    std::ifstream stream(groups / "cpu.max");
    std::string quota;
    double period = 0.0;
    if (stream >> quota >> period) {
        try {
            return quota == "max" || period <= 0.0 ? 0.0 : std::stod(quota) / period;
        } catch (const std::exception&) {
            return 0.0;
        }
    }
    const auto micros = readNumber(groups / "cpu" / "cpu.cfs_quota_us");
    const auto periodMicros = readNumber(groups / "cpu" / "cpu.cfs_period_us");
    if (micros && periodMicros && *micros > 0 && *periodMicros > 0) {
        return static_cast<double>(*micros) / static_cast<double>(*periodMicros);
    }
    return 0.0;
}

std::vector<int> affinityCpus()
{
    std::vector<int> cpus;
    // The mask may be wider than cpu_set_t's 1024 bits; the kernel refuses one that is too small.
    for (int bits = 1024; bits <= 1 << 18; bits *= 2) {
        cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(bits));
        if (set == nullptr) {
            break;
        }
        const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(bits));
        CPU_ZERO_S(bytes, set);
        const bool isRead = ::sched_getaffinity(0, bytes, set) == 0;
        for (int cpu = 0; isRead && cpu < bits; ++cpu) {
            if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set)) {
                cpus.push_back(cpu);
            }
        }
        CPU_FREE(set);
        if (isRead) {
            break;
        }
    }
    return cpus;
}

} // namespace

std::uint32_t CpuTopology::usableCores() const
{
    auto count = static_cast<double>(std::max<std::size_t>(1, cores.size()));
    if (quotaCpus > 0.0) {
        count = std::clamp(std::floor(quotaCpus), 1.0, count);
    }
    return static_cast<std::uint32_t>(count);
}

CpuTopology readTopology(const fs::path& systemRoot, const std::vector<int>& allowedCpus)
{
    using Core = std::tuple<long long, long long, long long>;
    std::map<Core, std::vector<int>> cores;
    for (const int cpu : allowedCpus) {
        const fs::path folder =
            systemRoot / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu)) / "topology";
        const auto package = readNumber(folder / "physical_package_id");
        const auto die = readNumber(folder / "die_id");
        const auto core = readNumber(folder / "core_id");
        const Core key = package && core && *core >= 0 ? Core{*package, die.value_or(0), *core}
                                                       : Core{-2, 0, cpu};
        cores[key].push_back(cpu);
    }
    CpuTopology topology;
    for (auto& [key, cpus] : cores) {
        std::sort(cpus.begin(), cpus.end());
        topology.cores.push_back(std::move(cpus));
    }
    std::sort(topology.cores.begin(), topology.cores.end());
    topology.quotaCpus = quotaOf(systemRoot / "sys/fs/cgroup");
    return topology;
}

CpuTopology machineTopology()
{
    std::vector<int> cpus = affinityCpus();
    if (cpus.empty()) {
        const unsigned count = std::max(1U, std::thread::hardware_concurrency());
        for (unsigned cpu = 0; cpu < count; ++cpu) {
            cpus.push_back(static_cast<int>(cpu));
        }
    }
    return readTopology("/", cpus);
}

} // namespace muster::launch
