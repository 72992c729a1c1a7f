// SPDX-License-Identifier: Apache-2.0
#include "run/dealer.h"

#include <QTest>

#include <map>
#include <random>

using namespace muster;
using namespace muster::run;

class TestDealer : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void ranksPullInOrderUpToThePrefetch();
    void fixedSharesGoToTheirOwners();
    void aLostRanksUnitsComeBackFirst();
    void aUnitThatKillsTwiceIsSetAside();
    void aRefusedResultIsOpenAgainAndThenSetAside();
    void aUnitThatIsToBlameFromBeforeIsSetAsideAlone();
    void aTornDownGroupBlamesNobody();
    void aRankThatComesBackKeepsWhatNobodyElseGot();
    void aResultThatCameLateStillCounts();
    void aSecondResultIsCompared();
    void aRankThatWasNeverGivenAUnitIsFound();
    void idleRanksRedoTheOldestOpenUnit();
    void anAbandonedShareIsDealtToTheOthers();
    void unitsDoneBeforeAreNotHandedOut();
    void aHangingUnitIsOverdue();
    void everyUnitIsDoneOnceUnderRandomLosses_data();
    void everyUnitIsDoneOnceUnderRandomLosses();
};

namespace {

std::vector<double> ones(std::size_t n)
{
    return std::vector<double>(n, 1.0);
}

std::vector<std::uint64_t> unitsOf(const std::vector<Dealer::Handout>& handouts)
{
    std::vector<std::uint64_t> units;
    for (const auto& h : handouts)
        units.push_back(h.unit.value);
    return units;
}

using Units = std::vector<std::uint64_t>;

} // namespace

void TestDealer::ranksPullInOrderUpToThePrefetch()
{
    Dealer dealer(ones(10), {}, {});
    dealer.rankJoined(RankId(0));
    dealer.rankJoined(RankId(1));
    QCOMPARE(unitsOf(dealer.handOut(RankId(0), 0)), (Units{0, 1, 2}));
    QCOMPARE(unitsOf(dealer.handOut(RankId(1), 0)), (Units{3, 4, 5}));
    QVERIFY(dealer.handOut(RankId(0), 0).empty());
    QCOMPARE(dealer.received(RankId(0), UnitId(0), 5), Dealer::Receipt::Expected);
    dealer.committed(UnitId(0));
    QCOMPARE(unitsOf(dealer.handOut(RankId(0), 5)), (Units{6}));
    QCOMPARE(dealer.openUnits(), std::size_t{9});
    QVERIFY(dealer.handOut(RankId(7), 5).empty()); // not present
}

void TestDealer::fixedSharesGoToTheirOwners()
{
    Dealer dealer(ones(4), {RankId(1), RankId(0), RankId(1), RankId(1)}, {});
    dealer.rankJoined(RankId(0));
    dealer.rankJoined(RankId(1));
    QCOMPARE(unitsOf(dealer.handOut(RankId(0), 0)), (Units{1}));
    QCOMPARE(unitsOf(dealer.handOut(RankId(1), 0)), (Units{0, 2, 3}));
}

void TestDealer::aLostRanksUnitsComeBackFirst()
{
    Dealer dealer(ones(6), {}, {});
    dealer.rankJoined(RankId(0));
    dealer.rankJoined(RankId(1));
    (void)dealer.handOut(RankId(0), 0);
    const auto loss = dealer.rankLost(RankId(0));
    QCOMPARE(loss.requeued.size(), std::size_t{3});
    QVERIFY(loss.setAside.empty());
    const auto again = dealer.handOut(RankId(1), 0);
    QCOMPARE(unitsOf(again), (Units{0, 1, 2}));
    QCOMPARE(again[0].attempt, std::uint32_t{1});
}

void TestDealer::aUnitThatKillsTwiceIsSetAside()
{
    Dealer dealer(ones(2), {}, {});
    for (int round = 0; round < 2; ++round) {
        dealer.rankJoined(RankId(0));
        QCOMPARE(unitsOf(dealer.handOut(RankId(0), 0)), (Units{0, 1}));
        const auto loss = dealer.rankLost(RankId(0));
        QCOMPARE(loss.setAside.size(), std::size_t(round));
    }
    QCOMPARE(dealer.unitsSetAside(), std::vector{UnitId(0)});
    dealer.rankJoined(RankId(0));
    QCOMPARE(unitsOf(dealer.handOut(RankId(0), 0)), (Units{1}));
    QCOMPARE(dealer.received(RankId(0), UnitId(1), 1), Dealer::Receipt::Expected);
    dealer.committed(UnitId(1));
    QVERIFY(dealer.finished());
}

