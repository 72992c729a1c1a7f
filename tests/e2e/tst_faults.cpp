// SPDX-License-Identifier: Apache-2.0
// Processes that are killed, stopped or do not fit together (fault-scenarios 1.1 and 1.2): each run
// ends with the bytes of the undisturbed one, or says what is missing, and leaves nothing behind.
#include "muster_program.h"

class TestFaults final : public QObject {
    Q_OBJECT

    static constexpr int limit = 60;
    /// Small units, each slowed down, so that there is a middle to disturb.
    static constexpr const char* slowly = "--set unit_tokens=512 --inject slow:100 --ndjson";
    e2e::Place m_place;
    QString m_reference;
    QStringList m_sharedBefore;
    QByteArray m_events;

    [[nodiscard]] std::unique_ptr<QProcess> begin(const char* folder, int ranks,
                                                  const char* more = "") const
    {
        return m_place.start(m_place.words(folder, limit, ranks, slowly) + e2e::Place::split(more));
    }

    [[nodiscard]] QList<qint64> launchers(const QProcess& controller) const
    {
        QList<qint64> found = m_place.processes();
        for (const qint64 rank : m_place.ranks())
            found.removeAll(rank);
        found.removeAll(controller.processId());
        return found;
    }

    static void signal(const QList<qint64>& processes, int number)
    {
        for (const qint64 pid : processes)
            ::kill(static_cast<pid_t>(pid), number);
    }

    /// Reads on until the events have this text.
    bool waitForText(QProcess& process, const char* text, int seconds)
    {
        QElapsedTimer timer;
        timer.start();
        while (!m_events.contains(text) && timer.elapsed() < seconds * 1000 &&
               process.state() != QProcess::NotRunning) {
            process.waitForReadyRead(100);
            m_events += process.readAllStandardOutput();
        }
        return m_events.contains(text);
    }

    /// The end of a process whose events were read before.
    [[nodiscard]] e2e::Outcome end(QProcess& process) const
    {
        e2e::Outcome outcome = e2e::Place::finish(process);
        outcome.out = m_events + outcome.out;
        return outcome;
    }

    /// The run has all its samples and the bytes of the undisturbed one.
    void checkSame(const e2e::Outcome& outcome, const char* folder) const
    {
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        QVERIFY2(outcome.out.contains("ALIGNED") && !outcome.out.contains("MISALIGNED"),
                 outcome.text().constData());
        QCOMPARE(e2e::differingFile(m_reference, m_place.runIn(folder)), QString());
    }

private Q_SLOTS:
    void initTestCase()
    {
        m_sharedBefore = e2e::sharedMemory();
        const auto outcome = m_place.run(m_place.words("whole", limit, 2, "--set unit_tokens=512"));
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        m_reference = m_place.runIn("whole");
    }

    void init() { m_events.clear(); }

    /// No process, no shared memory, no folder with keys and sockets.
    void cleanup()
    {
        QTRY_COMPARE_WITH_TIMEOUT(m_place.processes(), QList<qint64>(), 10000);
        QTRY_VERIFY_WITH_TIMEOUT(
            [this] {
                for (const QString& name : e2e::sharedMemory())
                    if (!m_sharedBefore.contains(name))
                        return false;
                return true;
            }(),
            20000);
        QCOMPARE(m_place.temporaryFiles(), QStringList());
    }

    void aKilledProcessChangesNothing_data()
    {
        QTest::addColumn<QByteArray>("whom");
        QTest::addColumn<QByteArray>("more");
        const auto row = [](const char* name, const char* whom, const char* more) {
            QTest::newRow(name) << QByteArray(whom) << QByteArray(more);
        };
        row("F-01 a rank", "rank", "");
        row("F-01 a rank, plain", "rank", "--launcher plain");
        row("F-01 a rank, collective", "rank", "--gather collective");
        row("F-01 all ranks", "ranks", "");
        row("F-10 the launcher", "launcher", "");
        if (QFileInfo::exists(QStringLiteral(MUSTER_BIN_DIR "/muster-rank-mpich"))) {
            row("F-01 a rank, mpich", "rank", "--launcher mpich");
            row("F-10 the launcher, mpich", "launcher", "--launcher mpich");
        }
    }

    void aKilledProcessChangesNothing()
    {
        QFETCH(QByteArray, whom);
        QFETCH(QByteArray, more);
        const QByteArray folder =
            "killed-" + QByteArray::number(qHash(QByteArray(QTest::currentDataTag())));
        const auto process = begin(folder.constData(), 2, more.constData());
        QVERIFY(e2e::waitForSamples(*process, 5, m_events));
        const QList<qint64> victims = whom == "launcher" ? launchers(*process) : m_place.ranks();
        QVERIFY(!victims.isEmpty());
        signal(whom == "rank" ? victims.first(1) : victims, SIGKILL);
        checkSame(end(*process), folder.constData());
    }

