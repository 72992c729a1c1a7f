// SPDX-License-Identifier: Apache-2.0
#include "launch/flavour.h"

#include "launch/environment.h"
#include "launch/short_command.h"

#include <array>
#include <cctype>
#include <chrono>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include <unistd.h>

namespace muster::launch {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t maxAnswerBytes = 4096;
constexpr std::chrono::seconds launcherLimit{5};
constexpr std::chrono::seconds rankLimit{20};

std::string firstLine(std::string_view text)
{
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
        text.remove_prefix(1);
    }
    std::string_view line = text.substr(0, text.find_first_of("\r\n"));
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) {
        line.remove_suffix(1);
    }
    return std::string(line.substr(0, 200));
}

/// The first `digits.digits…` at or after `at`, empty when there is none.
std::string versionAfter(std::string_view text, std::size_t at)
{
    const std::size_t start = text.find_first_of("0123456789", at);
    if (start == std::string_view::npos) {
        return {};
    }
    const std::size_t end = text.find_first_not_of("0123456789.", start);
    std::string version(text.substr(start, end == std::string_view::npos ? end : end - start));
    while (!version.empty() && version.back() == '.') {
        version.pop_back();
    }
    return version.substr(0, 32);
}

int majorOf(std::string_view version)
{
    int major = 0;
    for (const char c : version.substr(0, 4)) {
        if (c < '0' || c > '9') {
            break;
        }
        major = major * 10 + (c - '0');
    }
    return major;
}

std::optional<fs::path> findProgram(std::string_view searchPath, std::string_view name)
{
    std::size_t at = 0;
    while (at <= searchPath.size()) {
        const std::size_t end = std::min(searchPath.find(':', at), searchPath.size());
        const std::string_view folder = searchPath.substr(at, end - at);
        // Relative entries would run whatever lies in the current folder.
        if (!folder.empty() && folder.front() == '/') {
            fs::path candidate = fs::path(folder) / name;
            std::error_code error;
            if (fs::is_regular_file(candidate, error) && ::access(candidate.c_str(), X_OK) == 0) {
                return candidate;
            }
        }
        at = end + 1;
    }
    return std::nullopt;
}

/// Rank programs of the request or, without one, those that are found, each path once.
std::vector<fs::path> rankCandidates(const FlavourRequest& request)
{
    if (!request.rankProgram.empty()) {
        return {request.rankProgram};
    }
    std::vector<fs::path> found;
    for (const char* name : {"muster-rank", "muster-rank-mpich"}) {
        std::optional<fs::path> candidate;
        if (!request.ownFolder.empty()) {
            candidate = findProgram(fs::absolute(request.ownFolder).string(), name);
        }
        if (!candidate) {
            candidate = findProgram(request.searchPath, name);
        }
        if (candidate) {
            found.push_back(*candidate);
        }
    }
    return found;
}

std::vector<fs::path> launcherCandidates(const FlavourRequest& request, Family family)
{
    if (!request.launcherPath.empty()) {
        return {request.launcherPath};
    }
    static constexpr std::array openMpi = {"mpirun.openmpi", "mpirun", "mpiexec"};
    static constexpr std::array mpich = {"mpiexec.hydra", "mpirun.mpich", "mpirun"};
    std::vector<fs::path> found;
    for (const char* name : family == Family::OpenMpi ? openMpi : mpich) {
        if (auto candidate = findProgram(request.searchPath, name)) {
            found.push_back(*candidate);
        }
    }
    return found;
}

/// The first launcher of the family that answers; the last error when none does.
Result<LauncherInfo> findLauncher(const FlavourRequest& request, Family family)
{
    const std::vector<fs::path> candidates = launcherCandidates(request, family);
    Error last{Error::Kind::Launch, "E-LAUNCH-005",
               "no launcher of " + std::string(familyName(family)) +
                   " was found in PATH; install it (installer/bootstrap does), name it with "
                   "cluster.launcher_path, or use the launcher \"plain\""};
    for (const fs::path& candidate : candidates) {
        auto info = inspectLauncher(candidate);
        if (!info) {
            last = info.error();
            continue;
        }
        if (info->family == family || info->family == Family::Slurm) {
            return info;
        }
        if (!request.launcherPath.empty()) {
            return info;
        }
    }
    return fail(std::move(last));
}

