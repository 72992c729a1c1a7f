// SPDX-License-Identifier: Apache-2.0
#include "launch/process_ref.h"

#include "launch/command.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace muster::launch {

namespace {

namespace fs = std::filesystem;

std::string readProcFile(std::int64_t pid, const char* name)
{
    std::ifstream stream("/proc/" + std::to_string(pid) + "/" + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

/// The text after the closing parenthesis of the command name: "S 1 2 …".
std::string_view afterName(std::string_view stat)
{
    const std::size_t end = stat.rfind(')');
    if (end == std::string_view::npos || end + 2 > stat.size()) {
        return {};
    }
    return stat.substr(end + 2);
}

bool isRankProgram(std::int64_t pid)
{
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/" + std::to_string(pid) + "/exe", error);
    return !error && program.filename().string().starts_with("muster-rank");
}

} // namespace

std::optional<std::uint64_t> parseStartTicks(std::string_view stat)
{
    std::string_view rest = afterName(stat);
    // The state is field 3, the start time field 22.
    for (int field = 3; field < 22; ++field) {
        const std::size_t space = rest.find(' ');
        if (space == std::string_view::npos) {
            return std::nullopt;
        }
        rest.remove_prefix(space + 1);
    }
    std::uint64_t ticks = 0;
    const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), ticks);
    if (parsed.ec != std::errc{}) {
        return std::nullopt;
    }
    return ticks;
}

std::optional<ProcessRef> processRef(std::int64_t pid)
{
    if (pid <= 1) {
        return std::nullopt;
    }
    const std::string stat = readProcFile(pid, "stat");
    const std::string_view rest = afterName(stat);
    const auto ticks = parseStartTicks(stat);
    if (!ticks || rest.starts_with('Z') || rest.starts_with('X')) {
        return std::nullopt;
    }
    return ProcessRef{pid, *ticks};
}

bool isLiveRank(const ProcessRef& process)
{
    const auto now = processRef(process.pid);
    return now && *now == process && isRankProgram(process.pid);
}

std::size_t killRanks(const std::vector<ProcessRef>& processes)
{
    std::size_t count = 0;
    for (const ProcessRef& process : processes) {
        if (process.pid <= 1) {
            continue;
        }
        const auto descriptor =
            static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(process.pid), 0U));
        if (isLiveRank(process)) {
            const bool isSent =
                descriptor >= 0
                    ? ::syscall(SYS_pidfd_send_signal, descriptor, SIGKILL, nullptr, 0U) == 0
                    : ::kill(static_cast<pid_t>(process.pid), SIGKILL) == 0;
            count += isSent ? 1 : 0;
        }
        if (descriptor >= 0) {
            ::close(descriptor);
        }
    }
    return count;
}

std::vector<ProcessRef> ranksOfLaunch(std::string_view launchId)
{
    std::vector<ProcessRef> found;
    if (launchId.empty()) {
        return found;
    }
    std::string wanted(1, '\0');
    wanted += launchIdVariable;
    wanted += '=';
    wanted += launchId;
    wanted += '\0';
    std::error_code error;
    for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        std::int64_t pid = 0;
        const auto parsed = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (parsed.ec != std::errc{} || parsed.ptr != name.data() + name.size() ||
            !isRankProgram(pid)) {
            continue;
        }
        const auto process = processRef(pid);
        if (process && (std::string(1, '\0') + readProcFile(pid, "environ")).find(wanted) !=
                           std::string::npos) {
            found.push_back(*process);
        }
    }
    return found;
}

} // namespace muster::launch