void TestDealer::aRefusedResultIsOpenAgainAndThenSetAside()
{
    Dealer dealer(ones(1), {}, {});
    dealer.rankJoined(RankId(0));
    for (int round = 0; round < 2; ++round) {
        QCOMPARE(unitsOf(dealer.handOut(RankId(0), 0)), (Units{0}));
        QCOMPARE(dealer.received(RankId(0), UnitId(0), 1), Dealer::Receipt::Expected);
        const auto loss = dealer.refused(RankId(0), UnitId(0));
        QCOMPARE(loss.requeued.size(), std::size_t(round == 0 ? 1 : 0));
        QCOMPARE(loss.setAside.size(), std::size_t(round == 0 ? 0 : 1));
    }
    QVERIFY(dealer.finished());
}

void TestDealer::aRankThatComesBackKeepsWhatNobodyElseGot()
{
    Dealer dealer(ones(2), {}, {.prefetch = 1});
    dealer.rankJoined(RankId(0));
    dealer.rankJoined(RankId(1));
    (void)dealer.handOut(RankId(0), 0);
    (void)dealer.rankLost(RankId(0), Dealer::Blame::Nobody);
    dealer.rankJoined(RankId(0));
    dealer.reclaim(RankId(0), UnitId(0), 1);
    QCOMPARE(unitsOf(dealer.handOut(RankId(1), 1)), (Units{1}));
    dealer.reclaim(RankId(0), UnitId(1), 1); // the other rank has it now
    QCOMPARE(dealer.inHand(RankId(0)), std::size_t{1});
}

void TestDealer::aUnitThatIsToBlameFromBeforeIsSetAsideAlone()
{
    Dealer dealer(ones(6), {}, {});
    dealer.rankJoined(RankId(0));
    (void)dealer.handOut(RankId(0), 0); // 0 1 2
    QCOMPARE(dealer.rankLostOver(RankId(0), UnitId(1)).setAside.size(), std::size_t{0});
    dealer.rankJoined(RankId(0));
    QCOMPARE(unitsOf(dealer.handOut(RankId(0), 0)), (Units{0, 1, 2}));
    QCOMPARE(dealer.attempts(UnitId(1)), 2U);
    const auto loss = dealer.rankLostOver(RankId(0), UnitId(1));
    QVERIFY(loss.setAside == std::vector<UnitId>{UnitId(1)});
    QCOMPARE(loss.requeued.size(), std::size_t{2});
    QVERIFY(dealer.isSetAside(UnitId(1)));
    QVERIFY(dealer.isSettled(UnitId(1)));
    dealer.rankJoined(RankId(0));
    QCOMPARE(unitsOf(dealer.handOut(RankId(0), 0)), (Units{0, 2, 3}));
    // One that arrived meanwhile cannot be to blame any more.
    QVERIFY(dealer.received(RankId(0), UnitId(0), 1) == Dealer::Receipt::Expected);
    dealer.committed(UnitId(0));
    QVERIFY(dealer.rankLostOver(RankId(0), UnitId(0)).setAside.empty());
    QVERIFY(dealer.isDone(UnitId(0)));
}

void TestDealer::aTornDownGroupBlamesNobody()
{
    Dealer dealer(ones(2), {}, {});
    for (int round = 0; round < 5; ++round) {
        dealer.rankJoined(RankId(0));
        (void)dealer.handOut(RankId(0), 0);
        (void)dealer.rankLost(RankId(0), Dealer::Blame::Nobody);
    }
    QVERIFY(dealer.unitsSetAside().empty());
}

void TestDealer::aResultThatCameLateStillCounts()
{
    Dealer dealer(ones(1), {}, {});
    dealer.rankJoined(RankId(0));
    (void)dealer.handOut(RankId(0), 0);
    (void)dealer.rankLost(RankId(0));
    // The rank was only stopped: it connects again and sends what it had.
    dealer.rankJoined(RankId(0));
    QCOMPARE(dealer.received(RankId(0), UnitId(0), 9), Dealer::Receipt::Expected);
    dealer.committed(UnitId(0));
    QVERIFY(dealer.finished());
    QVERIFY(dealer.handOut(RankId(0), 9).empty());
}

void TestDealer::aSecondResultIsCompared()
{
    Dealer dealer(ones(1), {}, {});
    dealer.rankJoined(RankId(0));
    dealer.rankJoined(RankId(1));
    (void)dealer.handOut(RankId(0), 0);
    (void)dealer.rankLost(RankId(0));
    (void)dealer.handOut(RankId(1), 0);
    QCOMPARE(dealer.received(RankId(0), UnitId(0), 9), Dealer::Receipt::Expected);
    QCOMPARE(dealer.received(RankId(1), UnitId(0), 9), Dealer::Receipt::Again);
    dealer.committed(UnitId(0));
    QCOMPARE(dealer.received(RankId(1), UnitId(0), 10), Dealer::Receipt::Again);
    QVERIFY(dealer.finished());
    QVERIFY(dealer.idle());
}

void TestDealer::aRankThatWasNeverGivenAUnitIsFound()
{
    Dealer dealer(ones(2), {}, {});
    dealer.rankJoined(RankId(0));
    dealer.rankJoined(RankId(1));
    (void)dealer.handOut(RankId(0), 0);
    QCOMPARE(dealer.received(RankId(1), UnitId(0), 9), Dealer::Receipt::NeverGiven);
}

