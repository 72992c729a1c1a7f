// SPDX-License-Identifier: Apache-2.0
#include "log.h"
#include "verbs.h"

#include <QCoreApplication>

#include <string>
#include <vector>

int main(int argc, char** argv)
{
    QCoreApplication application(argc, argv);
    QCoreApplication::setApplicationName(QStringLiteral("muster"));
    QCoreApplication::setApplicationVersion(QStringLiteral(MUSTER_VERSION));
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    muster::cli::installLog(arguments);
    return muster::cli::runProgram(arguments);
}
