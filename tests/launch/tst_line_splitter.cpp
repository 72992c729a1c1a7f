// SPDX-License-Identifier: Apache-2.0
#include "launch/line_splitter.h"

#include <QtTest>

using muster::launch::LineSplitter;
using muster::launch::safeLine;

class TestLineSplitter : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cutsAtLineFeedsWhateverThePieces_data()
    {
        QTest::addColumn<int>("piece");
        for (int piece = 1; piece <= 9; ++piece) {
            QTest::addRow("%d bytes at a time", piece) << piece;
        }
    }

    void cutsAtLineFeedsWhateverThePieces()
    {
        QFETCH(int, piece);
        const std::string bytes = "one\r\n\nzwei \xc3\xa4\nlast";
        std::vector<std::string> lines;
        LineSplitter splitter([&lines](const std::string& line) { lines.push_back(line); });
        for (std::size_t at = 0; at < bytes.size(); at += static_cast<std::size_t>(piece)) {
            splitter.feed(std::string_view(bytes).substr(at, static_cast<std::size_t>(piece)));
        }
        splitter.finish();
        splitter.finish();
        const std::vector<std::string> expected = {"one", "", "zwei \xc3\xa4", "last"};
        QCOMPARE(lines, expected);
    }

    void aHugeLineIsCut()
    {
        std::vector<std::string> lines;
        LineSplitter splitter([&lines](const std::string& line) { lines.push_back(line); });
        const std::string block(1 << 20, 'x');
        for (int count = 0; count < 10; ++count) {
            splitter.feed(block); // F-16
        }
        splitter.feed("\nnext\n");
        QCOMPARE(lines.size(), std::size_t{2});
        QVERIFY(lines[0].size() < LineSplitter::maxLineBytes + 64);
        QVERIFY(lines[0].ends_with("(10420224 more bytes in the log)"));
        QCOMPARE(lines[1], std::string("next"));
    }

    void aLineCannotSteerTheTerminal_data()
    {
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<QString>("shown");
        QTest::newRow("F-16 escape") << QByteArray("\033[2Jx") << QString::fromUtf8("␛[2Jx");
        QTest::newRow("F-16 broken UTF-8") << QByteArray("a\xff\xc3") << QString::fromUtf8("a��");
        QTest::newRow("zero") << QByteArray("a\0b", 3) << QString::fromUtf8("a␀b");
        QTest::newRow("C1 control") << QByteArray("a\xc2\x9b"
                                                  "b")
                                    << QString::fromUtf8("a�b");
        QTest::newRow("delete") << QByteArray("\x7f") << QString::fromUtf8("␡");
        QTest::newRow("tab and text stay")
            << QByteArray("\t\xe4\xb8\xad") << QString::fromUtf8("\t中");
    }

    void aLineCannotSteerTheTerminal()
    {
        QFETCH(QByteArray, bytes);
        QFETCH(QString, shown);
        QCOMPARE(QString::fromStdString(safeLine(bytes.toStdString())), shown);
    }
};

QTEST_GUILESS_MAIN(TestLineSplitter)
#include "tst_line_splitter.moc"
