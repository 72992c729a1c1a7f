// SPDX-License-Identifier: Apache-2.0
#include "align/dealing.h"
#include "align/shift_scan.h"

#include <QTest>

#include <algorithm>

using namespace muster;
using align::Dealing;

namespace {

align::Agreement numbers(const std::vector<std::uint32_t>& rows, std::uint32_t references)
{
    std::vector<std::uint64_t> starts{0};
    std::vector<std::uint32_t> classes;
    for (std::uint32_t i = 0; i < references; ++i) {
        classes.push_back(i);
        starts.push_back(classes.size());
    }
    return {rows, starts, classes};
}

std::vector<std::uint32_t> dealt(std::uint64_t total, const Dealing& dealing)
{
    const align::DealtOrder order(total, dealing);
    std::vector<std::uint32_t> rows;
    for (std::uint64_t i = 0; i < order.size(); ++i)
        rows.push_back(static_cast<std::uint32_t>(order.at(i)));
    return rows;
}

using Rows = std::vector<std::uint32_t>;

} // namespace

class TestShiftScan : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void dealingsAreThoseOfSemantics()
    {
        const auto stride = Dealing::Kind::Stride;
        const auto batches = Dealing::Kind::Batches;
        QCOMPARE(dealt(10, {stride, 4, 1, false, false}), (Rows{0, 4, 8, 1, 5, 9, 2, 6, 3, 7}));
        QCOMPARE(dealt(10, {stride, 4, 1, true, false}),
                 (Rows{0, 4, 8, 1, 5, 9, 2, 6, 0, 3, 7, 1}));
        QCOMPARE(dealt(10, {batches, 4, 2, true, false}),
                 (Rows{0, 1, 8, 9, 2, 3, 0, 1, 4, 5, 2, 3, 6, 7, 4, 5}));
        QCOMPARE(dealt(10, {batches, 4, 2, false, false}), (Rows{0, 1, 8, 9, 2, 3, 4, 5, 6, 7}));
        QCOMPARE(dealt(13, {batches, 2, 4, true, false}),
                 (Rows{0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 0, 1, 2}));
        const Rows steps = dealt(10, {Dealing::Kind::Steps, 8, 2, true, false});
        QCOMPARE(Rows(steps.begin(), steps.begin() + 8), (Rows{0, 8, 1, 9, 2, 0, 3, 1}));
        // C-007
        QCOMPARE(dealt(8, {stride, 2, 1, false, false}), (Rows{0, 2, 4, 6, 1, 3, 5, 7}));
    }

    void everyDealingHasEverySample()
    {
        for (std::uint64_t total = 1; total < 30; ++total) {
            for (std::uint64_t world = 1; world < 9; ++world) {
                for (std::uint64_t batch = 1; batch < 6; ++batch) {
                    for (const auto kind :
                         {Dealing::Kind::Stride, Dealing::Kind::Batches, Dealing::Kind::Steps}) {
                        for (const bool isPadded : {false, true}) {
                            Rows rows = dealt(total, {kind, world, batch, isPadded, false});
                            if (!isPadded && kind != Dealing::Kind::Steps)
                                QCOMPARE(rows.size(), total);
                            std::ranges::sort(rows);
                            rows.erase(std::ranges::unique(rows).begin(), rows.end());
                            QCOMPARE(rows.size(), total);
                        }
                    }
                }
            }
        }
    }

    void namesAreSortedAsText()
    {
        for (std::uint64_t count = 0; count < 1205; count += 1 + count / 9) {
            std::vector<std::string> names;
            for (std::uint64_t i = 0; i < count; ++i)
                names.push_back(std::to_string(i));
            std::ranges::sort(names);
            const auto order = align::orderByName(count);
            QCOMPARE(order.size(), count);
            for (std::uint64_t i = 0; i < count; ++i)
                QCOMPARE(std::to_string(order[i]), names[i]);
        }
    }

    void peakStandsAtTheShift()
    {
        Rows rows;
        for (std::uint32_t i = 0; i < 500; ++i)
            rows.push_back(i < 3 ? 900 : i - 3);
        const auto scan = align::shiftScan(numbers(rows, 500), 8);
        QCOMPARE(scan.scores.size(), std::size_t{17});
        QVERIFY(scan.hasPeak);
        QCOMPARE(scan.best, std::int64_t{-3});
        QCOMPARE(scan.scores[5].rate, 1.0);
        QVERIFY(scan.warning.empty());
    }

    void constantAnswersAreWarnedOf()
    {
        std::vector<std::uint64_t> starts{0};
        std::vector<std::uint32_t> classes;
        Rows rows;
        for (std::uint32_t i = 0; i < 200; ++i) {
            rows.push_back(i % 20 == 0 ? 1 : 0);
            classes.push_back(i % 20 == 0 ? 1 : 0);
            starts.push_back(classes.size());
        }
        const auto scan = align::shiftScan({rows, starts, classes}, 5);
        QVERIFY(!scan.warning.empty());
    }

    void exchangedRanksStandBesideTheDiagonal()
    {
        Rows rows;
        for (std::uint32_t i = 0; i < 400; ++i)
            rows.push_back(i / 100 == 1 ? i + 100 : i / 100 == 2 ? i - 100 : i);
        const auto matrix = align::crossMatrix(numbers(rows, 400), 4, align::Share::Block);
        for (std::uint64_t a = 0; a < 4; ++a) {
            for (std::uint64_t b = 0; b < 4; ++b) {
                const std::uint64_t from = b == 1 ? 2 : b == 2 ? 1 : b;
                QCOMPARE(matrix.rate[a * 4 + b], a == from ? 1.0 : 0.0);
            }
        }
    }

    void blockSharesAreThoseOfSemantics()
    {
        QCOMPARE(align::blockStart(10, 4, 0), std::uint64_t{0});
        QCOMPARE(align::blockStart(10, 4, 2), std::uint64_t{6});
        QCOMPARE(align::blockStart(10, 4, 4), std::uint64_t{10});
    }
};

QTEST_GUILESS_MAIN(TestShiftScan)
#include "tst_shift_scan.moc"
