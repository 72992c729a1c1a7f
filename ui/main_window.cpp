// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/main_window.h"

#include "ui/about_dialog.h"

#include <QAction>
#include <QApplication>
#include <QLabel>
#include <QMenuBar>
#include <QStatusBar>
#include <QToolBar>
#include <QVBoxLayout>

namespace muster::ui {

namespace {

/// Gives a widget the names by which tests and screen readers find it.
template <typename T>
T* named(T* widget, const char* objectName, const QString& accessibleName)
{
    widget->setObjectName(QString::fromLatin1(objectName));
    widget->setAccessibleName(accessibleName);
    return widget;
}

} // namespace

MainWindow::MainWindow(QWidget* parent) : QMainWindow(parent)
{
    named(this, "mainWindow", tr("Muster main window"));
    setWindowTitle(tr("Muster"));
    makeMenus();
    makeModeBar();
    makePage();
    named(statusBar(), "statusBar", tr("Status"));
    statusBar()->showMessage(tr("No run is open"));
    resize(960, 640);
}

void MainWindow::makeMenus()
{
    named(menuBar(), "menuBar", tr("Menu"));
    QMenu* file = named(menuBar()->addMenu(tr("&File")), "fileMenu", tr("File"));
    QAction* quit = file->addAction(tr("&Quit"), QKeySequence::Quit, this, &QWidget::close);
    quit->setObjectName(QStringLiteral("quitAction"));
    quit->setMenuRole(QAction::QuitRole);

    QMenu* help = named(menuBar()->addMenu(tr("&Help")), "helpMenu", tr("Help"));
    QAction* about = help->addAction(tr("&About Muster"), this, [this] {
        auto* dialog = new AboutDialog(this);
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        dialog->open();
    });
    about->setObjectName(QStringLiteral("aboutAction"));
    about->setMenuRole(QAction::AboutRole);
}

void MainWindow::makeModeBar()
{
    auto* bar = named(new QToolBar(tr("Modes"), this), "modeBar", tr("Modes"));
    bar->setMovable(false);
    auto* text = named(new QLabel(tr("No run is open"), bar), "modeBarText", tr("Open run"));
    text->setMargin(8);
    bar->addWidget(text);
    addToolBar(Qt::LeftToolBarArea, bar);
}

void MainWindow::makePage()
{
    auto* page = named(new QWidget(this), "welcomePage", tr("Welcome"));
    auto* text =
        named(new QLabel(tr("This window shows runs in a later version. Evaluate a model with the "
                            "command line: muster run --help"),
                         page),
              "welcomeText", tr("What to do"));
    text->setWordWrap(true);
    text->setAlignment(Qt::AlignCenter);
    text->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
    auto* layout = new QVBoxLayout(page);
    layout->addWidget(text);
    setCentralWidget(page);
}

} // namespace muster::ui
