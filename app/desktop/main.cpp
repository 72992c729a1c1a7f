// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/main_window.h"

#include <QApplication>
#include <QCommandLineParser>

#include <cstdio>
#include <cstring>

int main(int argc, char** argv)
{
    // Answered before a display is needed.
    for (int index = 1; index < argc; ++index) {
        if (std::strcmp(argv[index], "--version") == 0 || std::strcmp(argv[index], "-v") == 0) {
            std::puts("muster-desktop " MUSTER_VERSION);
            return 0;
        }
    }
    const QApplication application(argc, argv);
    QCoreApplication::setApplicationName(QStringLiteral("muster-desktop"));
    QCoreApplication::setApplicationVersion(QStringLiteral(MUSTER_VERSION));
    QGuiApplication::setApplicationDisplayName(QStringLiteral("Muster"));
    QGuiApplication::setDesktopFileName(QStringLiteral("muster"));

    QCommandLineParser parser;
    parser.setApplicationDescription(QCoreApplication::translate(
        "main", "Evaluates models over many ranks and proves that every sample counted once."));
    parser.addHelpOption();
    parser.addVersionOption();
    parser.process(application);

    muster::ui::MainWindow window;
    window.show();
    return QApplication::exec();
}
