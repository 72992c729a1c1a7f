// SPDX-License-Identifier: Apache-2.0
// The same bytes for all of {1, 2, 3, 4, 7} ranks × {dynamic, block, stride, balanced} × {stream,
// collective}, and for every launcher.
#include "muster_program.h"

class TestBitsGrid final : public QObject {
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
    }

    void theFilesAreTheSame_data()
    {
        QTest::addColumn<int>("ranks");
        QTest::addColumn<QString>("more");
        QStringList launchers{QStringLiteral("openmpi"), QStringLiteral("plain")};
        if (QFileInfo::exists(QStringLiteral(MUSTER_BIN_DIR "/muster-rank-mpich")))
            launchers.append(QStringLiteral("mpich"));
        for (const int ranks : {1, 2, 3, 4, 7})
            for (const char* schedule : {"dynamic", "block", "stride", "balanced"})
                for (const char* gather : {"stream", "collective"})
                    for (const QString& launcher : launchers) {
                        // Plain processes have no collectives; one row for each other launcher
                        // and size is enough.
                        const bool isFirst = launcher == launchers.first();
                        const bool isStream = gather == QByteArray("stream");
                        const bool isDynamic = schedule == QByteArray("dynamic");
                        if (!isFirst && (!isDynamic || (launcher == launchers[1] && !isStream)))
                            continue;
                        QTest::addRow("%d %s %s %s", ranks, schedule, gather, qPrintable(launcher))
                            << ranks
                            << QStringLiteral("--schedule %1 --gather %2 --launcher %3")
                                   .arg(QLatin1String(schedule), QLatin1String(gather), launcher);
                    }
    }

    void theFilesAreTheSame()
    {
        QFETCH(int, ranks);
        QFETCH(QString, more);
        const QByteArray folder = QByteArray(QTest::currentDataTag()).replace(' ', '-');
        const auto outcome =
            m_place.run(m_place.words(folder.constData(), limit, ranks, qPrintable(more)));
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        QCOMPARE(e2e::differingFile(m_reference, m_place.runIn(folder.constData())), QString());
    }
};

QTEST_GUILESS_MAIN(TestBitsGrid)
#include "tst_bits_grid.moc"
