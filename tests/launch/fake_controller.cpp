// SPDX-License-Identifier: Apache-2.0
// A controller that starts one group and waits; a test kills it.
#include "launch/environment.h"
#include "launch/group_process.h"

#include <QCoreApplication>

#include <cstdio>

int main(int argc, char** argv)
{
    const QCoreApplication application(argc, argv);
    muster::launch::LaunchPlan plan;
    plan.family = muster::launch::Family::OpenMpi;
    plan.environment = muster::launch::inheritedEnvironment();
    muster::launch::LaunchCommand command;
    command.program = argv[1];
    for (int index = 2; index < argc; ++index) {
        command.arguments.emplace_back(argv[index]);
    }
    plan.commands.push_back(command);
    muster::launch::GroupProcess group(plan, {});
    QObject::connect(&group, &muster::launch::GroupProcess::started, &group, [&group] {
        std::printf("%lld\n", static_cast<long long>(group.processIds().front()));
        std::fflush(stdout);
    });
    QObject::connect(&group, &muster::launch::GroupProcess::rankOutput, &group,
                     [](const std::string& line) {
                         std::printf("%s\n", line.c_str());
                         std::fflush(stdout);
                     });
    group.start();
    return QCoreApplication::exec();
}
