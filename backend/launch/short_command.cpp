// SPDX-License-Identifier: Apache-2.0
#include "launch/short_command.h"

#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace muster::launch {

namespace {

constexpr std::size_t maxOutput = 64 * 1024;

std::vector<char*> pointers(std::vector<std::string>& texts)
{
    std::vector<char*> result;
    result.reserve(texts.size() + 1);
    for (std::string& text : texts) {
        result.push_back(text.data());
    }
    result.push_back(nullptr);
    return result;
}

auto broken(const std::filesystem::path& program, const std::string& why)
{
    return fail(Error::Kind::Launch, "E-LAUNCH-001", program.string() + " " + why);
}

} // namespace

Result<ShortAnswer> runShortCommand(const std::filesystem::path& program,
                                    const std::vector<std::string>& arguments,
                                    const std::vector<std::string>& environment,
                                    std::chrono::milliseconds limit)
{
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
        return broken(program, std::string("cannot be started: ") + std::strerror(errno));
    }

    std::vector<std::string> argumentTexts{program.string()};
    argumentTexts.insert(argumentTexts.end(), arguments.begin(), arguments.end());
    std::vector<std::string> environmentTexts = environment;
    std::vector<char*> argv = pointers(argumentTexts);
    std::vector<char*> envp = pointers(environmentTexts);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes,
                             static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP));
    pid_t pid = -1;
    const int failure =
        ::posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(), envp.data());
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (failure != 0) {
        ::close(ends[0]);
        return broken(program, std::string("cannot be started: ") + std::strerror(failure));
    }

    using Clock = std::chrono::steady_clock;
    const Clock::time_point deadline = Clock::now() + limit;
    ShortAnswer answer;
    bool isTimedOut = false;
    int status = 0;
    bool isReaped = false;
    // The end of the process counts, not the end of the pipe: a grandchild may hold that open.
    for (bool isOpen = true; !isReaped || isOpen;) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        if (left.count() <= 0) {
            isTimedOut = true;
            break;
        }
        if (isOpen) {
            pollfd watched{ends[0], POLLIN, 0};
            const int slice = isReaped ? 0 : static_cast<int>(std::min<long>(left.count(), 50));
            const int ready = ::poll(&watched, 1, slice);
            if (ready > 0) {
                std::array<char, 4096> block{};
                const ssize_t count = ::read(ends[0], block.data(), block.size());
                if (count > 0) {
                    const std::size_t room = maxOutput - answer.output.size();
                    answer.output.append(block.data(),
                                         std::min(room, static_cast<std::size_t>(count)));
                    continue;
                }
                if (count == 0 || errno != EINTR) {
                    isOpen = false;
                }
            } else if (isReaped) {
                break;
            }
        } else if (!isReaped) {
            ::poll(nullptr, 0, 1);
        }
        if (!isReaped) {
            const pid_t ended = ::waitpid(pid, &status, WNOHANG);
            isReaped = ended == pid || (ended < 0 && errno != EINTR);
        }
    }
    ::close(ends[0]);
    if (isTimedOut) {
        ::kill(-pid, SIGKILL);
        if (!isReaped) {
            while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
            }
        }
        return broken(program, "did not answer within " + std::to_string(limit.count()) + " ms");
    }
    answer.exitCode = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return answer;
}

} // namespace muster::launch
