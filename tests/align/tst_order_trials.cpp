// SPDX-License-Identifier: Apache-2.0
#include "align/order_trials.h"
#include "support/shared_data.h"

#include <QElapsedTimer>
#include <QTest>

using namespace muster;

class TestOrderTrials : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void namesDistortionsOfRealPredictions_data()
    {
        QTest::addColumn<QString>("data");
        QTest::addColumn<QString>("predictions");
        QTest::newRow("XQuAD en") << "data/xquad/xquad.en.json"
                                  << "goldens/minilm-qa/xquad-en.predictions.json";
        QTest::newRow("SQuAD 1.1 dev") << "data/squad-v1.1-dev/dev-v1.1.json"
                                       << "goldens/minilm-qa/squad-v1.1-dev.predictions.json";
    }
    void namesDistortionsOfRealPredictions()
    {
        QFETCH(QString, data);
        QFETCH(QString, predictions);
        const auto squad = test::sharedPath(qPrintable(data));
        const auto texts = test::sharedPath(qPrintable(predictions));
        if (!std::filesystem::exists(squad) || !std::filesystem::exists(texts))
            QSKIP("shared test data are absent: set MUSTER_SHARED to their folder");
        const test::RealAnswers all = test::readAnswers(squad, texts);
        const test::Trials trials = test::distortedTrials(all, 1000, 20261130);
        qInfo("%d of %d right", trials.total - trials.wrong, trials.total);
        QVERIFY(trials.wrong <= 10);
    }

    void raisesNoAlarmOnCleanFiles_data() { namesDistortionsOfRealPredictions_data(); }
    void raisesNoAlarmOnCleanFiles()
    {
        QFETCH(QString, data);
        QFETCH(QString, predictions);
        const auto squad = test::sharedPath(qPrintable(data));
        const auto texts = test::sharedPath(qPrintable(predictions));
        if (!std::filesystem::exists(squad) || !std::filesystem::exists(texts))
            QSKIP("shared test data are absent: set MUSTER_SHARED to their folder");
        QCOMPARE(test::alarmsOnCleanFiles(test::readAnswers(squad, texts), 1000, 7), 0);
    }

    void aMillionRowsTakeUnderFiveSeconds_data()
    {
        QTest::addColumn<int>("kind");
        QTest::newRow("in order") << -1;
        QTest::newRow("late") << 0;
        QTest::newRow("rank-major") << 2;
        QTest::newRow("blocks exchanged") << 6;
    }
    void aMillionRowsTakeUnderFiveSeconds()
    {
        QFETCH(int, kind);
        constexpr std::uint32_t size = 1000000;
        test::RealAnswers all;
        std::mt19937_64 random(11);
        for (std::uint32_t i = 0; i < size; ++i) {
            const auto answer = static_cast<std::uint32_t>(random() % (size / 3));
            all.references.push_back({answer});
            all.predictions.push_back(
                random() % 2 == 0 ? answer : static_cast<std::uint32_t>(random() % (size / 3)));
        }
        test::Distorted made;
        made.rows = all.predictions;
        if (kind >= 0)
            made = test::distort(all.predictions, kind, random);
        const auto agreement = all.with(made.rows);
        QElapsedTimer timer;
        timer.start();
        const auto scan = align::shiftScan(agreement, 64);
        const auto found = align::testOrder(agreement);
        const double seconds = static_cast<double>(timer.elapsed()) / 1000.0;
        qInfo("%.2f s, %s", seconds, found.sentence.c_str());
        QVERIFY(kind < 0 ? found.disorder == align::Disorder::None : test::isRight(found, made));
        QVERIFY(scan.scores.size() == 129);
        QVERIFY(seconds < 5.0);
    }
};

QTEST_GUILESS_MAIN(TestOrderTrials)
#include "tst_order_trials.moc"
