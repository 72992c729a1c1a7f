// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/main_window.h"

#include "ui/about_dialog.h"

#include <QAction>
#include <QLabel>
#include <QStatusBar>
#include <QToolBar>
#include <QtTest>

using namespace muster::ui;

class TestMainWindow : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void opensAndSaysThatNoRunIsOpen()
    {
        MainWindow window;
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        const auto* text = window.findChild<QLabel*>("modeBarText");
        QVERIFY(text != nullptr);
        QCOMPARE(text->text(), QString("No run is open"));
        QVERIFY(text->isVisible());
        QCOMPARE(window.statusBar()->currentMessage(), QString("No run is open"));
    }

    void everyNamedWidgetHasAnAccessibleName()
    {
        MainWindow window;
        const AboutDialog dialog(&window);
        int count = 0;
        for (const QWidget* widget : window.findChildren<QWidget*>()) {
            const QString name = widget->objectName();
            if (name.isEmpty() || name.startsWith("qt_")) {
                continue;
            }
            QVERIFY2(!widget->accessibleName().isEmpty(), qPrintable(name));
            ++count;
        }
        QVERIFY(count >= 8);
        QVERIFY(!window.accessibleName().isEmpty());
    }

    void theAboutBoxNamesVersionAndLicence()
    {
        MainWindow window;
        window.show();
        auto* action = window.findChild<QAction*>("aboutAction");
        QVERIFY(action != nullptr);
        action->trigger();
        auto* dialog = window.findChild<QDialog*>("aboutDialog");
        QVERIFY(dialog != nullptr);
        QTRY_VERIFY(dialog->isVisible());
        const QString text = dialog->findChild<QLabel*>("aboutText")->text();
        QVERIFY(text.contains(MUSTER_VERSION));
        QVERIFY(text.contains(qVersion()));
        QVERIFY(text.contains("General Public License, version 3 or later"));
    }
};

QTEST_MAIN(TestMainWindow)
#include "tst_main_window.moc"
