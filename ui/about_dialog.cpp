// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/about_dialog.h"

#include <QCoreApplication>
#include <QDialogButtonBox>
#include <QLabel>
#include <QVBoxLayout>

namespace muster::ui {

namespace {

QString translated(const char* text)
{
    return QCoreApplication::translate("AboutDialog", text);
}

} // namespace

QString aboutText()
{
    return translated(
               "Muster %1\n"
               "Evaluates models over many ranks and proves that every sample counted once.\n\n"
               "Built with Qt %2, running with Qt %3.\n\n"
               "The desktop application is free software under the GNU General Public "
               "License, version 3 or later, and comes without any warranty. The command "
               "line and the rank program are under the Apache License 2.0.")
        .arg(QStringLiteral(MUSTER_VERSION), QStringLiteral(QT_VERSION_STR),
             QString::fromLatin1(qVersion()));
}

AboutDialog::AboutDialog(QWidget* parent) : QDialog(parent)
{
    setObjectName(QStringLiteral("aboutDialog"));
    setWindowTitle(translated("About Muster"));
    setAccessibleName(windowTitle());

    auto* text = new QLabel(aboutText(), this);
    text->setObjectName(QStringLiteral("aboutText"));
    text->setAccessibleName(translated("Version and licence"));
    text->setWordWrap(true);
    text->setMinimumWidth(420);
    text->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);

    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    buttons->setObjectName(QStringLiteral("aboutButtons"));
    buttons->setAccessibleName(translated("Close this window"));
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);

    auto* layout = new QVBoxLayout(this);
    layout->addWidget(text);
    layout->addWidget(buttons);
}

} // namespace muster::ui
