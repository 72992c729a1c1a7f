// SPDX-License-Identifier: Apache-2.0
#include "wire/unit.h"

#include <QTest>

#include <cstring>
#include <random>

using namespace muster;
using namespace muster::wire;

namespace {

Unit makeUnit(unsigned seed, std::size_t items, bool hasSegments, bool hasScoredFrom)
{
    std::mt19937 random(seed);
    Unit unit;
    unit.id = UnitId(random());
    unit.kind = hasScoredFrom ? UnitKind::Lm : UnitKind::Qa;
    unit.attempt = seed % 3;
    unit.offsets.push_back(0);
    for (std::size_t i = 0; i < items; ++i) {
        unit.items.push_back(random());
        const auto size = static_cast<unsigned>(1 + random() % 40);
        for (unsigned t = 0; t < size; ++t) {
            unit.tokens.push_back(static_cast<std::int32_t>(random() % 30522));
            if (hasSegments)
                unit.segments.push_back(static_cast<std::uint8_t>(random() % 2));
        }
        unit.offsets.push_back(static_cast<std::uint32_t>(unit.tokens.size()));
        if (hasScoredFrom)
            unit.scoredFrom.push_back(static_cast<std::uint32_t>(random() % (size + 1)));
    }
    return unit;
}

} // namespace

class TestUnit : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aUnitComesBackAsItWasSent()
    {
        for (unsigned seed = 0; seed < 200; ++seed) {
            const Unit unit = makeUnit(seed, 1 + seed % 20, seed % 2 == 0, seed % 3 == 0);
            QVERIFY(unit.valid());
            const auto back = decodeUnit(encodeUnit(unit));
            QVERIFY(back.has_value());
            QCOMPARE(*back, unit);
        }
    }

    void everyCutAndEveryExtraByteIsRefused()
    {
        const auto bytes = encodeUnit(makeUnit(4, 5, true, true));
        for (std::size_t size = 0; size < bytes.size(); ++size) {
            const auto unit = decodeUnit(std::span{bytes}.first(size));
            QVERIFY(!unit);
            QCOMPARE(QString::fromStdString(unit.error().code), QStringLiteral("E-WIRE-010"));
        }
        auto more = bytes;
        more.push_back(std::byte{0});
        QVERIFY(!decodeUnit(more));
    }

    void countsThatTheBytesCannotFillAreRefused()
    {
        const auto bytes = encodeUnit(makeUnit(4, 5, false, false));
        for (const std::size_t at : {16U, 20U}) {
            for (const std::uint32_t count : {0U, 1U, 6U, 0x7FFFFFFFU, 0xFFFFFFFFU}) {
                auto changed = bytes;
                std::memcpy(changed.data() + at, &count, 4);
                QVERIFY(!decodeUnit(changed));
            }
        }
    }

    void unitsThatBreakARuleAreNotValid()
    {
        const Unit good = makeUnit(4, 5, true, true);
        Unit unit = good;
        unit.offsets[2] = unit.offsets[1];
        QVERIFY(!unit.valid());
        unit = good;
        unit.offsets[0] = 1;
        QVERIFY(!unit.valid());
        unit = good;
        unit.tokens.pop_back();
        QVERIFY(!unit.valid());
        unit = good;
        unit.segments.pop_back();
        QVERIFY(!unit.valid());
        unit = good;
        unit.scoredFrom[1] = 1000;
        QVERIFY(!unit.valid());
        unit = good;
        unit.kind = static_cast<UnitKind>(9);
        QVERIFY(!unit.valid());
        QVERIFY(!Unit().valid());
    }

    void randomDamageGivesAnErrorOrAValidUnit()
    {
        std::mt19937 random(3);
        const auto bytes = encodeUnit(makeUnit(9, 8, true, false));
        for (int i = 0; i < 50000; ++i) {
            auto changed = bytes;
            for (unsigned c = 0; c <= random() % 4; ++c)
                changed[random() % changed.size()] = static_cast<std::byte>(random() & 0xFFU);
            const auto unit = decodeUnit(changed);
            if (unit)
                QVERIFY(unit->valid());
        }
    }

    void theItemHashDependsOnEveryPart()
    {
        const std::vector<std::int32_t> tokens{101, 7, 8, 102};
        const std::vector<std::uint8_t> segments{0, 0, 1, 1};
        const Hash128 hash = itemHash(ItemIndex(3), UnitKind::Qa, tokens, segments, 0);
        QCOMPARE(itemHash(ItemIndex(3), UnitKind::Qa, tokens, segments, 0), hash);
        QVERIFY(itemHash(ItemIndex(4), UnitKind::Qa, tokens, segments, 0) != hash);
        QVERIFY(itemHash(ItemIndex(3), UnitKind::Lm, tokens, segments, 0) != hash);
        QVERIFY(itemHash(ItemIndex(3), UnitKind::Qa, tokens, segments, 1) != hash);
        QVERIFY(itemHash(ItemIndex(3), UnitKind::Qa, tokens, {}, 0) != hash);
        auto others = tokens;
        std::swap(others[1], others[2]);
        QVERIFY(itemHash(ItemIndex(3), UnitKind::Qa, others, segments, 0) != hash);
    }

    void segmentsOfZerosAreTheSameAsNone()
    {
        const std::vector<std::int32_t> tokens(3000, 5);
        const std::vector<std::uint8_t> zeros(3000, 0);
        QCOMPARE(itemHash(ItemIndex(3), UnitKind::Qa, tokens, zeros, 0),
                 itemHash(ItemIndex(3), UnitKind::Qa, tokens, {}, 0));
    }

    void theHashOfAPlaceInAUnitIsThatOfItsItem()
    {
        const Unit unit = makeUnit(4, 5, true, true);
        for (std::size_t i = 0; i < unit.size(); ++i) {
            const std::size_t from = unit.offsets[i];
            const std::size_t count = unit.offsets[i + 1] - from;
            QCOMPARE(itemHash(unit, i),
                     itemHash(ItemIndex(unit.items[i]), unit.kind,
                              std::span{unit.tokens}.subspan(from, count),
                              std::span{unit.segments}.subspan(from, count), unit.scoredFrom[i]));
        }
    }
};

QTEST_GUILESS_MAIN(TestUnit)
#include "tst_unit.moc"
