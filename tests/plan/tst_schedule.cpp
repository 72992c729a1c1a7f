// SPDX-License-Identifier: Apache-2.0
#include "plan/schedule.h"

#include <QTest>

#include <algorithm>
#include <numeric>

using namespace muster;
using namespace muster::plan;

namespace {

/// `0 4 8|1 5 9|2 6 0*|3 7 1*`: ranks by bars, pads with a star.
QString print(const RankLists& lists)
{
    QStringList ranks;
    for (const auto& list : lists) {
        QStringList entries;
        for (const ListEntry& entry : list)
            entries += QString::number(entry.sample.value) + (entry.pad ? "*" : "");
        ranks += entries.join(' ');
    }
    return ranks.join('|');
}

} // namespace

class TestSchedule : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void compatibilityListsAreThoseOfTheOtherSystem_data();
    void compatibilityListsAreThoseOfTheOtherSystem();
    void everySampleIsRealExactlyOnce();
    void anUnknownNameListsTheKnownOnes();
    void aSamplerThatFailsItselfIsAnError();
    void dropLastNamesWhatIsLost();
    void sharesCoverEveryUnitOnce();
    void balancedBeatsStrideOnAPattern();
};

void TestSchedule::compatibilityListsAreThoseOfTheOtherSystem_data()
{
    QTest::addColumn<QByteArray>("name");
    QTest::addColumn<int>("samples");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<int>("batch");
    QTest::addColumn<QString>("expected");
    const auto row = [](const char* title, const char* name, int n, int w, int b,
                        const char* text) {
        QTest::newRow(title) << QByteArray(name) << n << w << b << QString(text);
    };
    // The table of semantics.md 1.1, N = 10, W = 4, b = 2.
    row("1.1 distributed (C-001)", "pt-distributed", 10, 4, 2, "0 4 8|1 5 9|2 6 0*|3 7 1*");
    row("1.1 distributed, drop last", "pt-distributed-drop-last", 10, 4, 2, "0 4|1 5|2 6|3 7");
    row("1.1 split", "accelerate-split", 10, 4, 2, "0 1 2|3 4 5|6 7|8 9");
    row("1.1 split, padded", "accelerate-split-padded", 10, 4, 2, "0 1 2|3 4 5|6 7 9*|8 9 9*");
    row("1.1 batches, even", "accelerate-batch", 10, 4, 2, "0 1 8 9|2 3 0* 1*|4 5 2* 3*|6 7 4* 5*");
    row("1.1 batches, uneven", "accelerate-batch-uneven", 10, 4, 2, "0 1 8 9|2 3|4 5|6 7");
    row("1.1 sequential", "hf-sequential", 10, 4, 2, "0 1 2|3 4 5|6 7 8|9 0* 1*");
    row("1.1 shard", "hf-shard", 10, 4, 2, "0 1 8 9|2 3 0* 1*|4 5 2* 3*|6 7 4* 5*");
    row("1.1 stripe", "lm-eval", 10, 4, 2, "0 4 8|1 5 9|2 6|3 7");
    row("1.1 generation", "lighteval", 10, 4, 2, "0 4 8|1 5 9|2 6 9*|3 7 9*");
    // 1.2
    row("1.2 tiled", "pt-distributed", 4, 9, 1, "0|1|2|3|0*|1*|2*|3*|0*");
    row("1.2 tiled twice", "pt-distributed", 2, 5, 1, "0|1|0*|1*|0*");
    row("1.2 all empty", "pt-distributed-drop-last", 4, 9, 1, "||||||||");
    // 1.3
    row("1.3 first ranks one more", "accelerate-split", 5, 4, 1, "0 1|2|3|4");
    row("1.3 fewer samples than ranks (C-005)", "accelerate-split", 2, 4, 1, "0|1||");
    row("1.3 padded", "accelerate-split-padded", 5, 4, 1, "0 1|2 4*|3 4*|4 4*");
    row("1.3 nothing to repeat (T-05)", "accelerate-split-padded", 0, 2, 1, "|");
    row("1.3 one rank is untouched", "accelerate-split-padded", 3, 1, 1, "0 1 2");
    // 1.4
    row("1.4 N=13 b=4", "accelerate-batch", 13, 2, 4, "0 1 2 3 8 9 10 11|4 5 6 7 12 0* 1* 2*");
    row("1.4 N=3 b=2", "accelerate-batch", 3, 5, 2, "0 1|2 0*|1* 2*|0* 1*|2* 0*");
    row("1.4 N=1 b=4", "accelerate-batch", 1, 2, 4, "0 0* 0* 0*|0* 0* 0* 0*");
    row("C-003 remainder 0 keeps all", "accelerate-batch", 8, 2, 2, "0 1 4 5|2 3 6 7");
    // 1.5
    row("1.5 shard is safe for tiny sets", "hf-shard", 1, 2, 2, "0 0*|0* 0*");
    row("no samples", "accelerate-batch", 0, 3, 2, "||");
}

