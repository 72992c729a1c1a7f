// SPDX-License-Identifier: Apache-2.0
#include "plan/units.h"

#include <QTest>

#include <random>

using namespace muster;
using namespace muster::plan;

namespace {

ItemTable makeItems(const std::vector<std::uint32_t>& lengths)
{
    ItemTable items(wire::UnitKind::Qa);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        std::vector<std::int32_t> tokens(lengths[i]);
        for (std::size_t k = 0; k < tokens.size(); ++k)
            tokens[k] = static_cast<std::int32_t>(i * 7 + k);
        const std::vector<std::uint8_t> segments(lengths[i], 1);
        items.append(SampleIndex(i), tokens, segments);
    }
    return items;
}

} // namespace

class TestUnits : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyItemIsInOneUnitWithinTheBudget();
    void longestUnitsComeFirst();
    void anItemLongerThanTheBudgetStandsAlone();
    void noItemsGiveNoUnits();
    void theDigestSeesEveryChange();
    void aUnitCarriesWhatWasPlanned();
    void sameArgumentsGiveTheSamePlan();
};

void TestUnits::everyItemIsInOneUnitWithinTheBudget()
{
    std::mt19937 random(1);
    for (int round = 0; round < 50; ++round) {
        std::vector<std::uint32_t> lengths(random() % 200);
        for (auto& length : lengths)
            length = 1 + static_cast<std::uint32_t>(random() % 384);
        const ItemTable items = makeItems(lengths);
        const PackRules rules{1 + static_cast<std::uint32_t>(random() % 2048),
                              1 + static_cast<std::uint32_t>(random() % 40),
                              {}};
        const UnitTable units = UnitTable::pack(items, rules);
        std::vector<int> seen(lengths.size(), 0);
        for (std::uint64_t u = 0; u < units.size(); ++u) {
            std::uint64_t tokens = 0;
            for (const std::uint64_t item : units.items(UnitId(u))) {
                ++seen[item];
                tokens += items.length(ItemIndex(item));
                QCOMPARE(units.unitOf(ItemIndex(item)), UnitId(u));
            }
            QCOMPARE(units.tokens(UnitId(u)), tokens);
            QVERIFY(tokens <= rules.unitTokens || units.items(UnitId(u)).size() == 1);
            QVERIFY(units.items(UnitId(u)).size() <= rules.unitItems);
        }
        for (const int count : seen)
            QCOMPARE(count, 1);
    }
}

void TestUnits::longestUnitsComeFirst()
{
    const ItemTable items = makeItems({10, 200, 30, 200, 90, 10});
    const UnitTable units = UnitTable::pack(items, {200, 8, CostModel::transformer(64)});
    for (std::size_t u = 1; u < units.size(); ++u)
        QVERIFY(units.costs()[u - 1] >= units.costs()[u]);
    QCOMPARE(units.items(UnitId(0))[0], std::uint64_t{1}); // equal lengths: the lower index first
    QCOMPARE(units.items(UnitId(1))[0], std::uint64_t{3});
}

void TestUnits::anItemLongerThanTheBudgetStandsAlone()
{
    const UnitTable units = UnitTable::pack(makeItems({500, 3, 3}), {100, 8, {}});
    QCOMPARE(units.size(), std::size_t{2}); // the two short ones fit the smallest budget, 12
    QCOMPARE(units.items(UnitId(0)).size(), std::size_t{1});
    QCOMPARE(units.items(UnitId(1)).size(), std::size_t{2});
}

void TestUnits::noItemsGiveNoUnits()
{
    QCOMPARE(UnitTable::pack(makeItems({}), {}).size(), std::size_t{0});
}

void TestUnits::theDigestSeesEveryChange()
{
    const PackRules rules{64, 8, {}};
    const auto digest = [&](const ItemTable& items, const PackRules& r) {
        return planDigest(items, UnitTable::pack(items, r));
    };
    const ItemTable items = makeItems({10, 20, 30});
    QCOMPARE(digest(items, rules), digest(makeItems({10, 20, 30}), rules));
    QVERIFY(digest(items, rules) != digest(makeItems({10, 20, 31}), rules));
    QVERIFY(digest(items, rules) != digest(items, {1000, 8, {}}));
    ItemTable otherKind(wire::UnitKind::Classification);
    QVERIFY(digest(otherKind, rules) != digest(makeItems({}), rules));
}

void TestUnits::aUnitCarriesWhatWasPlanned()
{
    const ItemTable items = makeItems({4, 9, 2});
    const UnitTable units = UnitTable::pack(items, {1000, 8, {}});
    const wire::Unit unit = makeUnit(items, units, UnitId(0), 3);
    QVERIFY(unit.valid());
    QCOMPARE(unit.attempt, std::uint32_t{3});
    QCOMPARE(unit.items, (std::vector<std::uint64_t>{1, 0, 2}));
    for (std::size_t i = 0; i < unit.size(); ++i)
        QCOMPARE(wire::itemHash(unit, i), items.hash(ItemIndex(unit.items[i])));
}

void TestUnits::sameArgumentsGiveTheSamePlan()
{
    const ItemTable items = makeItems({5, 5, 5, 7, 7, 1});
    const UnitTable a = UnitTable::pack(items, {12, 8, {}});
    const UnitTable b = UnitTable::pack(items, {12, 8, {}});
    QCOMPARE(planDigest(items, a), planDigest(items, b));
}

QTEST_GUILESS_MAIN(TestUnits)
#include "tst_units.moc"