void TestDealer::idleRanksRedoTheOldestOpenUnit()
{
    Dealer dealer(ones(2), {}, {.prefetch = 0});
    dealer.rankJoined(RankId(0));
    dealer.rankJoined(RankId(1));
    QCOMPARE(unitsOf(dealer.handOut(RankId(0), 0)), (Units{0}));
    QCOMPARE(unitsOf(dealer.handOut(RankId(1), 0)), (Units{1}));
    (void)dealer.received(RankId(1), UnitId(1), 100'000'000);
    dealer.committed(UnitId(1));
    QVERIFY(dealer.handOut(RankId(1), 110'000'000).empty()); // not late yet
    const auto copy = dealer.handOut(RankId(1), 5'000'000'000);
    QCOMPARE(unitsOf(copy), (Units{0}));
    QCOMPARE(copy[0].attempt, std::uint32_t{1});
    // The slow rank dies now: the copy is on its way, nothing is queued again.
    QVERIFY(dealer.rankLost(RankId(0)).requeued.empty());
    QCOMPARE(dealer.received(RankId(1), UnitId(0), 6'000'000'000), Dealer::Receipt::Expected);
}

void TestDealer::anAbandonedShareIsDealtToTheOthers()
{
    Dealer dealer(ones(3), {RankId(0), RankId(0), RankId(1)}, {});
    dealer.rankJoined(RankId(0));
    dealer.rankJoined(RankId(1));
    (void)dealer.handOut(RankId(0), 0);
    (void)dealer.rankLost(RankId(0));
    QCOMPARE(unitsOf(dealer.handOut(RankId(1), 0)), (Units{2}));
    dealer.abandon(RankId(0));
    QCOMPARE(unitsOf(dealer.handOut(RankId(1), 0)), (Units{0, 1}));
}

void TestDealer::unitsDoneBeforeAreNotHandedOut()
{
    Dealer dealer(ones(3), {}, {});
    dealer.alreadyDone(UnitId(0));
    dealer.alreadyDone(UnitId(0));
    dealer.alreadyDone(UnitId(2));
    dealer.rankJoined(RankId(0));
    QCOMPARE(unitsOf(dealer.handOut(RankId(0), 0)), (Units{1}));
    QCOMPARE(dealer.openUnits(), std::size_t{1});
}

void TestDealer::aHangingUnitIsOverdue()
{
    Dealer dealer(ones(2), {}, {.prefetch = 0, .leastDeadlineNs = 1'000});
    dealer.rankJoined(RankId(0));
    (void)dealer.handOut(RankId(0), 0);
    QVERIFY(dealer.overdue(1'000).empty());
    const auto late = dealer.overdue(1'001);
    QCOMPARE(late.size(), std::size_t{1});
    QCOMPARE(late[0].unit, UnitId(0));
}

void TestDealer::everyUnitIsDoneOnceUnderRandomLosses_data()
{
    QTest::addColumn<bool>("fixed");
    QTest::newRow("dynamic") << false;
    QTest::newRow("fixed shares") << true;
}

void TestDealer::everyUnitIsDoneOnceUnderRandomLosses()
{
    QFETCH(bool, fixed);
    for (unsigned seed = 0; seed < 200; ++seed) {
        std::mt19937 random(seed);
        const std::size_t units = random() % 40;
        const std::uint32_t ranks = 1 + static_cast<std::uint32_t>(random() % 9);
        std::vector<RankId> owners;
        if (fixed)
            for (std::size_t u = 0; u < units; ++u)
                owners.emplace_back(static_cast<std::uint32_t>(random() % ranks));
        Dealer dealer(ones(units), owners, {.prefetch = static_cast<std::uint32_t>(random() % 4)});
        std::map<std::uint32_t, std::vector<UnitId>> hand;
        std::vector<int> done(units, 0);
        for (std::uint32_t r = 0; r < ranks; ++r)
            dealer.rankJoined(RankId(r));
        std::int64_t now = 0;
        int steps = 0;
        while (!dealer.finished()) {
            QVERIFY(++steps < 20000);
            now += 1'000'000;
            const RankId rank(static_cast<std::uint32_t>(random() % ranks));
            auto& mine = hand[rank.value];
            for (const auto& handout : dealer.handOut(rank, now))
                mine.push_back(handout.unit);
            if (random() % 13 == 0) {
                (void)dealer.rankLost(rank, Dealer::Blame::Nobody);
                mine.clear();
                dealer.rankJoined(rank);
            } else if (!mine.empty()) {
                const UnitId unit = mine.front();
                mine.erase(mine.begin());
                const auto receipt = dealer.received(rank, unit, now);
                QVERIFY(receipt != Dealer::Receipt::NeverGiven);
                if (receipt == Dealer::Receipt::Expected) {
                    ++done[unit.value];
                    dealer.committed(unit);
                }
            }
        }
        for (const int count : done)
            QCOMPARE(count, 1);
    }
}

QTEST_GUILESS_MAIN(TestDealer)
#include "tst_dealer.moc"
