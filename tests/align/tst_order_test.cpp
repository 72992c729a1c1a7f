// SPDX-License-Identifier: Apache-2.0
#include "align/order_trials.h"
#include "support/shared_data.h"

#include <QRegularExpression>
#include <QTest>

using namespace muster;
using align::Disorder;

namespace {

/// N questions with answers of their own; a prediction is right with probability `right`.
test::RealAnswers madeUp(std::uint64_t samples, double right, std::uint64_t seed)
{
    test::RealAnswers made;
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    for (std::uint32_t i = 0; i < samples; ++i) {
        made.references.push_back({i});
        made.predictions.push_back(
            uniform(random) < right ? i : static_cast<std::uint32_t>(samples + random() % samples));
    }
    return made;
}

} // namespace

class TestOrderTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void namesDistortionsOfRealPredictions()
    {
        MUSTER_SHARED_OR_SKIP(squad, "data/xquad/xquad.en.json");
        MUSTER_SHARED_OR_SKIP(texts, "goldens/minilm-qa/xquad-en.predictions.json");
        const test::RealAnswers all = test::readAnswers(squad, texts);
        const test::Trials trials = test::distortedTrials(all, 45, 1);
        QVERIFY2(trials.wrong == 0, qPrintable(QString::number(trials.wrong)));
        QCOMPARE(test::alarmsOnCleanFiles(all, 40, 2), 0);
    }

    void saysPlaceAndPatternInOneSentence_data()
    {
        QTest::addColumn<int>("kind");
        QTest::addColumn<QString>("sentence");
        QTest::newRow("late") << 0 << "from index (\\d+) on everything is .* late.*";
        QTest::newRow("early") << 1 << "from index (\\d+) on everything is .* early.*";
        QTest::newRow("C-007 rank-major")
            << 2 << "the file is rank-major: strided shares of world size (\\d+) one after.*";
        QTest::newRow("C-001 copies in a rank-major file")
            << 3 << "the file is rank-major: .*world size (\\d+).*as a sampler that pads adds.*";
        QTest::newRow("batches")
            << 4 << "the file is rank-major: batches of (\\d+) dealt in turn to world size \\d+.*";
        QTest::newRow("steps")
            << 5 << "the file is in steps: strided shares of world size (\\d+) gathered.*";
        QTest::newRow("blocks") << 6 << ".*rows (\\d+) to \\d+ and rows \\d+ to \\d+.*exchanged.*";
        QTest::newRow("block ranks") << 7 << "ranks (\\d+) and \\d+ are exchanged: rows .*";
        QTest::newRow("strided ranks")
            << 8 << "ranks (\\d+) and \\d+ are exchanged: of every \\d+ rows.*";
        QTest::newRow("C-004 copies behind the end")
            << 9 << "the last (?:(\\d+) rows are|row is) padding: .* of the first \\d+";
        QTest::newRow("copies instead of the end")
            << 10 << "the last (\\d+) rows are padding: copies of the first \\d+ instead of .*";
        QTest::newRow("T-29 sorted copies") << 11 << "the first (\\d+) samples stand twice.*";
        QTest::newRow("T-28 pads first") << 12 << "(\\d+) rows that are no samples stand in.*";
        QTest::newRow("reversed") << 13 << "the rows stand in reverse order";
        QTest::newRow("C-004 shuffled") << 14 << "the rows are shuffled: .*";
    }
    void saysPlaceAndPatternInOneSentence()
    {
        QFETCH(int, kind);
        QFETCH(QString, sentence);
        const test::RealAnswers all = madeUp(1003, 0.7, 5);
        std::mt19937_64 random(static_cast<std::uint64_t>(kind) + 3);
        const test::Distorted made = test::distort(all.predictions, kind, random);
        const auto found = align::testOrder(all.with(made.rows));
        QVERIFY2(test::isRight(found, made), found.sentence.c_str());
        const QRegularExpression wanted("^" + sentence + "$");
        QVERIFY2(wanted.match(QString::fromStdString(found.sentence)).hasMatch(),
                 found.sentence.c_str());
        QVERIFY(found.confidence > 0.98);
    }

    void givesTheInversePermutation()
    {
        const test::RealAnswers all = madeUp(1000, 0.8, 6);
        const align::DealtOrder order(1000, {align::Dealing::Kind::Stride, 7, 1, false, false});
        std::vector<std::uint32_t> rows;
        for (std::uint64_t i = 0; i < 1000; ++i)
            rows.push_back(all.predictions[order.at(i)]);
        const auto found = align::testOrder(all.with(rows));
        QCOMPARE(found.worldSize, std::uint64_t{7});
        for (std::uint64_t i = 0; i < 1000; ++i)
            QCOMPARE(found.referenceOf[i], order.at(i));
        QVERIFY(found.agreedAfter > 750);
        QVERIFY(found.agreedBefore < 20);
    }

    void findsSharesJoinedByName()
    {
        const test::RealAnswers all = madeUp(1000, 0.8, 8);
        const align::DealtOrder order(1000, {align::Dealing::Kind::Stride, 16, 1, false, true});
        std::vector<std::uint32_t> rows;
        for (std::uint64_t i = 0; i < 1000; ++i)
            rows.push_back(all.predictions[order.at(i)]);
        const auto found = align::testOrder(all.with(rows));
        QCOMPARE(found.disorder, Disorder::RankMajor);
        QVERIFY2(found.sentence.find("in the order of names") != std::string::npos,
                 found.sentence.c_str());
    }

    void findsAnOrderThatWasGiven()
    {
        const test::RealAnswers all = madeUp(500, 0.6, 9);
        align::NamedOrder order{"length, longest first", {}};
        for (std::uint64_t i = 0; i < 500; ++i)
            order.order.push_back(i * 137 % 500);
        std::vector<std::uint32_t> rows;
        for (const std::uint64_t i : order.order)
            rows.push_back(all.predictions[i]);
        const std::vector<align::NamedOrder> orders{order};
        const auto found = align::testOrder(all.with(rows), orders);
        QCOMPARE(found.disorder, Disorder::Sorted);
        QCOMPARE(found.sentence, std::string("the rows are sorted by length, longest first"));
    }

    void ordersOfLabelsAreFoundToo()
    {
        // Two classes, 90 % right: nothing is rare.
        test::RealAnswers all;
        std::mt19937_64 random(4);
        for (int i = 0; i < 2000; ++i) {
            const auto label = static_cast<std::uint32_t>(random() % 2);
            all.references.push_back({label});
            all.predictions.push_back(random() % 10 == 0 ? 1 - label : label);
        }
        for (const int kind : {0, 2, 4, 13}) {
            const test::Distorted made = test::distort(all.predictions, kind, random);
            const auto found = align::testOrder(all.with(made.rows));
            QVERIFY2(found.disorder == made.disorder, found.sentence.c_str());
        }
        QCOMPARE(align::testOrder(all.with(all.predictions)).disorder, Disorder::None);
    }

    void saysWhenNothingCanBeSaid()
    {
        const test::RealAnswers all = madeUp(1000, 0.0, 3);
        const auto found = align::testOrder(all.with(all.predictions));
        QCOMPARE(found.disorder, Disorder::None);
        QVERIFY(!found.isTestable);
        QVERIFY(!found.doubt.empty());
    }

    void smallAndEmptyFilesDoNoHarm()
    {
        for (const std::uint64_t size : {0U, 1U, 2U, 3U, 7U}) {
            const test::RealAnswers all = madeUp(size, 1.0, 1);
            for (const std::uint64_t rows : {std::uint64_t{0}, size / 2, size, size + 2}) {
                auto file = all.predictions;
                file.resize(rows, align::noAnswer);
                const auto found = align::testOrder(all.with(file));
                QCOMPARE(found.referenceOf.size(), rows);
            }
        }
    }
};

QTEST_GUILESS_MAIN(TestOrderTest)
#include "tst_order_test.moc"
