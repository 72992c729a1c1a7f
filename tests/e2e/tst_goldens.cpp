// SPDX-License-Identifier: Apache-2.0
// Whole data sets through the programs, against reference outputs made with other software. Slow,
// and skipped without the shared data.
#include "muster_program.h"

#include "support/shared_data.h"

#include <QJsonArray>

#include <cmath>

class TestGoldens final : public QObject {
    Q_OBJECT

    e2e::Place m_place;

    [[nodiscard]] static QString shared(const char* relative)
    {
        return QString::fromStdString(
            std::filesystem::absolute(muster::test::sharedPath(relative)).string());
    }
    [[nodiscard]] static QJsonObject json(const QString& path)
    {
        return QJsonDocument::fromJson(e2e::contentOf(path)).object();
    }

private Q_SLOTS:
    /// Answers of at least 99.8 % of the questions are those of the golden, and every metric of the
    /// golden is met within 0.05.
    void answersAreThoseOfTheGolden_data()
    {
        QTest::addColumn<QByteArray>("data");
        QTest::addColumn<QByteArray>("golden");
        QTest::newRow("SQuAD 1.1 dev, first file")
            << QByteArray("data/squad-v1.1-dev/dev-v1.1.json") << QByteArray("squad-v1.1-dev");
        QTest::newRow("SQuAD 2.0 dev, part") << QByteArray("data/squad-v2.0-dev-part/dev-v2.0.json")
                                             << QByteArray("squad-v2.0-dev-part");
    }

    void answersAreThoseOfTheGolden()
    {
        QFETCH(QByteArray, data);
        QFETCH(QByteArray, golden);
        MUSTER_SHARED_OR_SKIP(folder, "goldens/minilm-qa");
        const auto process =
            m_place.start({QStringLiteral("run"), QStringLiteral("--task"), QStringLiteral("qa"),
                           QStringLiteral("--model"), e2e::Place::model(), QStringLiteral("--data"),
                           shared(data.constData()), QStringLiteral("-n"), QStringLiteral("2"),
                           QStringLiteral("-o"), m_place.path(golden.constData())});
        const auto outcome = e2e::Place::finish(*process, 3000);
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        const QString run = m_place.runIn(golden.constData());
        const QJsonObject predictions = json(run + QStringLiteral("/predictions.json"));
        const QJsonObject expected =
            json(QString::fromStdString(folder.string()) +
                 QStringLiteral("/%1.predictions.json").arg(QLatin1String(golden)));
        QVERIFY(expected.size() > 4000);
        QCOMPARE(predictions.size(), expected.size());
        qsizetype same = 0;
        for (auto at = expected.begin(); at != expected.end(); ++at)
            same += predictions.value(at.key()) == at.value() ? 1 : 0;
        qInfo("%lld of %lld answers are identical", static_cast<long long>(same),
              static_cast<long long>(expected.size()));
        QVERIFY2(static_cast<double>(same) >= 0.998 * static_cast<double>(expected.size()),
                 qPrintable(QString::number(same)));

        const QJsonObject wanted =
            json(QString::fromStdString(folder.string()) + QStringLiteral("/metrics.json"))
                .value(QLatin1String(golden))
                .toObject();
        const QJsonArray metrics =
            json(run + QStringLiteral("/results.json")).value(QLatin1String("metrics")).toArray();
        int compared = 0;
        for (const auto& entry : metrics) {
            const QJsonObject metric = entry.toObject();
            QString key = metric.value(QLatin1String("key")).toString();
            if (!wanted.contains(key) && key == QLatin1String("exact_match"))
                key = QStringLiteral("exact");
            if (!wanted.contains(key))
                continue;
            const double found = metric.value(QLatin1String("value")).toDouble();
            QVERIFY2(std::abs(found - wanted.value(key).toDouble()) < 0.05,
                     qPrintable(QStringLiteral("%1: %2").arg(key).arg(found)));
            ++compared;
        }
        QVERIFY(compared >= 2);
    }

    /// The two files of SQuAD 1.1 dev are one set of 10,570 questions.
    void theWholeDevelopmentSetIsAligned()
    {
        MUSTER_SHARED_OR_SKIP(folder, "data/squad-v1.1-dev");
        const auto process =
            m_place.start({QStringLiteral("run"), QStringLiteral("--task"), QStringLiteral("qa"),
                           QStringLiteral("--model"), e2e::Place::model(), QStringLiteral("--data"),
                           shared("data/squad-v1.1-dev/dev-v1.1.json"), QStringLiteral("--data"),
                           shared("data/squad-v1.1-dev/test-v1.1.json"), QStringLiteral("-n"),
                           QStringLiteral("2"), QStringLiteral("-o"), m_place.path("whole")});
        const auto outcome = e2e::Place::finish(*process, 3000);
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        QVERIFY2(outcome.lastLine().startsWith("ALIGNED 10570/10570 "), outcome.text().constData());
        qInfo("%s", outcome.lastLine().constData());
    }

    /// Windows of SmolLM2-135M on WikiText-2, whose directory MUSTER_TEST_SMOLLM2 names.
    void windowsOfSmolLm2AreThoseOfTheGolden()
    {
        MUSTER_SHARED_OR_SKIP(folder, "goldens/smollm2-135m");
        const QString model = qEnvironmentVariable("MUSTER_TEST_SMOLLM2");
        if (model.isEmpty())
            QSKIP("set MUSTER_TEST_SMOLLM2 to the directory of SmolLM2-135M");
        const auto process =
            m_place.start({QStringLiteral("run"), QStringLiteral("--task"), QStringLiteral("lm"),
                           QStringLiteral("--model"), QFileInfo(model).absoluteFilePath(),
                           QStringLiteral("--data"), shared("data/wikitext-2-raw/wiki.test.raw"),
                           QStringLiteral("--documents"), QStringLiteral("hf-rows"),
                           QStringLiteral("--protocol"), QStringLiteral("non-overlapping"),
                           QStringLiteral("--max-length"), QStringLiteral("1024"),
                           QStringLiteral("--windows"), QStringLiteral("60"), QStringLiteral("-n"),
                           QStringLiteral("2"), QStringLiteral("-o"), m_place.path("smollm2")});
        const auto outcome = e2e::Place::finish(*process, 3000);
        QVERIFY2(outcome.code == 0, outcome.text().constData());
        const QJsonArray windows =
            json(QString::fromStdString((folder / "wikitext-2-raw.block1024.json").string()))
                .value(QLatin1String("windows"))
                .toArray();
        const QList<QByteArray> rows =
            e2e::contentOf(m_place.runIn("smollm2") + QStringLiteral("/samples.jsonl"))
                .trimmed()
                .split('\n');
        QCOMPARE(rows.size(), windows.size());
        for (qsizetype i = 0; i < rows.size(); ++i) {
            const QJsonObject row = QJsonDocument::fromJson(rows[i]).object();
            const double wanted = windows[i].toObject().value(QLatin1String("nll")).toDouble();
            const double found = row.value(QLatin1String("loss_sum")).toDouble();
            QVERIFY2(
                std::abs(found - wanted) < 1e-5 * wanted,
                qPrintable(QStringLiteral("window %1: %2 and %3").arg(i).arg(found).arg(wanted)));
        }
    }
};

QTEST_GUILESS_MAIN(TestGoldens)
#include "tst_goldens.moc"
