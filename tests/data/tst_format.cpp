// SPDX-License-Identifier: Apache-2.0
#include "data/format.h"

#include <QTemporaryDir>
#include <QtTest>

#include <fstream>

using namespace muster;
using namespace muster::data;

class TestFormat : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void formatsAreRecognised_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QByteArray>("content");
        QTest::addColumn<QString>("format");
        QTest::newRow("squad") << "a.json" << QByteArray(R"({"data":[{"paragraphs":[]}]})")
                               << "SQuAD JSON";
        QTest::newRow("squad with mark and space")
            << "a.json" << QByteArray("\xEF\xBB\xBF \n{\"data\":[]}") << "SQuAD JSON";
        QTest::newRow("jsonl") << "a.jsonl" << QByteArray("{\"id\":1}\n{\"id\":2}\n") << "JSONL";
        QTest::newRow("jsonl with a data key")
            << "a.jsonl" << QByteArray("{\"data\":1}\n{\"data\":2}\n") << "JSONL";
        QTest::newRow("other json") << "a.json" << QByteArray("{\n\"id\":1}\n") << "unknown";
        QTest::newRow("list") << "a.json" << QByteArray("[]") << "unknown";
        QTest::newRow("csv") << "a.CSV" << QByteArray("x,y\n") << "CSV";
        QTest::newRow("tsv by name") << "a.tsv" << QByteArray("x y\n") << "TSV";
        QTest::newRow("tsv by content") << "a" << QByteArray("x\ty\n") << "TSV";
        QTest::newRow("text") << "a.txt" << QByteArray("hello\n") << "plain text";
        QTest::newRow("blank") << "a.txt" << QByteArray(" \n") << "unknown";
        QTest::newRow("empty") << "a.json" << QByteArray() << "unknown";
    }
    void formatsAreRecognised()
    {
        QFETCH(QString, name);
        QFETCH(QByteArray, content);
        QFETCH(QString, format);
        const QTemporaryDir folder;
        const auto path = std::filesystem::path(folder.path().toStdString()) / name.toStdString();
        std::ofstream(path, std::ios::binary).write(content.constData(), content.size());
        const auto found = detectFormat(path);
        QVERIFY(found.has_value());
        QCOMPARE(QString::fromLatin1(formatName(found->format)), format);
        QVERIFY(!found->reason.empty());
    }

    void missingFileIsAnError()
    {
        QCOMPARE(detectFormat("does-not-exist").error().kind, Error::Kind::NotFound);
    }
};

QTEST_GUILESS_MAIN(TestFormat)
#include "tst_format.moc"
