// SPDX-License-Identifier: Apache-2.0
// What the commands around a run say and refuse: resume, verify, export, show, history, stop.
#include "muster_program.h"

#include <QRegularExpression>

class TestCli final : public QObject {
    Q_OBJECT

    static constexpr int limit = 20;
    e2e::Place m_place;
    QString m_run;

    /// Runs over the place's own copies of data and model, so that they can be changed.
    [[nodiscard]] QStringList ownWords(const char* output, const char* more) const
    {
        QStringList words = m_place.words(output, limit, 2, more);
        words.replaceInStrings(e2e::Place::model(), m_place.path("model"));
        words.replaceInStrings(e2e::Place::data(), m_place.path("data.json"));
        return words;
    }

    static void put(const QString& path, const QByteArray& content)
    {
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
        QCOMPARE(file.write(content), content.size());
    }

    static QByteArray flipped(QByteArray content, qsizetype at)
    {
        content[at] = static_cast<char>(content[at] ^ 0x10);
        return content;
    }

    static bool isStrictJson(const QByteArray& text)
    {
        QJsonParseError error;
        (void)QJsonDocument::fromJson(text, &error);
        return error.error == QJsonParseError::NoError;
    }

    /// Digests of 32 hexadecimal digits in a text.
    static QSet<QString> digestsIn(const QByteArray& text)
    {
        static const QRegularExpression digest(QStringLiteral("\\b[0-9a-f]{32}\\b"));
        QSet<QString> found;
        auto matches = digest.globalMatch(QString::fromUtf8(text));
        while (matches.hasNext())
            found.insert(matches.next().captured());
        return found;
    }

    /// A copy of the finished run in a folder of its own.
    [[nodiscard]] QString copyOfRun(const char* name) const
    {
        const QString target = m_place.path(name);
        QDir().mkpath(target);
        for (const QFileInfo& file : QDir(m_run).entryInfoList(QDir::Files))
            QFile::copy(file.filePath(), target + QLatin1Char('/') + file.fileName());
        return target;
    }

private Q_SLOTS:
    void initTestCase()
    {
        QDir().mkpath(m_place.path("model"));
        for (const QFileInfo& file : QDir(e2e::Place::model()).entryInfoList(QDir::Files)) {
            const QString copy = m_place.path("model/") + file.fileName();
            QVERIFY(QFile::copy(file.filePath(), copy));
            QFile::setPermissions(copy, QFile::ReadOwner | QFile::WriteOwner);
        }
        QVERIFY(QFile::copy(e2e::Place::data(), m_place.path("data.json")));
        QFile::setPermissions(m_place.path("data.json"), QFile::ReadOwner | QFile::WriteOwner);
        const auto outcome = m_place.run(ownWords("good", "--name first"));
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        m_run = m_place.runIn("good");
        QVERIFY(!m_run.isEmpty());
    }

    void cleanup()
    {
        QTRY_COMPARE_WITH_TIMEOUT(m_place.processes(), QList<qint64>(), 10000);
        QCOMPARE(m_place.temporaryFiles(), QStringList());
    }

    void aResumeWithOtherThingsIsRefused_data()
    {
        QTest::addColumn<QByteArray>("file");
        QTest::addColumn<QByteArray>("word");
        QTest::newRow("F-15 data") << QByteArray("data.json") << QByteArray("the data differs");
        QTest::newRow("F-15 tokenizer")
            << QByteArray("model/tokenizer.json") << QByteArray("the tokenizer differs");
        QTest::newRow("F-15 weights")
            << QByteArray("model/model.safetensors") << QByteArray("another model");
    }

    void aResumeWithOtherThingsIsRefused()
    {
        QFETCH(QByteArray, file);
        QFETCH(QByteArray, word);
        // One unit is missing, so there is something to resume.
        const QByteArray folder = "part-" + QByteArray(file).replace('/', '-');
        const auto outcome = m_place.run(ownWords(folder.constData(), "--inject flipped-bit"));
        QVERIFY2(outcome.code == 5, outcome.text().constData());
        const QString run = m_place.runIn(folder.constData());
        const QByteArray before = e2e::contentOf(run + QStringLiteral("/predictions.json"));

        const QString path = m_place.path(file.constData());
        const QByteArray content = e2e::contentOf(path);
        QByteArray changed = content;
        if (file == "data.json")
            changed.replace("Panthers", "Panther5");
        else if (file == "model/tokenizer.json")
            changed.replace("\"the\"", "\"thf\"");
        else
            changed = flipped(content, content.size() - 2);
        QVERIFY(changed != content);
        put(path, changed);
        const auto refused = m_place.run({QStringLiteral("resume"), run});
        put(path, content);
        QVERIFY2(refused.code == 3, refused.text().constData());
        QVERIFY2(refused.err.contains(word), refused.text().constData());
        QVERIFY2(digestsIn(refused.err).size() >= 2, refused.text().constData());
        QCOMPARE(e2e::contentOf(run + QStringLiteral("/predictions.json")), before);

        const auto resumed = m_place.run({QStringLiteral("resume"), run});
        QVERIFY2(resumed.code == 0, resumed.text().constData());
        QCOMPARE(e2e::differingFile(m_run, run), QString());
    }

