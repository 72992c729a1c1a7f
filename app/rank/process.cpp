// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include <csignal>
#include <malloc.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

namespace muster::rank {

namespace {

constexpr std::size_t maxLineBytes = 200;

std::optional<std::uint32_t> number(const char* name)
{
    const char* text = std::getenv(name);
    if (text == nullptr)
        return std::nullopt;
    const std::string_view view = text;
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), value);
    if (error != std::errc() || end != view.data() + view.size())
        return std::nullopt;
    return value;
}

std::uint64_t firstNumber(const char* path)
{
    std::ifstream file(path);
    std::uint64_t value = 0;
    file >> value;
    return file ? value : 0;
}

} // namespace

LauncherPlace launcherPlace()
{
    struct Names {
        const char* family;
        const char* rank;
        const char* world;
        const char* localRank;
        const char* localSize;
    };
    constexpr std::array<Names, 3> known{{
        {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
         "OMPI_COMM_WORLD_LOCAL_SIZE"},
        {"pmi", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
        {"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_TASKS_PER_NODE"},
    }};
    for (const Names& names : known) {
        const auto rank = number(names.rank);
        const auto world = number(names.world);
        if (rank && world)
            return {names.family, rank, world, number(names.localRank), number(names.localSize)};
    }
    return {};
}

void say(std::uint32_t rank, std::string_view text)
{
    std::string line = "muster-rank " + std::to_string(rank) + ": " + std::string(text);
    std::ranges::replace(line, '\n', ' ');
    if (line.size() > maxLineBytes - 1)
        line.resize(maxLineBytes - 1);
    line += '\n';
    // One write, so that lines of several ranks do not mix; a reader that is gone is no reason to
    // fail.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

std::optional<pid_t> dieWithParent()
{
    const pid_t parent = ::getppid();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent)
        return std::nullopt;
    return parent;
}

void keepLargeBlocks()
{
    ::mallopt(M_MMAP_MAX, 0);
    ::mallopt(M_TRIM_THRESHOLD, -1);
    ::mallopt(M_TOP_PAD, 64 << 20);
}

std::string hostName()
{
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0)
        return "unknown";
    return name.data();
}

std::string machineName()
{
    struct utsname name {};
    return ::uname(&name) == 0 ? std::string(name.machine) : "unknown";
}

std::uint64_t startTimeTicks()
{
    std::ifstream file("/proc/self/stat");
    std::string text;
    std::getline(file, text);
    // The second field, the name in brackets, may hold anything; field 3 follows the last bracket.
    const std::size_t bracket = text.rfind(')');
    if (bracket == std::string::npos)
        return 0;
    std::istringstream rest(text.substr(bracket + 1));
    std::string field;
    for (int i = 3; i < 22; ++i)
        rest >> field;
    std::uint64_t ticks = 0;
    rest >> ticks;
    return rest ? ticks : 0;
}

std::int64_t ageNs()
{
    struct timespec now {};
    const auto perSecond = static_cast<std::int64_t>(::sysconf(_SC_CLK_TCK));
    if (::clock_gettime(CLOCK_BOOTTIME, &now) != 0 || perSecond <= 0)
        return 0;
    const std::int64_t nowNs = now.tv_sec * 1'000'000'000 + now.tv_nsec;
    const auto startNs = static_cast<std::int64_t>(startTimeTicks()) * (1'000'000'000 / perSecond);
    return startNs > 0 ? std::max<std::int64_t>(nowNs - startNs, 0) : 0;
}

std::uint64_t residentBytes()
{
    std::ifstream file("/proc/self/statm");
    std::uint64_t total = 0;
    std::uint64_t resident = 0;
    file >> total >> resident;
    return file ? resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

std::uint64_t memoryLimitBytes()
{
    // Version 2 first; its word for "none" is no number and reads as 0. Version 1 says "none" with
    // a number near 2^63.
    std::ifstream groups("/proc/self/cgroup");
    std::string line;
    while (std::getline(groups, line)) {
        if (line.starts_with("0::")) {
            const std::string path = "/sys/fs/cgroup" + line.substr(3) + "/memory.max";
            if (const std::uint64_t limit = firstNumber(path.c_str()); limit > 0)
                return limit;
        }
    }
    for (const char* path :
         {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
        const std::uint64_t limit = firstNumber(path);
        if (limit > 0 && limit < (std::uint64_t{1} << 60U))
            return limit;
    }
    return 0;
}

std::vector<std::uint32_t> allowedCpus()
{
    std::vector<std::uint32_t> cpus;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof(set), &set) != 0)
        return cpus;
    for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &set))
            cpus.push_back(cpu);
    }
    return cpus;
}

std::string rangesText(const std::vector<std::uint32_t>& numbers)
{
    std::string text;
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t end = i;
        while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1)
            ++end;
        text += (text.empty() ? "" : ",") + std::to_string(numbers[i]);
        if (end > i)
            text += "-" + std::to_string(numbers[end]);
        i = end + 1;
    }
    return text;
}

std::vector<std::vector<std::uint32_t>> physicalCores(const std::vector<std::uint32_t>& cpus)
{
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> places;
    std::vector<std::vector<std::uint32_t>> cores;
    for (const std::uint32_t cpu : cpus) {
        const std::string folder =
            "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
        std::ifstream coreFile(folder + "core_id");
        std::ifstream packageFile(folder + "physical_package_id");
        std::int64_t core = 0;
        std::int64_t package = 0;
        coreFile >> core;
        packageFile >> package;
        if (!coreFile || !packageFile) {
            cores.push_back({cpu});
            continue;
        }
        const auto [at, isNew] = places.try_emplace(
            {static_cast<std::uint64_t>(package), static_cast<std::uint64_t>(core)}, cores.size());
        if (isNew)
            cores.emplace_back();
        cores[at->second].push_back(cpu);
    }
    return cores;
}

std::optional<std::vector<std::uint32_t>>
coresOf(const std::vector<std::vector<std::uint32_t>>& cores, std::uint32_t localRank,
        std::uint32_t localSize, std::uint32_t threads)
{
    const std::uint64_t needed = std::uint64_t{localSize} * threads;
    if (needed > cores.size() || localRank >= localSize)
        return std::nullopt;
    std::vector<std::uint32_t> cpus;
    for (std::uint32_t i = 0; i < threads; ++i) {
        const auto& core = cores[std::size_t{localRank} * threads + i];
        cpus.insert(cpus.end(), core.begin(), core.end());
    }
    std::ranges::sort(cpus);
    return cpus;
}

bool bindTo(const std::vector<std::uint32_t>& cpus)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const std::uint32_t cpu : cpus)
        CPU_SET(cpu, &set);
    return ::sched_setaffinity(0, sizeof(set), &set) == 0;
}

} // namespace muster::rank
