// SPDX-License-Identifier: Apache-2.0
// Perplexity and classification as the first job: the same bytes from every way of spreading them,
// from a run that lost a rank and from one that was stopped and resumed; a tampered gather rings
// the alarm. The classifier is shared test data; its rows are skipped without them.
#include "muster_program.h"

#include "support/shared_data.h"

class TestTasks final : public QObject {
    Q_OBJECT

    e2e::Place m_place;

    /// The words of a task on one of the two bundled or shared models.
    [[nodiscard]] QStringList words(const QByteArray& task, const char* output, int ranks,
                                    const char* more = "") const
    {
        QStringList all{QStringLiteral("run"), QStringLiteral("--task"), QString::fromUtf8(task)};
        if (task == "lm") {
            all << QStringLiteral("--model") << QStringLiteral(MUSTER_DEMO "/stories260K-hf")
                << QStringLiteral("--data") << QStringLiteral(MUSTER_DEMO "/tinystories-200.txt");
            all +=
                e2e::Place::split("--protocol hf-fixed --max-length 128 --stride 64 --windows 60 "
                                  "--documents separator --token-losses true");
            all << QStringLiteral("--set") << QStringLiteral("separator=<|endoftext|>");
        } else {
            const auto shared = [](const char* relative) {
                return QString::fromStdString(
                    std::filesystem::absolute(muster::test::sharedPath(relative)).string());
            };
            all << QStringLiteral("--model") << shared("data/models/minilm-sst2")
                << QStringLiteral("--data") << shared("data/sst2/stsa.binary.test");
            all += e2e::Place::split("--limit 120 --set unit_tokens=256");
        }
        all << QStringLiteral("-n") << QString::number(ranks) << QStringLiteral("-o")
            << m_place.path(output);
        return all + e2e::Place::split(more);
    }

    [[nodiscard]] static bool isThere(const QByteArray& task)
    {
        return task == "lm" ||
               std::filesystem::exists(muster::test::sharedPath("data/models/minilm-sst2"));
    }

    [[nodiscard]] static QStringList files(const QByteArray& task)
    {
        QStringList names{QStringLiteral("samples.jsonl"), QStringLiteral("samples.csv"),
                          QStringLiteral("summary.csv"), QStringLiteral("proof.json")};
        names += task == "lm" ? QStringLiteral("token_losses.jsonl")
                              : QStringLiteral("predictions.json");
        return names;
    }

    [[nodiscard]] static QString differing(const QByteArray& task, const QString& one,
                                           const QString& other)
    {
        for (const QString& name : files(task)) {
            const QByteArray first = e2e::contentOf(one + QLatin1Char('/') + name);
            if (first == "(absent)" || first.size() < 50 ||
                first != e2e::contentOf(other + QLatin1Char('/') + name))
                return name;
        }
        return {};
    }

    /// The run on one rank, made once for each task.
    [[nodiscard]] QString reference(const QByteArray& task)
    {
        const QByteArray folder = "reference-" + task;
        if (m_place.runIn(folder.constData()).isEmpty())
            (void)m_place.run(words(task, folder.constData(), 1));
        return m_place.runIn(folder.constData());
    }

private Q_SLOTS:
    void theFilesAreTheSame_data()
    {
        QTest::addColumn<QByteArray>("task");
        QTest::addColumn<int>("ranks");
        QTest::addColumn<QByteArray>("more");
        for (const char* task : {"lm", "classification"}) {
            const auto row = [&](const char* name, int ranks, const char* more) {
                QTest::addRow("%s, %s", task, name)
                    << QByteArray(task) << ranks << QByteArray(more);
            };
            row("2 dynamic stream", 2, "");
            row("3 stride collective", 3, "--schedule stride --gather collective");
            row("2 balanced stream plain", 2, "--schedule balanced --launcher plain");
            row("7 block stream", 7, "--schedule block");
            if (QFileInfo::exists(QStringLiteral(MUSTER_BIN_DIR "/muster-rank-mpich")))
                row("2 dynamic collective mpich", 2, "--gather collective --launcher mpich");
        }
    }

