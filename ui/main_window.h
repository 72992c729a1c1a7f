// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMainWindow>

namespace muster::ui {

/// The window of muster-desktop: menu, mode bar, the page of the chosen mode, status bar.
///
/// Lives in the GUI thread. Shows no run yet and says so.
class MainWindow final : public QMainWindow {
    Q_OBJECT

public:
    explicit MainWindow(QWidget* parent = nullptr);

private:
    void makeMenus();
    void makeModeBar();
    void makePage();
};

} // namespace muster::ui