std::string described(const LauncherInfo& launcher)
{
    std::string text(familyName(launcher.family));
    if (!launcher.version.empty()) {
        text += " " + launcher.version;
    }
    return text;
}

} // namespace

std::string_view familyName(Family family)
{
    switch (family) {
    case Family::OpenMpi:
        return "Open MPI";
    case Family::Mpich:
        return "MPICH";
    case Family::Slurm:
        return "Slurm";
    case Family::Plain:
        break;
    }
    return "plain processes";
}

Result<LauncherInfo> parseLauncherVersion(std::string_view text)
{
    text = text.substr(0, maxAnswerBytes);
    LauncherInfo info;
    for (const std::string_view mark : {"(Open MPI)", "(OpenRTE)", "Open MPI"}) {
        if (const std::size_t at = text.find(mark); at != std::string_view::npos) {
            info.family = Family::OpenMpi;
            info.version = versionAfter(text, at + mark.size());
            info.major = majorOf(info.version);
            return info;
        }
    }
    if (text.starts_with("HYDRA") || text.find("HYDRA build") != std::string_view::npos) {
        info.family = Family::Mpich;
        if (const std::size_t at = text.find("Version:"); at != std::string_view::npos) {
            info.version = versionAfter(text.substr(0, text.find('\n', at)), at);
        }
        info.major = majorOf(info.version);
        return info;
    }
    if (text.starts_with("slurm ")) {
        info.family = Family::Slurm;
        info.version = versionAfter(text, 0);
        info.major = majorOf(info.version);
        return info;
    }
    return fail(
        Error::Kind::Launch, "E-LAUNCH-002",
        "the launcher is none that Muster knows (Open MPI, MPICH or Slurm); it answers: \"" +
            firstLine(text) + "\"");
}

Result<RankProgramInfo> parseMpiLibrary(std::string_view text)
{
    text = text.substr(0, maxAnswerBytes);
    RankProgramInfo info;
    info.library = firstLine(text);
    if (info.library.starts_with("Open MPI")) {
        info.library = info.library.substr(0, info.library.find(','));
        info.family = Family::OpenMpi;
        return info;
    }
    if (info.library.starts_with("MPICH")) {
        // "MPICH Version:\t4.0.2": the tab is for a table that nobody sees here.
        const std::string version = versionAfter(info.library, 0);
        info.library = "MPICH " + version;
        info.family = Family::Mpich;
        return info;
    }
    return fail(Error::Kind::Launch, "E-LAUNCH-004",
                "the rank program names no MPI library that Muster knows: \"" + info.library +
                    "\"");
}

Result<LauncherInfo> inspectLauncher(const fs::path& program)
{
    auto answer = runShortCommand(program, {"--version"}, inheritedEnvironment(), launcherLimit);
    if (!answer) {
        return fail(answer.error());
    }
    auto info = parseLauncherVersion(answer->output);
    if (!info) {
        return fail(info.error().during(program.string()));
    }
    info->path = program;
    return info;
}

Result<RankProgramInfo> inspectRank(const fs::path& program)
{
    auto versionAnswer = std::async(std::launch::async, [&program] {
        return runShortCommand(program, {"--version"}, inheritedEnvironment(), rankLimit);
    });
    auto answer = runShortCommand(program, {"--mpi-library"}, inheritedEnvironment(), rankLimit);
    auto version = versionAnswer.get();
    if (!answer) {
        return fail(answer.error());
    }
    if (answer->exitCode != 0) {
        return fail(Error::Kind::Launch, "E-LAUNCH-001",
                    program.string() + " does not say which MPI library it uses (status " +
                        std::to_string(answer->exitCode) + "): " + firstLine(answer->output));
    }
    auto info = parseMpiLibrary(answer->output);
    if (!info) {
        return fail(info.error().during(program.string()));
    }
    if (version) {
        info->version = firstLine(version->output);
    }
    info->path = program;
    return info;
}

