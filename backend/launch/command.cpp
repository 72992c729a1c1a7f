// SPDX-License-Identifier: Apache-2.0
#include "launch/command.h"

#include "launch/environment.h"

#include <algorithm>

namespace muster::launch {

namespace {

using config::Switch;

std::string counted(std::uint32_t count, std::string_view noun)
{
    return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

void append(std::vector<std::string>& list, std::initializer_list<const char*> more)
{
    list.insert(list.end(), more.begin(), more.end());
}

std::vector<std::string> openMpiOptions(const LaunchRequest& request)
{
    const bool isFive = request.launcher.major >= 5;
    std::vector<std::string> options{"-n", std::to_string(request.ranks), "--bind-to", "none"};
    // Passed whether needed or not: the launcher's own count of slots may be lower than ours.
    if (request.oversubscribe != Switch::Off) {
        if (isFive) {
            append(options, {"--map-by", ":OVERSUBSCRIBE"});
        } else {
            append(options, {"--oversubscribe"});
        }
    }
    if (request.isRoot) {
        append(options, {"--allow-run-as-root"});
    }
    append(options, {"--mca", "pml", "ob1"});
    if (isFive) {
        append(options, {"--mca", "btl", "self,sm"});
    } else {
        append(options, {"--mca", "btl", "self,vader", "--mca", "plm", "isolated"});
    }
    return options;
}

} // namespace

Result<LaunchPlan> buildLaunch(const LaunchRequest& request)
{
    if (request.ranks == 0) {
        return fail(Error::Kind::Invalid, "E-LAUNCH-009",
                    "cluster.ranks is 0: a run needs at least one rank");
    }

    LaunchPlan plan;
    plan.family = request.launcher.family;
    plan.launchId = request.launchId;

    if (request.ranks > request.physicalCores) {
        const std::string shortfall = counted(request.ranks, "rank") + ", " +
                                      counted(request.physicalCores, "core") + " on this machine";
        if (request.oversubscribe == Switch::Off) {
            return fail(Error::Kind::Launch, "E-LAUNCH-011",
                        shortfall +
                            ", and cluster.oversubscribe is false. Nothing was started. Use fewer "
                            "ranks or set it to \"auto\".");
        }
        plan.notices.push_back(shortfall + ": the ranks share cores and each is slower");
    }
    if (request.isRoot && request.launcher.family == Family::OpenMpi) {
        if (request.allowRoot == Switch::Off) {
            return fail(Error::Kind::Launch, "E-LAUNCH-010",
                        "you are root, Open MPI starts nothing as root unless told to, and "
                        "cluster.allow_root is false. Nothing was started. Run as another user or "
                        "set it to \"auto\".");
        }
        plan.notices.emplace_back("running as root: Open MPI is told to allow it");
    }

    plan.environment = childEnvironment(request.environment, request.passNames);
    const std::string threads = std::to_string(std::max(1U, request.threadsPerRank));
    setVariable(plan.environment, "OMP_NUM_THREADS", threads);
    setVariable(plan.environment, "MKL_NUM_THREADS", threads);
    if (!request.temporaryFolder.empty()) {
        setVariable(plan.environment, "TMPDIR", request.temporaryFolder.string());
    }
    if (!request.launchId.empty()) {
        setVariable(plan.environment, launchIdVariable, request.launchId);
    }

    LaunchCommand command;
    command.program = request.launcher.path;
    switch (request.launcher.family) {
    case Family::OpenMpi:
        command.arguments = openMpiOptions(request);
        break;
    case Family::Mpich:
        command.arguments = {"-n",  std::to_string(request.ranks), "-launcher", "fork", "-bind-to",
                             "none"};
        setVariable(plan.environment, "UCX_TLS", "self,sm");
        break;
    case Family::Slurm:
        return fail(Error::Kind::Launch, "E-LAUNCH-012",
                    "the launcher is srun of Slurm: starting ranks through Slurm needs a cluster "
                    "profile. Use the launcher of your MPI on this machine, or \"plain\".");
    case Family::Plain:
        break;
    }

    if (request.launcher.family == Family::Plain) {
        for (std::uint32_t rank = 0; rank < request.ranks; ++rank) {
            LaunchCommand one;
            one.program = request.rankProgram;
            one.arguments = {"--plain", std::to_string(rank), std::to_string(request.ranks)};
            one.arguments.insert(one.arguments.end(), request.rankArguments.begin(),
                                 request.rankArguments.end());
            plan.commands.push_back(std::move(one));
        }
    } else {
        command.arguments.push_back(request.rankProgram.string());
        command.arguments.insert(command.arguments.end(), request.rankArguments.begin(),
                                 request.rankArguments.end());
        plan.commands.push_back(std::move(command));
    }
    for (const auto& [name, value] : request.setVariables) {
        setVariable(plan.environment, name, value);
    }
    std::sort(plan.environment.begin(), plan.environment.end());
    return plan;
}

std::string commandText(const LaunchCommand& command)
{
    static constexpr std::string_view plain =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+./:,=@%";
    std::string text;
    const auto add = [&text](const std::string& word) {
        text += text.empty() ? "" : " ";
        if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) {
            text += word;
            return;
        }
        text += '\'';
        for (const char c : word) {
            text += c == '\'' ? std::string("'\\''") : std::string(1, c);
        }
        text += '\'';
    };
    add(command.program.string());
    for (const std::string& argument : command.arguments) {
        add(argument);
    }
    return text;
}

} // namespace muster::launch