    void aKilledControllerIsResumed_data()
    {
        QTest::addColumn<int>("samples");
        QTest::addColumn<int>("ranks");
        QTest::addColumn<QByteArray>("more");
        QTest::newRow("F-09 F-13 early, on one rank") << 1 << 1 << QByteArray();
        QTest::newRow("F-09 F-13 in the middle, on three ranks") << 25 << 3 << QByteArray();
        QTest::newRow("F-09 plain") << 10 << 2 << QByteArray("--launcher plain");
    }

    void aKilledControllerIsResumed()
    {
        QFETCH(int, samples);
        QFETCH(int, ranks);
        QFETCH(QByteArray, more);
        const QByteArray folder = "controller-" + QByteArray::number(samples);
        const auto process = begin(folder.constData(), 2, more.constData());
        QVERIFY(e2e::waitForSamples(*process, samples, m_events));
        process->kill();
        QVERIFY(process->waitForFinished());
        // No orphan: the ranks see that nobody is there any more.
        QTRY_COMPARE_WITH_TIMEOUT(m_place.processes(), QList<qint64>(), 20000);
        for (const QString& left : m_place.temporaryFiles())
            QDir(m_place.path("tmp") + QLatin1Char('/') + left).removeRecursively();
        const QString run = m_place.runIn(folder.constData());
        const auto resumed = m_place.run(
            {QStringLiteral("resume"), run, QStringLiteral("-n"), QString::number(ranks)});
        checkSame(resumed, folder.constData());
    }

    void aStoppedRankIsDeadAndMayComeBack_data()
    {
        QTest::addColumn<bool>("comesBack");
        QTest::newRow("F-04 continued") << true;
        QTest::newRow("F-04 never continued") << false;
    }

    void aStoppedRankIsDeadAndMayComeBack()
    {
        QFETCH(bool, comesBack);
        const char* folder = comesBack ? "continued" : "frozen";
        const auto process =
            begin(folder, 2, "--set heartbeat_s=0.3 --set suspect_s=1 --set dead_s=2");
        QVERIFY(e2e::waitForSamples(*process, 5, m_events));
        const QList<qint64> victim = m_place.ranks().first(1);
        signal(victim, SIGSTOP);
        const bool isSeen = waitForText(*process, "counts as dead", 30);
        if (comesBack || !isSeen)
            signal(victim, SIGCONT);
        const auto outcome = end(*process);
        QVERIFY2(isSeen, outcome.text().constData());
        checkSame(outcome, folder);
    }

    void aLauncherOfAnotherFamilyIsRefused()
    {
        if (!QFileInfo::exists(QStringLiteral(MUSTER_BIN_DIR "/muster-rank-mpich")))
            QSKIP("only one MPI family was there when this was built");
        const auto outcome =
            m_place.run(m_place.words("mismatch", limit, 2,
                                      "--launcher openmpi --set "
                                      "rank_program=" MUSTER_BIN_DIR "/muster-rank-mpich"));
        QVERIFY2(outcome.code == 4, outcome.text().constData());
        QVERIFY2(outcome.err.contains("Open MPI") && outcome.err.contains("MPICH"),
                 outcome.text().constData());
        QVERIFY(!outcome.out.contains("ALIGNED"));
    }

    void aRunThatIsEndedEarlyIsResumed_data()
    {
        QTest::addColumn<int>("number");
        QTest::addColumn<int>("code");
        QTest::newRow("Ctrl+C") << SIGINT << 130;
        QTest::newRow("SIGTERM") << SIGTERM << 143;
        QTest::newRow("Ctrl+C twice") << -SIGINT << 130;
    }

    void aRunThatIsEndedEarlyIsResumed()
    {
        QFETCH(int, number);
        QFETCH(int, code);
        const QByteArray folder = "ended" + QByteArray::number(number);
        const auto process = begin(folder.constData(), 2);
        QVERIFY(e2e::waitForSamples(*process, 5, m_events));
        signal({process->processId()}, qAbs(number));
        if (number < 0) {
            QVERIFY(waitForText(*process, "once more ends at once", 10));
            signal({process->processId()}, -number);
        }
        const auto outcome = end(*process);
        QVERIFY2(outcome.code == code, outcome.text().constData());
        QVERIFY2(outcome.out.contains("\"verdict\":\"INCOMPLETE\""), outcome.text().constData());
        const QString run = m_place.runIn(folder.constData());
        checkSame(
            m_place.run({QStringLiteral("resume"), run, QStringLiteral("-n"), QStringLiteral("2")}),
            folder.constData());
    }

    void aTimeLimitEndsARun()
    {
        const auto process = m_place.start(m_place.words(
            "late", limit, 2, "--set unit_tokens=512 --inject slow:1000 --timeout 8 --plain"));
        const auto outcome = e2e::Place::finish(*process);
        QVERIFY2(outcome.code == 124, outcome.text().constData());
        QVERIFY2(outcome.err.contains("E-RUN-040"), outcome.text().constData());
        checkSame(
            m_place.run({QStringLiteral("resume"), m_place.runIn("late"), QStringLiteral("-n"),
                         QStringLiteral("2"), QStringLiteral("--timeout"), QStringLiteral("0")}),
            "late");
    }
};

QTEST_GUILESS_MAIN(TestFaults)
#include "tst_faults.moc"