    void theFilesAreTheSame()
    {
        QFETCH(QByteArray, task);
        QFETCH(int, ranks);
        QFETCH(QByteArray, more);
        if (!isThere(task))
            QSKIP("shared test data are absent: set MUSTER_SHARED");
        const QString one = reference(task);
        QVERIFY(!one.isEmpty());
        QByteArray folder(QTest::currentDataTag());
        folder.replace(' ', '-').replace(',', '-');
        const auto outcome = m_place.run(words(task, folder.constData(), ranks, more.constData()));
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        QVERIFY2(outcome.lastLine().startsWith(task == "lm" ? "ALIGNED 60/60  PPL "
                                                            : "ALIGNED 120/120  accuracy "),
                 outcome.text().constData());
        QCOMPARE(differing(task, one, m_place.runIn(folder.constData())), QString());
        QCOMPARE(m_place.processes(), QList<qint64>());
    }

    void aVerifiedRunHasNoFindings_data() { eachTask(); }
    void aVerifiedRunHasNoFindings()
    {
        QFETCH(QByteArray, task);
        if (!isThere(task))
            QSKIP("shared test data are absent: set MUSTER_SHARED");
        const QString one = reference(task);
        const auto outcome = m_place.run({QStringLiteral("verify"), one});
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        const auto shown = m_place.run(
            {QStringLiteral("show"), one, QStringLiteral("--sample"), QStringLiteral("3")});
        QVERIFY2(shown.code == 0, shown.text().constData());
    }

    void aKilledRankChangesNothing_data() { eachTask(); }
    void aKilledRankChangesNothing()
    {
        QFETCH(QByteArray, task);
        if (!isThere(task))
            QSKIP("shared test data are absent: set MUSTER_SHARED");
        const QByteArray folder = "killed-" + task;
        const auto process = m_place.start(
            words(task, folder.constData(), 2, "--set unit_items=4 --inject slow:60 --ndjson"));
        QByteArray events;
        QVERIFY2(e2e::waitForSamples(*process, 8, events), events.right(2000).constData());
        const QList<qint64> ranks = m_place.ranks();
        QVERIFY(!ranks.isEmpty());
        ::kill(static_cast<pid_t>(ranks.first()), SIGKILL);
        const auto outcome = e2e::Place::finish(*process);
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        // Other units make another plan and so another proof: an undisturbed run with these.
        const QByteArray small = "small-" + task;
        const auto again = m_place.run(words(task, small.constData(), 1, "--set unit_items=4"));
        QVERIFY2(again.code == 0, again.text().constData());
        QCOMPARE(
            differing(task, m_place.runIn(small.constData()), m_place.runIn(folder.constData())),
            QString());
    }

    void aStoppedRunIsResumedOnOtherRanks_data() { eachTask(); }
    void aStoppedRunIsResumedOnOtherRanks()
    {
        QFETCH(QByteArray, task);
        if (!isThere(task))
            QSKIP("shared test data are absent: set MUSTER_SHARED");
        const QString one = reference(task);
        const QByteArray folder = "stopped-" + task;
        const auto process =
            m_place.start(words(task, folder.constData(), 2, "--inject slow:150 --ndjson"));
        QByteArray events;
        QVERIFY2(e2e::waitForSamples(*process, 1, events), events.right(2000).constData());
        process->kill(); // the controller, without a word
        process->waitForFinished();
        QTRY_COMPARE_WITH_TIMEOUT(m_place.ranks(), QList<qint64>(), 30000);
        const QString run = m_place.runIn(folder.constData());
        const auto outcome =
            m_place.run({QStringLiteral("resume"), run, QStringLiteral("-n"), QStringLiteral("3")});
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        QCOMPARE(differing(task, one, run), QString());
    }

    void aTamperedGatherRingsTheAlarm_data() { eachTask(); }
    void aTamperedGatherRingsTheAlarm()
    {
        QFETCH(QByteArray, task);
        if (!isThere(task))
            QSKIP("shared test data are absent: set MUSTER_SHARED");
        const QByteArray folder = "tampered-" + task;
        const auto outcome = m_place.run(
            words(task, folder.constData(), 2, "--set unit_items=8 --inject off-by-one"));
        QVERIFY2(outcome.code == 6, outcome.text().constData());
        QVERIFY(outcome.lastLine().startsWith("MISALIGNED"));
    }

private:
    static void eachTask()
    {
        QTest::addColumn<QByteArray>("task");
        QTest::newRow("lm") << QByteArray("lm");
        QTest::newRow("classification") << QByteArray("classification");
    }
};

QTEST_GUILESS_MAIN(TestTasks)
#include "tst_tasks.moc"
