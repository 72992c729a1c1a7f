// SPDX-License-Identifier: Apache-2.0
// Every fault that a rank can make on purpose gets its verdict, its exit code and its sentence.
#include "muster_program.h"

class TestInject final : public QObject {
    Q_OBJECT

    static constexpr int limit = 40;
    e2e::Place m_place;
    QString m_reference;

    [[nodiscard]] e2e::Outcome inject(const QByteArray& fault, const char* more = "") const
    {
        QByteArray folder = fault;
        folder.replace(':', '-');
        return m_place.run(m_place.words(folder.constData(), limit, 2, more) +
                           QStringList{QStringLiteral("--inject"), QString::fromUtf8(fault)});
    }

private Q_SLOTS:
    void initTestCase()
    {
        const auto outcome = m_place.run(m_place.words("whole", limit, 2));
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        m_reference = m_place.runIn("whole");
    }

    void cleanup()
    {
        QCOMPARE(m_place.processes(), QList<qint64>());
        QCOMPARE(m_place.temporaryFiles(), QStringList());
    }

    void aFaultOfTheGatherIsNamed_data()
    {
        QTest::addColumn<QByteArray>("fault");
        QTest::addColumn<QByteArray>("code");
        QTest::addColumn<QByteArray>("words");
        const auto row = [](const char* fault, const char* code, const char* words) {
            QTest::newRow(fault) << QByteArray(fault) << QByteArray(code) << QByteArray(words);
        };
        row("drop", "E-ALIGN-001", "without 1 of its");
        row("duplicate", "E-ALIGN-002", "twice in unit 0");
        row("swap", "E-ALIGN-004", "are exchanged");
        row("off-by-one", "E-ALIGN-004", "one place late");
        row("foreign", "E-ALIGN-006", "and the plan ends at");
        row("wrong-hash", "E-ALIGN-005", "was computed on other content");
        row("wrong-owner", "E-ALIGN-007", "in the name of rank");
        row("conflict", "E-ALIGN-003", "not reproducible: unit 0");
        row("pad-scored", "E-ALIGN-0", "padding");
    }

    void aFaultOfTheGatherIsNamed()
    {
        QFETCH(QByteArray, fault);
        QFETCH(QByteArray, code);
        QFETCH(QByteArray, words);
        const auto outcome = inject(fault);
        QVERIFY2(outcome.code == 6, outcome.text().constData());
        QVERIFY2(outcome.lastLine().startsWith("MISALIGNED"), outcome.text().constData());
        QVERIFY2(outcome.err.contains(code), outcome.text().constData());
        QVERIFY2(outcome.err.contains(words), outcome.text().constData());
        QVERIFY(outcome.err.contains("Do not use the numbers of this run"));
        // The verdict is in the files and stays when they are looked at again.
        QByteArray folder = fault;
        const QString run = m_place.runIn(folder.constData());
        const auto proof =
            QJsonDocument::fromJson(e2e::contentOf(run + QStringLiteral("/proof.json"))).object();
        QCOMPARE(proof.value(QLatin1String("verdict")).toString(), QStringLiteral("MISALIGNED"));
        const auto again = m_place.run({QStringLiteral("verify"), run});
        QVERIFY2(again.code == 6, again.text().constData());
    }

    void aDamagedFrameIsNotAccepted_data()
    {
        QTest::addColumn<QByteArray>("fault");
        QTest::newRow("truncated-frame") << QByteArray("truncated-frame");
        QTest::newRow("flipped-bit") << QByteArray("flipped-bit");
    }

    void aDamagedFrameIsNotAccepted()
    {
        QFETCH(QByteArray, fault);
        const auto outcome = inject(fault);
        QVERIFY2(outcome.code == 5, outcome.text().constData());
        QVERIFY2(outcome.lastLine().startsWith("INCOMPLETE"), outcome.text().constData());
        QVERIFY2(outcome.err.contains("was damaged"), outcome.text().constData());
        QVERIFY2(outcome.err.contains("unit 0 came damaged twice"), outcome.text().constData());
        // Only the unit whose frames break is missing; a resume fetches it.
        const QString run = m_place.runIn(fault.constData());
        const auto resumed =
            m_place.run({QStringLiteral("resume"), run, QStringLiteral("-n"), QStringLiteral("2")});
        QVERIFY2(resumed.code == 0, resumed.text().constData());
        QCOMPARE(e2e::differingFile(m_reference, run), QString());
    }

    void aLostRankChangesNothing_data()
    {
        QTest::addColumn<QByteArray>("more");
        QTest::newRow("F-08 stream") << QByteArray("--gather stream");
        QTest::newRow("F-08 collective") << QByteArray("--gather collective");
        QTest::newRow("F-08 plain") << QByteArray("--launcher plain");
    }

    void aLostRankChangesNothing()
    {
        QFETCH(QByteArray, more);
        const auto outcome = inject("rank-loss", more.constData());
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        QVERIFY(outcome.lastLine().startsWith("ALIGNED 40/40"));
        QVERIFY2(outcome.err.contains("go back to the queue"), outcome.text().constData());
        QCOMPARE(e2e::differingFile(m_reference, m_place.runIn("rank-loss")), QString());
    }

    void aUnitThatCrashesItsRankIsSetAside()
    {
        const auto outcome = inject("crash-unit:1");
        QVERIFY2(outcome.code == 5, outcome.text().constData());
        QVERIFY2(outcome.lastLine().startsWith("INCOMPLETE"), outcome.text().constData());
        QVERIFY2(outcome.err.contains("E-RUN-032: unit 1 ended its rank twice"),
                 outcome.text().constData());
        QVERIFY2(outcome.err.count("E-RUN-032") == 1, outcome.text().constData());
    }

    void anUnknownFaultIsRefused()
    {
        const auto outcome = inject("no-such-fault");
        QVERIFY2(outcome.code != 0, outcome.text().constData());
        QVERIFY2(outcome.err.contains("no-such-fault"), outcome.text().constData());
    }
};

QTEST_GUILESS_MAIN(TestInject)
#include "tst_inject.moc"