void TestSchedule::compatibilityListsAreThoseOfTheOtherSystem()
{
    QFETCH(QByteArray, name);
    QFETCH(int, samples);
    QFETCH(int, ranks);
    QFETCH(int, batch);
    QFETCH(QString, expected);
    const auto lists =
        compatLists(name.toStdString(), static_cast<std::uint64_t>(samples),
                    static_cast<std::uint32_t>(ranks), static_cast<std::uint32_t>(batch));
    QVERIFY2(lists.has_value(), lists ? "" : lists.error().text().c_str());
    QCOMPARE(print(*lists), expected);
}

void TestSchedule::everySampleIsRealExactlyOnce()
{
    for (const std::string_view name : compatNames())
        for (std::uint64_t n = 0; n <= 23; ++n)
            for (std::uint32_t w = 1; w <= 7; ++w)
                for (std::uint32_t b = 1; b <= 5; ++b) {
                    const auto lists = compatLists(name, n, w, b);
                    if (!lists)
                        continue;
                    QCOMPARE(lists->size(), std::size_t{w});
                    std::vector<int> count(n, 0);
                    for (const auto& list : *lists)
                        for (const ListEntry& entry : list)
                            count[entry.sample.value] += entry.pad ? 0 : 1;
                    const auto lost = lostSamples(*lists, n);
                    for (const SampleIndex index : lost)
                        count[index.value] += 1;
                    QVERIFY2(std::all_of(count.begin(), count.end(), [](int c) { return c == 1; }),
                             std::string(name).c_str());
                    QVERIFY(lost.empty() || name == "pt-distributed-drop-last");
                }
}

void TestSchedule::anUnknownNameListsTheKnownOnes()
{
    const auto lists = compatLists("horovod", 4, 2, 1);
    QVERIFY(!lists);
    QCOMPARE(lists.error().code, std::string("E-PLAN-001"));
    QVERIFY(lists.error().message.find("accelerate-batch") != std::string::npos);
}

void TestSchedule::aSamplerThatFailsItselfIsAnError()
{
    const auto lists = compatLists("hf-sequential", 4, 9, 1); // T-06
    QVERIFY(!lists);
    QCOMPARE(lists.error().code, std::string("E-PLAN-002"));
}

void TestSchedule::dropLastNamesWhatIsLost()
{
    const auto lists = compatLists("pt-distributed-drop-last", 10, 4, 1);
    QVERIFY(lists.has_value());
    QCOMPARE(lostSamples(*lists, 10), (std::vector{SampleIndex(8), SampleIndex(9)}));
}

void TestSchedule::sharesCoverEveryUnitOnce()
{
    for (std::size_t units = 0; units <= 17; ++units)
        for (std::uint32_t ranks = 1; ranks <= 9; ++ranks) {
            const std::vector<double> costs(units, 1.0);
            for (const auto& owner : {share::block(units, ranks), share::stride(units, ranks),
                                      share::balanced(costs, ranks)}) {
                QCOMPARE(owner.size(), units);
                for (const double work : workOf(owner, costs, ranks)) {
                    QVERIFY(work >= static_cast<double>(units / ranks));
                    QVERIFY(work <= static_cast<double>((units + ranks - 1) / ranks));
                }
            }
        }
    QCOMPARE(share::block(5, 2)[2], RankId(0));
    QCOMPARE(share::block(5, 2)[3], RankId(1));
}

void TestSchedule::balancedBeatsStrideOnAPattern()
{
    // C-068: lengths 100, 1, 100, 1, … on two ranks: strides give 400 against 4.
    const std::vector<double> costs{100, 1, 100, 1, 100, 1, 100, 1};
    const auto stride = workOf(share::stride(costs.size(), 2), costs, 2);
    QCOMPARE(stride, (std::vector{400.0, 4.0}));
    QVERIFY(std::abs(imbalance(stride) - 1.98) < 0.001);
    const auto balanced = workOf(share::balanced(costs, 2), costs, 2);
    QCOMPARE(balanced, (std::vector{202.0, 202.0}));
    QCOMPARE(imbalance(balanced), 1.0);
    QCOMPARE(imbalance({}), 1.0);
}

QTEST_GUILESS_MAIN(TestSchedule)
#include "tst_schedule.moc"