    void aResumeWithOtherSettingsIsRefused()
    {
        const auto refused = m_place.run({QStringLiteral("resume"), m_run, QStringLiteral("--set"),
                                          QStringLiteral("doc_stride=64")});
        QVERIFY2(refused.code == 3, refused.text().constData());
        QVERIFY2(refused.err.contains("qa.doc_stride") && refused.err.contains("64") &&
                     refused.err.contains("128"),
                 refused.text().constData());
    }

    void resultsAreNeverOverwritten()
    {
        const QString output = m_place.path("twice");
        const auto first = m_place.start(m_place.words("twice", 3, 1, "--json"));
        const auto second = m_place.start(m_place.words("twice", 3, 1, "--json"));
        const auto one = e2e::Place::finish(*first);
        const auto other = e2e::Place::finish(*second);
        QVERIFY2(one.code == 0, one.text().constData());
        QVERIFY2(other.code == 0, other.text().constData());
        const auto folderOf = [](const e2e::Outcome& outcome) {
            return QJsonDocument::fromJson(outcome.out)
                .object()
                .value(QLatin1String("run"))
                .toString();
        };
        QVERIFY(folderOf(one) != folderOf(other));
        QCOMPARE(e2e::differingFile(folderOf(one), folderOf(other)), QString());
        const QByteArray results = e2e::contentOf(folderOf(one) + QStringLiteral("/results.json"));
        const auto third = m_place.run(m_place.words("twice", 3, 1));
        QVERIFY2(third.code == 0, third.text().constData());
        QCOMPARE(e2e::contentOf(folderOf(one) + QStringLiteral("/results.json")), results);
        QCOMPARE(QDir(output).entryList(QDir::Dirs | QDir::NoDotAndDotDot).size(), 3);
    }

    void aGoodRunIsVerified()
    {
        const auto outcome = m_place.run({QStringLiteral("verify"), m_run});
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        QVERIFY(outcome.lastLine().startsWith("ALIGNED 20/20"));
    }

    void anEditedFileIsNamed_data()
    {
        QTest::addColumn<QByteArray>("file");
        for (const char* file : {"predictions.json", "samples.jsonl", "nbest_predictions.json"})
            QTest::newRow(file) << QByteArray(file);
    }

    void anEditedFileIsNamed()
    {
        QFETCH(QByteArray, file);
        const QString copy = copyOfRun(("edited-" + file).constData());
        const QString path = copy + QLatin1Char('/') + QString::fromUtf8(file);
        const QByteArray content = e2e::contentOf(path);
        put(path, flipped(content, content.size() / 2));
        const auto outcome = m_place.run({QStringLiteral("verify"), copy});
        QVERIFY2(outcome.code == 6, outcome.text().constData());
        QVERIFY2((outcome.out + outcome.err).contains(file), outcome.text().constData());
    }

    void aDamagedRunFileIsAnErrorAndNoCrash()
    {
        const QString copy = copyOfRun("damaged");
        const QString path = copy + QStringLiteral("/run.muster");
        const QByteArray content = e2e::contentOf(path);
        int found = 0;
        // The header, then a byte in the middle of pages all over the file.
        QList<qsizetype> places{0, 17, 101};
        for (int i = 1; i < 12; ++i)
            places.append(content.size() / 12 * i + 2048);
        for (const qsizetype place : places) {
            put(path, flipped(content, place));
            const auto outcome = m_place.run({QStringLiteral("verify"), copy});
            QVERIFY2(outcome.code >= 0 && outcome.code != 9,
                     (QByteArray::number(place) + ": " + outcome.text()).constData());
            found += outcome.code != 0 ? 1 : 0;
        }
        QVERIFY2(found >= 3, QByteArray::number(found).constData());
        for (const qsizetype size : {qsizetype{0}, qsizetype{50}, content.size() / 2}) {
            put(path, content.left(size));
            const auto outcome = m_place.run({QStringLiteral("verify"), copy});
            QVERIFY2(outcome.code > 0 && outcome.code != 9, outcome.text().constData());
            QVERIFY(outcome.err.startsWith("E-"));
        }
    }

