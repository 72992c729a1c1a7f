// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <QtTest>

#include <sys/stat.h>

using muster::MappedFile;
using muster::readFile;
using muster::writeFileAtomically;

class TestFile final : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    std::filesystem::path at(const char* name) const
    {
        return m_folder.filePath(QLatin1String(name)).toStdString();
    }

private Q_SLOTS:
    void whatIsWrittenIsRead_data()
    {
        QTest::addColumn<QByteArray>("content");
        QTest::newRow("empty") << QByteArray();
        QTest::newRow("text") << QByteArray("a\nb");
        QTest::newRow("bytes") << QByteArray("\0\xFF\0", 3);
        QTest::newRow("long") << QByteArray(300000, 'x');
    }

    void whatIsWrittenIsRead()
    {
        QFETCH(QByteArray, content);
        const auto path = at("file");
        QVERIFY(writeFileAtomically(path, content.toStdString()).has_value());
        const auto read = readFile(path);
        QVERIFY(read.has_value());
        QVERIFY(*read == content.toStdString());
        const auto mapped = MappedFile::open(path);
        QVERIFY(mapped.has_value());
        QVERIFY(mapped->text() == content.toStdString());
        QCOMPARE(mapped->bytes().size(), std::size_t(content.size()));
        struct stat facts = {};
        QCOMPARE(::stat(path.c_str(), &facts), 0);
        QCOMPARE(int(facts.st_mode & 0777U), 0644);
    }

    void aReaderSeesTheOldOrTheNewContent()
    {
        const auto path = at("replaced");
        QVERIFY(writeFileAtomically(path, "old").has_value());
        const auto before = MappedFile::open(path);
        QVERIFY(before.has_value());
        QVERIFY(writeFileAtomically(path, "newer").has_value());
        QVERIFY(before->text() == "old");
        QVERIFY(*readFile(path) == "newer");
    }

    void nothingIsLeftBeside()
    {
        QDir().mkpath(m_folder.filePath(QStringLiteral("alone")));
        QVERIFY(writeFileAtomically(at("alone/file"), "x").has_value());
        // A folder cannot be replaced by a file.
        QDir().mkpath(m_folder.filePath(QStringLiteral("alone/folder/inner")));
        const auto failed = writeFileAtomically(at("alone/folder"), "x");
        QVERIFY(!failed.has_value());
        QCOMPARE(failed.error().code, std::string("E-FILE-004"));
        QCOMPARE(QDir(m_folder.filePath(QStringLiteral("alone")))
                     .entryList(QDir::AllEntries | QDir::NoDotAndDotDot | QDir::Hidden),
                 (QStringList{QStringLiteral("file"), QStringLiteral("folder")}));
        QVERIFY(!writeFileAtomically(at("absent/file"), "x").has_value());
    }

    void whatCannotBeReadIsAnError()
    {
        QCOMPARE(readFile(at("none")).error().code, std::string("E-FILE-001"));
        QCOMPARE(MappedFile::open(at("none")).error().code, std::string("E-FILE-001"));
        QCOMPARE(readFile(at("replaced/below")).error().kind, muster::Error::Kind::NotFound);
        QCOMPARE(readFile(m_folder.path().toStdString()).error().code, std::string("E-FILE-002"));
        QCOMPARE(MappedFile::open(m_folder.path().toStdString()).error().code,
                 std::string("E-FILE-002"));
    }

    void aLimitHolds()
    {
        QVERIFY(writeFileAtomically(at("ten"), "0123456789").has_value());
        QVERIFY(readFile(at("ten"), 10).has_value());
        const auto refused = readFile(at("ten"), 9);
        QVERIFY(!refused.has_value());
        QCOMPARE(refused.error().code, std::string("E-FILE-003"));
        QCOMPARE(refused.error().kind, muster::Error::Kind::Invalid);
    }

    void aMappingMoves()
    {
        QVERIFY(writeFileAtomically(at("moved"), "content").has_value());
        auto first = MappedFile::open(at("moved"));
        QVERIFY(first.has_value());
        MappedFile second(std::move(*first));
        QVERIFY(second.text() == "content");
        auto third = MappedFile::open(at("moved"));
        *third = std::move(second);
        QVERIFY(third->text() == "content");
    }
};

QTEST_GUILESS_MAIN(TestFile)
#include "tst_file.moc"