Status checkMatch(const LauncherInfo& launcher, const RankProgramInfo& rank)
{
    if (launcher.family == Family::Plain || launcher.family == Family::Slurm ||
        launcher.family == rank.family) {
        return {};
    }
    std::string program = rank.path.string();
    return fail(Error::Kind::Launch, "E-LAUNCH-003",
                "your launcher is " + described(launcher) + " (" + launcher.path.string() +
                    "), the rank program is built with " + rank.library + " (" + program +
                    "): together they would run as separate worlds of one rank each. Nothing was "
                    "started. Use the launcher of " +
                    std::string(familyName(rank.family)) + " or the rank program built with " +
                    std::string(familyName(launcher.family)) + ".");
}

Result<Flavour> chooseFlavour(const FlavourRequest& request)
{
    const std::vector<fs::path> programs = rankCandidates(request);
    if (programs.empty()) {
        return fail(Error::Kind::Launch, "E-LAUNCH-005",
                    "no rank program was found: muster-rank is neither in " +
                        request.ownFolder.string() +
                        " nor in PATH; build it or name it with cluster.rank_program");
    }

    std::vector<Family> families;
    switch (request.launcher) {
    case config::Launcher::OpenMpi:
        families = {Family::OpenMpi};
        break;
    case config::Launcher::Mpich:
        families = {Family::Mpich};
        break;
    case config::Launcher::Plain:
        break;
    case config::Launcher::Auto:
        families = {Family::OpenMpi, Family::Mpich};
        break;
    }

    if (request.launcher == config::Launcher::Plain) {
        auto rank = inspectRank(programs.front());
        if (!rank) {
            return fail(rank.error());
        }
        return Flavour{LauncherInfo{}, std::move(*rank)};
    }

    if (!request.launcherPath.empty()) {
        auto launcher = inspectLauncher(request.launcherPath);
        if (!launcher) {
            return fail(launcher.error());
        }
        if (request.launcher != config::Launcher::Auto && launcher->family != Family::Slurm &&
            launcher->family != families.front()) {
            return fail(Error::Kind::Launch, "E-LAUNCH-003",
                        request.launcherPath.string() + " is the launcher of " +
                            described(*launcher) + ", and the configuration asks for " +
                            std::string(familyName(families.front())));
        }
        families = {launcher->family};
    }

    Error last;
    std::vector<RankProgramInfo> ranks;
    std::size_t askedCount = 0;
    const auto askUntil = [&](std::optional<Family> wanted) {
        while (askedCount < programs.size() &&
               (!wanted || ranks.empty() || ranks.back().family != *wanted)) {
            auto rank = inspectRank(programs[askedCount++]);
            if (rank) {
                ranks.push_back(std::move(*rank));
            } else {
                last = rank.error();
            }
        }
    };
    // The launcher of the first family answers while the rank program loads its libraries.
    auto firstLauncher =
        std::async(std::launch::async, [&] { return findLauncher(request, families.front()); });
    askUntil(families.front());

    for (const Family family : families) {
        auto launcher = firstLauncher.valid() ? firstLauncher.get() : findLauncher(request, family);
        if (!launcher) {
            last = launcher.error();
            continue;
        }
        askUntil(launcher->family);
        for (const RankProgramInfo& rank : ranks) {
            Status matches = checkMatch(*launcher, rank);
            if (matches) {
                return Flavour{*launcher, rank};
            }
            last = matches.error();
        }
    }
    askUntil(std::nullopt);
    if (ranks.empty()) {
        return fail(std::move(last));
    }
    if (request.launcher == config::Launcher::Auto && request.launcherPath.empty()) {
        return Flavour{LauncherInfo{}, ranks.front()};
    }
    return fail(std::move(last));
}

} // namespace muster::launch