    void anExportWritesTheSameFiles()
    {
        const auto outcome =
            m_place.run({QStringLiteral("export"), m_run, QStringLiteral("--format"),
                         QStringLiteral("all"), QStringLiteral("-o"), m_place.path("exported")});
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        QCOMPARE(e2e::differingFile(m_run, m_place.path("exported")), QString());
    }

    void aRunIsShown()
    {
        const auto outcome = m_place.run({QStringLiteral("show"), m_run});
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        QVERIFY(outcome.lastLine().startsWith("ALIGNED 20/20"));
        const auto sample = m_place.run(
            {QStringLiteral("show"), m_run, QStringLiteral("--sample"), QStringLiteral("3")});
        QVERIFY2(sample.code == 0, sample.text().constData());
        QVERIFY(sample.out.contains("question   "));
        QVERIFY(m_place
                    .run({QStringLiteral("show"), m_run, QStringLiteral("--sample"),
                          QStringLiteral("20")})
                    .code != 0);
    }

    void theHistoryKnowsTheRun()
    {
        const QString id = QFileInfo(m_run).fileName();
        auto outcome = m_place.run({QStringLiteral("history"), QStringLiteral("ls")});
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        QVERIFY2(outcome.out.contains(id.toUtf8()), outcome.text().constData());
        outcome = m_place.run(
            {QStringLiteral("history"), QStringLiteral("tag"), id, QStringLiteral("kept")});
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        outcome = m_place.run({QStringLiteral("history")});
        QVERIFY(outcome.out.contains("[kept]"));
        // Where it lies follows from its id.
        QCOMPARE(m_place.run({QStringLiteral("show"), id}).code, 0);
        QVERIFY(QFileInfo::exists(m_place.path("share/muster/history.sqlite")));
    }

    void aLiveRunIsStopped()
    {
        const auto process = m_place.start(
            m_place.words("live", 60, 2, "--set unit_tokens=512 --inject slow:200 --ndjson"));
        QByteArray events;
        QVERIFY(e2e::waitForSamples(*process, 3, events));
        const QString run = m_place.runIn("live");
        const auto busy = m_place.run({QStringLiteral("resume"), run});
        QVERIFY2(busy.code != 0 && busy.err.contains("E-RUN-042"), busy.text().constData());
        const auto stopped = m_place.run({QStringLiteral("stop"), run});
        QVERIFY2(stopped.code == 0, stopped.text().constData());
        const auto outcome = e2e::Place::finish(*process, 30);
        QVERIFY2(outcome.code == 143, outcome.text().constData());
        const auto again = m_place.run({QStringLiteral("stop"), run});
        QVERIFY2(again.code == 3, again.text().constData());
    }

    void documentsAreStrictJson_data()
    {
        QTest::addColumn<QStringList>("words");
        QTest::newRow("show") << QStringList{QStringLiteral("show"), m_run};
        QTest::newRow("show sample") << QStringList{
            QStringLiteral("show"), m_run, QStringLiteral("--sample"), QStringLiteral("0")};
        QTest::newRow("verify") << QStringList{QStringLiteral("verify"), m_run};
        QTest::newRow("history") << QStringList{QStringLiteral("history"), QStringLiteral("ls")};
        QTest::newRow("run") << m_place.words("json", 3, 1);
        // Nothing to average: no value may become NaN.
        QTest::newRow("run of one sample") << m_place.words("json1", 1, 1);
        QTest::newRow("an error") << QStringList{QStringLiteral("show"), QStringLiteral("absent")};
    }

    void documentsAreStrictJson()
    {
        QFETCH(QStringList, words);
        const auto outcome = m_place.run(words + QStringList{QStringLiteral("--json")});
        QVERIFY2(isStrictJson(outcome.out), outcome.text().constData());
    }

    void filesAreStrictJson()
    {
        for (const QFileInfo& file :
             QDir(m_run).entryInfoList({QStringLiteral("*.json")}, QDir::Files))
            QVERIFY2(isStrictJson(e2e::contentOf(file.filePath())), qPrintable(file.fileName()));
        for (const char* name : {"samples.jsonl", "provenance.jsonl"}) {
            const QByteArray content =
                e2e::contentOf(m_run + QLatin1Char('/') + QLatin1String(name));
            const QList<QByteArray> lines = content.trimmed().split('\n');
            QVERIFY(lines.size() > 5);
            for (const QByteArray& line : lines)
                QVERIFY2(isStrictJson(line), line.constData());
        }
    }
};

QTEST_GUILESS_MAIN(TestCli)
#include "tst_cli.moc"
