// SPDX-License-Identifier: Apache-2.0
// Stands in for a launcher or a rank program in tests: one behaviour per first argument.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

void writeAll(const std::string& text)
{
    std::size_t at = 0;
    while (at < text.size()) {
        const ssize_t count = ::write(STDOUT_FILENO, text.data() + at, text.size() - at);
        if (count <= 0) {
            return;
        }
        at += static_cast<std::size_t>(count);
    }
}

[[noreturn]] void sleepForever()
{
    while (true) {
        ::pause();
    }
}

int answerVersion(std::string_view name)
{
    if (name.starts_with("mpirun.openmpi")) {
        writeAll("mpirun.openmpi (OpenRTE) 4.1.4\n\nReport bugs to nobody\n");
    } else if (name.starts_with("mpirun5")) {
        writeAll("mpirun (Open MPI) 5.0.9\n");
    } else if (name.starts_with("mpiexec.hydra") || name.starts_with("mpirun.mpich")) {
        writeAll("HYDRA build details:\n    Version:                                 4.0.2\n");
    } else if (name.starts_with("silent")) {
        sleepForever();
    } else if (name.starts_with("muster-rank")) {
        writeAll("muster-rank 0.1.0\n");
    } else {
        writeAll("an unknown program 1.0\n");
    }
    return 0;
}

int answerLibrary(std::string_view name)
{
    if (name == "muster-rank") {
        writeAll("Open MPI v4.1.4, package: Debian, ident: 4.1.4, May 26, 2022\n");
    } else if (name == "muster-rank-mpich") {
        writeAll("MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7\n");
    } else {
        std::fputs("unknown option --mpi-library\n", stderr);
        return 2;
    }
    return 0;
}

/// What the process found when it started: session, signals, descriptors, processors.
void printState()
{
    int deathSignal = 0;
    ::prctl(PR_GET_PDEATHSIG, &deathSignal);
    sigset_t mask;
    ::sigprocmask(SIG_SETMASK, nullptr, &mask);
    struct sigaction action = {};
    ::sigaction(SIGINT, nullptr, &action);
    int descriptors = 0;
    if (DIR* folder = ::opendir("/proc/self/fd")) {
        while (const dirent* entry = ::readdir(folder)) {
            const int number = std::atoi(entry->d_name);
            descriptors += entry->d_name[0] != '.' && number > 2 && number != ::dirfd(folder);
        }
        ::closedir(folder);
    }
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    ::sched_getaffinity(0, sizeof cpus, &cpus);
    writeAll("leader=" + std::to_string(::getsid(0) == ::getpid()) +
             " death=" + std::to_string(deathSignal) +
             " blocked=" + std::to_string(::sigismember(&mask, SIGTERM)) +
             " ignored=" + std::to_string(action.sa_handler == SIG_IGN) + " descriptors=" +
             std::to_string(descriptors) + " cpus=" + std::to_string(CPU_COUNT(&cpus)) + "\n");
}

} // namespace

int main(int argc, char** argv)
{
    const std::string name = std::filesystem::path(argv[0]).filename().string();
    int first = 1;
    if (argc > 3 && std::string_view(argv[1]) == "--plain") {
        writeAll("rank " + std::string(argv[2]) + " of " + argv[3] + "\n");
        first = 4;
    }
    const std::string_view what = argc > first ? argv[first] : "ok";
    const char* more = argc > first + 1 ? argv[first + 1] : "";

    if (what == "--version") {
        return answerVersion(name);
    }
    if (what == "--mpi-library") {
        return answerLibrary(name);
    }
    if (what == "fail") {
        std::fputs("something is wrong\n", stderr);
        return 3;
    }
    if (what == "status") {
        return std::atoi(more);
    }
    if (what == "crash") {
        ::raise(SIGKILL);
    }
    if (what == "silent") {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        writeAll("silent\n");
        sleepForever();
    }
    if (what == "stubborn") {
        ::signal(SIGTERM, SIG_IGN);
        ::signal(SIGINT, SIG_IGN);
        ::signal(SIGHUP, SIG_IGN);
        writeAll("stubborn " + std::to_string(::getpid()) + "\n");
        sleepForever();
    }
    if (what == "flood") {
        for (int line = 0, count = std::atoi(more); line < count; ++line) {
            writeAll("line " + std::to_string(line) + "\n");
        }
    }
    if (what == "longline") {
        writeAll(std::string(static_cast<std::size_t>(std::atoi(more)), 'x') +
                 "\n\033[2J\xff\xfe end\r\nlast without feed");
    }
    if (what == "environment") {
        for (char** entry = ::environ; *entry != nullptr; ++entry) {
            writeAll(std::string(*entry) + "\n");
        }
    }
    if (what == "state") {
        printState();
    }
    if (what == "spawn") {
        // Starts `more` with the next argument and waits, as a launcher does.
        const pid_t child = ::fork();
        if (child == 0) {
            ::execl(more, more, argv[first + 2], nullptr);
            ::_exit(127);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return 0;
}
