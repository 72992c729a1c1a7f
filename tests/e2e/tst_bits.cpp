// SPDX-License-Identifier: Apache-2.0
// The same bytes from every way of spreading a run: a pairwise choice of ranks, schedules, gathers
// and launchers. The whole grid is in tst_bits_grid.
#include "muster_program.h"

class TestBits final : public QObject {
    Q_OBJECT

    static constexpr int limit = 40;
    e2e::Place m_place;
    QString m_reference;

private Q_SLOTS:
    void initTestCase()
    {
        const auto outcome = m_place.run(m_place.words("one", limit, 1));
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        m_reference = m_place.runIn("one");
        QVERIFY(!m_reference.isEmpty());
        for (const QString& name : e2e::fixedFiles())
            QVERIFY2(e2e::contentOf(m_reference + QLatin1Char('/') + name).size() > 100,
                     qPrintable(name));
    }

    void theFilesAreTheSame_data()
    {
        QTest::addColumn<int>("ranks");
        QTest::addColumn<QByteArray>("more");
        const auto row = [](const char* name, int ranks, const char* more) {
            QTest::newRow(name) << ranks << QByteArray(more);
        };
        row("1 stride collective", 1, "--schedule stride --gather collective");
        row("2 dynamic collective", 2, "--schedule dynamic --gather collective");
        row("2 block stream plain", 2, "--schedule block --gather stream --launcher plain");
        row("3 stride stream", 3, "--schedule stride --gather stream");
        row("4 dynamic stream", 4, "--schedule dynamic --gather stream");
        row("4 balanced collective", 4, "--schedule balanced --gather collective");
        row("7 balanced stream", 7, "--schedule balanced --gather stream");
        row("7 block collective", 7, "--schedule block --gather collective");
        if (QFileInfo::exists(QStringLiteral(MUSTER_BIN_DIR "/muster-rank-mpich"))) {
            row("3 balanced collective mpich", 3,
                "--schedule balanced --gather collective --launcher mpich");
            row("2 dynamic stream mpich", 2, "--schedule dynamic --launcher mpich");
        }
    }

    void theFilesAreTheSame()
    {
        QFETCH(int, ranks);
        QFETCH(QByteArray, more);
        const QByteArray name = QByteArray("run-") + QTest::currentDataTag();
        const QByteArray folder = QByteArray(name).replace(' ', '-');
        const auto outcome =
            m_place.run(m_place.words(folder.constData(), limit, ranks, more.constData()));
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        QVERIFY(outcome.lastLine().startsWith("ALIGNED 40/40"));
        QCOMPARE(e2e::differingFile(m_reference, m_place.runIn(folder.constData())), QString());
        QCOMPARE(m_place.processes(), QList<qint64>());
        QCOMPARE(m_place.temporaryFiles(), QStringList());
    }

    /// More ranks than samples, so that with fixed shares some ranks have nothing to do.
    void ranksWithoutWorkChangeNothing_data()
    {
        QTest::addColumn<QByteArray>("more");
        QTest::newRow("block stream") << QByteArray("--schedule block");
        QTest::newRow("stride collective") << QByteArray("--schedule stride --gather collective");
    }

    void ranksWithoutWorkChangeNothing()
    {
        QFETCH(QByteArray, more);
        const QByteArray tag(QTest::currentDataTag());
        const QByteArray one = "few1-" + tag.left(5);
        const QByteArray many = "few7-" + tag.left(5);
        auto outcome = m_place.run(m_place.words(one.constData(), 3, 1));
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        outcome = m_place.run(m_place.words(many.constData(), 3, 7, more.constData()));
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        QCOMPARE(
            e2e::differingFile(m_place.runIn(one.constData()), m_place.runIn(many.constData())),
            QString());
    }
};

QTEST_GUILESS_MAIN(TestBits)
#include "tst_bits.moc"
