// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QDialog>

namespace muster::ui {

/// Says which version this is, what it is built with and under which licence it comes.
class AboutDialog final : public QDialog {
public:
    explicit AboutDialog(QWidget* parent = nullptr);
};

/// The text of the dialog, in the language of the program.
[[nodiscard]] QString aboutText();

} // namespace muster::ui
