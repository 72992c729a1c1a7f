// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "launch/flavour.h"
#include "launch/private_directory.h"
#include "launch/topology.h"
#include "run_end.h"
#include "terminal.h"
#include "verbs.h"

#include <QCoreApplication>
#include <fmt/format.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <set>

#include <langinfo.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace muster::cli {

namespace {

enum class State { Ok, Warn, Fail };

/// One line of the table: what was looked at, what was found, what to do about it.
struct Check {
    std::string name;
    State state = State::Ok;
    std::string found;
    std::string fix;
};

const char* stateName(State state)
{
    switch (state) {
    case State::Ok:
        return "ok";
    case State::Warn:
        return "warn";
    case State::Fail:
        return "fail";
    }
    return "fail";
}

std::string variable(const char* name)
{
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

std::vector<std::filesystem::path> onSearchPath(const std::vector<std::string>& names,
                                                const std::filesystem::path& first)
{
    std::vector<std::filesystem::path> folders;
    if (!first.empty())
        folders.push_back(first);
    const std::string path = variable("PATH");
    for (std::size_t at = 0; at <= path.size();) {
        const std::size_t end = std::min(path.find(':', at), path.size());
        if (end > at)
            folders.emplace_back(path.substr(at, end - at));
        at = end + 1;
    }
    std::vector<std::filesystem::path> found;
    std::set<std::filesystem::path> seen;
    for (const std::string& name : names) {
        for (const auto& folder : folders) {
            const auto program = folder / name;
            std::error_code error;
            const auto real = std::filesystem::canonical(program, error);
            if (error || access(program.c_str(), X_OK) != 0 || !seen.insert(real).second)
                continue;
            found.push_back(program);
        }
    }
    return found;
}

void addLaunchers(std::vector<Check>& checks, std::vector<launch::LauncherInfo>& launchers)
{
    for (const auto& program :
         onSearchPath({"mpirun.openmpi", "mpirun.mpich", "mpirun", "mpiexec.hydra", "srun"}, {})) {
        Check check{"launcher", State::Ok, program.string(), {}};
        auto info = launch::inspectLauncher(program);
        if (info) {
            info->path = program;
            check.found += fmt::format(": {} {}", launch::familyName(info->family), info->version);
            launchers.push_back(std::move(*info));
        } else {
            check.state = State::Warn;
            check.found += ": " + info.error().message;
            check.fix = "remove it from PATH, or name another with --launcher-path";
        }
        checks.push_back(std::move(check));
    }
    if (launchers.empty())
        checks.push_back({"launcher", State::Warn,
                          "no MPI launcher is on PATH; ranks start as plain processes",
                          "install openmpi-bin or mpich"});
}

void addRanks(std::vector<Check>& checks, const std::vector<launch::LauncherInfo>& launchers)
{
    const std::filesystem::path own = QCoreApplication::applicationDirPath().toStdString();
    bool hasMatch = false;
    bool hasRank = false;
    for (const auto& program : onSearchPath(
             {"muster-rank", "muster-rank-openmpi", "muster-rank-mpich", "muster-rank-plain"},
             own)) {
        Check check{"rank program", State::Ok, program.string(), {}};
        auto rank = launch::inspectRank(program);
        if (!rank) {
            check.state = State::Fail;
            check.found += ": " + rank.error().message;
            check.fix = "LibTorch or the MPI library is missing; run installer/bootstrap and "
                        "build again";
            checks.push_back(std::move(check));
            continue;
        }
        hasRank = true;
        check.found += fmt::format(": {}; {}", rank->version,
                                   rank->library.empty() ? "no MPI" : rank->library);
        bool isMatched = rank->family == launch::Family::Plain;
        for (const launch::LauncherInfo& launcher : launchers)
            isMatched = isMatched || launch::checkMatch(launcher, *rank).has_value();
        hasMatch = hasMatch || isMatched;
        if (!isMatched) {
            check.state = State::Warn;
            check.fix = fmt::format("no launcher of {} is on PATH; ranks of this program start as "
                                    "plain processes only",
                                    launch::familyName(rank->family));
        }
        checks.push_back(std::move(check));
    }
    if (!hasRank)
        checks.push_back({"rank program", State::Fail, "no working muster-rank was found",
                          "build with -DMUSTER_RANK=ON, or name one with --rank-program"});
}

void addFolders(std::vector<Check>& checks)
{
    const std::string runtime = variable("XDG_RUNTIME_DIR");
    Check check{"runtime folder", State::Ok, runtime, {}};
    struct stat status {};
    if (runtime.empty()) {
        check.found = "XDG_RUNTIME_DIR is not set; sockets go below the temporary folder";
    } else if (stat(runtime.c_str(), &status) != 0 || status.st_uid != geteuid() ||
               (status.st_mode & 077U) != 0) {
        check.state = State::Warn;
        check.found += " does not exist or is not private to this user";
        check.fix = "unset XDG_RUNTIME_DIR, or give it mode 0700";
    }
    checks.push_back(std::move(check));

    auto folder = launch::PrivateDirectory::create("rank.sock");
    if (folder)
        checks.push_back({"private folder",
                          State::Ok,
                          folder->path().parent_path().string() + " takes sockets",
                          {}});
    else
        checks.push_back({"private folder", State::Fail, folder.error().message,
                          "set TMPDIR to a short path that you can write to"});
}

std::uint64_t memoryKib(const std::string& text, std::string_view name)
{
    const std::size_t at = text.find(name);
    return at == std::string::npos ? 0
                                   : std::strtoull(text.c_str() + at + name.size(), nullptr, 10);
}

void addMachine(std::vector<Check>& checks)
{
    const launch::CpuTopology topology = launch::machineTopology();
    std::string cores =
        fmt::format("{} usable cores of {}", topology.usableCores(), topology.cores.size());
    if (topology.quotaCpus > 0.0)
        cores += fmt::format(", a quota of {:.1f} CPUs", topology.quotaCpus);
    checks.push_back({"cores", State::Ok, cores, {}});

    constexpr std::uint64_t kib = 1024;
    const auto text = readFile("/proc/meminfo", 65536).value_or(std::string());
    const std::uint64_t available = memoryKib(text, "MemAvailable:") / kib;
    const std::uint64_t total = memoryKib(text, "MemTotal:") / kib;
    Check memory{"memory", State::Ok, fmt::format("{} of {} MiB available", available, total), {}};
    constexpr std::uint64_t littleMib = 1024;
    if (available < littleMib) {
        memory.state = State::Warn;
        memory.fix = "use fewer ranks; each needs some hundred MiB beside the shared weights";
    }
    checks.push_back(std::move(memory));

    struct statvfs space {};
    if (statvfs("/dev/shm", &space) == 0) {
        const std::uint64_t mib = space.f_bavail * space.f_frsize / kib / kib;
        constexpr std::uint64_t smallMib = 64;
        Check shared{"shared memory", State::Ok, fmt::format("{} MiB free in /dev/shm", mib), {}};
        if (mib < smallMib) {
            shared.state = State::Warn;
            shared.fix = "MPI keeps its queues there: give the container more, such as "
                         "--shm-size=1g";
        }
        checks.push_back(std::move(shared));
    } else {
        checks.push_back({"shared memory", State::Warn, "/dev/shm does not exist",
                          "mount it: MPI keeps its queues there"});
    }
}

void addLocale(std::vector<Check>& checks)
{
    std::string name;
    for (const char* candidate : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        if (name.empty())
            name = variable(candidate);
    }
    const std::string codeset = nl_langinfo(CODESET);
    const bool isUtf8 = codeset == "UTF-8";
    checks.push_back({"locale", isUtf8 ? State::Ok : State::Warn,
                      fmt::format("{}, {}", name.empty() ? "not set" : name, codeset),
                      isUtf8 ? "" : "set LC_ALL=C.UTF-8 to see texts of all languages"});
    if (geteuid() == 0)
        checks.push_back({"user",
                          State::Ok,
                          "root; the launcher is told to accept that (cluster.allow_root)",
                          {}});
}

} // namespace

ExitCode doctorVerb(const Context& context)
{
    std::vector<Check> checks;
    std::vector<launch::LauncherInfo> launchers;
    addLaunchers(checks, launchers);
    addRanks(checks, launchers);
    addFolders(checks);
    addMachine(checks);
    addLocale(checks);

    Answer answer;
    answer.json["checks"] = nlohmann::ordered_json::array();
    const Terminal terminal = terminalOf(STDOUT_FILENO, context.invocation.global);
    State worst = State::Ok;
    for (const Check& check : checks) {
        worst = std::max(worst, check.state);
        answer.json["checks"].push_back({{"name", check.name},
                                         {"state", stateName(check.state)},
                                         {"found", check.found},
                                         {"fix", check.fix}});
        std::string state = padded(stateName(check.state), 5);
        if (terminal.hasColour) {
            const int colour = check.state == State::Ok ? 32 : check.state == State::Warn ? 33 : 31;
            state = fmt::format("\x1b[{}m{}\x1b[0m", colour, state);
        }
        answer.text += fmt::format("{} {} {}\n", state, padded(check.name, 15), check.found);
        if (!check.fix.empty())
            answer.text += fmt::format("{} {}\n", std::string(21, ' '), check.fix);
    }
    answer.json["state"] = stateName(worst);
    answer.exitCode = static_cast<int>(worst == State::Fail ? ExitCode::Invalid : ExitCode::Done);
    return context.console.answer(answer);
}

} // namespace muster::cli
