// SPDX-License-Identifier: Apache-2.0
#include "align/ledger.h"

#include <QtTest>

#include <functional>
#include <random>
#include <set>

using namespace muster;
using namespace muster::align;

namespace {

/// A made-up plan with its outputs: `items` items in units of at most `perUnit`, in scattered
/// order, dealt to `ranks` ranks.
struct World {
    World(std::uint64_t items, std::uint64_t perUnit, std::uint32_t ranks, unsigned seed = 1)
        : rankCount(ranks), random(seed)
    {
        facts.samples = items;
        facts.itemUnit.resize(items);
        std::vector<std::uint64_t> order(items);
        for (std::uint64_t i = 0; i < items; ++i) {
            facts.itemSample.push_back(i);
            facts.itemHash.push_back(hash128("item " + std::to_string(i)));
            order[i] = i;
        }
        std::shuffle(order.begin(), order.end(), random);
        for (std::uint64_t at = 0; at < items; at += perUnit) {
            wire::OutputBlock block;
            block.unit = UnitId(blocks.size());
            block.rank = RankId(static_cast<std::uint32_t>(blocks.size() % ranks));
            block.sequence = blocks.size() / ranks;
            for (std::uint64_t i = at; i < std::min(items, at + perUnit); ++i)
                block.outputs.push_back(output(order[i]));
            block.realTokens = block.outputs.size() * 7;
            for (const auto& row : block.outputs)
                facts.itemUnit[row.item.value] = static_cast<std::uint32_t>(blocks.size());
            blocks.push_back(std::move(block));
        }
        facts.units = blocks.size();
    }

    wire::Output output(std::uint64_t item) const
    {
        wire::Output row;
        row.item = ItemIndex(item);
        row.hash = facts.itemHash[item];
        row.payload.assign(9, static_cast<std::byte>(item & 255U));
        return row;
    }

    Ledger ledger()
    {
        Ledger made(facts);
        for (std::uint32_t rank = 0; rank < rankCount; ++rank)
            made.hello(RankId(rank), rankCount, "model", "kernels", "1");
        for (const auto& block : blocks)
            made.assigned(block.unit, block.rank);
        return made;
    }

    /// The ranks' own totals as they would be without faults.
    void tellTotals(Ledger& into) const
    {
        std::vector<wire::Sums> own(rankCount);
        wire::Sums all;
        for (const auto& block : blocks) {
            for (auto* sums : {&own[block.rank.value], &all}) {
                ++sums->units;
                sums->items += static_cast<std::int64_t>(block.outputs.size());
                sums->realTokens += static_cast<std::int64_t>(block.realTokens);
            }
        }
        for (std::uint32_t rank = 0; rank < rankCount; ++rank)
            into.totals(RankId(rank), own[rank]);
        into.groupTotals(all);
    }

    PlanFacts facts;
    std::uint32_t rankCount;
    std::mt19937 random;
    std::vector<wire::OutputBlock> blocks;
};

const Finding& findingOf(const Proof& proof, Invariant invariant)
{
    return proof.findings[static_cast<std::size_t>(invariant)];
}

} // namespace

class LedgerTest final : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void provesCleanRuns_data();
    void provesCleanRuns();
    void givesEachFaultItsVerdict_data();
    void givesEachFaultItsVerdict();
    void digestDoesNotDependOnOrderOrRanks();
    void countsWhatIsLegal();
    void keepsTheFirstOfTwoResults();
    void remembersAFaultThatWasComputedAgain();
    void namesWhatIsMissing();
    void comparesTotalsAcrossReconnects();
    void refusesAMixedWorld();
    void checksExportedOrder();
    void saysUnverifiedWithoutHashes();
    void flagsRowsThatCouldNotBeComputed();
    void findsRandomFaultsInRandomPlans();
    void writesTheSameProofForEverySchedule();
};

void LedgerTest::provesCleanRuns_data()
{
    QTest::addColumn<int>("items");
    QTest::addColumn<int>("perUnit");
    QTest::addColumn<int>("ranks");
    for (const int items : {0, 1, 2, 7, 10, 21, 25}) {
        for (const int perUnit : {1, 2, 4, 100}) {
            for (const int ranks : {1, 2, 3, 8, 30})
                QTest::addRow("C-002 C-005 N=%d B=%d W=%d", items, perUnit, ranks)
                    << items << perUnit << ranks;
        }
    }
}

void LedgerTest::provesCleanRuns()
{
    QFETCH(int, items);
    QFETCH(int, perUnit);
    QFETCH(int, ranks);
    World world(static_cast<std::uint64_t>(items), static_cast<std::uint64_t>(perUnit),
                static_cast<std::uint32_t>(ranks));
    auto ledger = world.ledger();
    std::shuffle(world.blocks.begin(), world.blocks.end(), world.random);
    for (const auto& block : world.blocks) {
        QCOMPARE(ledger.proof(Ledger::Stage::Running).verdict, Verdict::Running);
        const auto result = ledger.block(block, block.rank);
        QVERIFY2(result.isUsable, result.sentence.c_str());
        QVERIFY(result.sentence.empty() && !result.isDuplicate);
    }
    world.tellTotals(ledger);
    std::vector<std::uint64_t> order;
    for (int i = 0; i < items; ++i)
        order.push_back(static_cast<std::uint64_t>(i));
    ledger.exported("samples.jsonl", order);
    const auto proof = ledger.proof();
    QVERIFY2(proof.verdict == Verdict::Aligned, proof.sentence.c_str());
    QCOMPARE(exitCode(proof.verdict), 0);
    QCOMPARE(proof.itemsCovered, static_cast<std::uint64_t>(items));
    QCOMPARE(proof.samplesCovered, static_cast<std::uint64_t>(items));
    for (const auto& finding : proof.findings)
        QVERIFY(finding.state == Finding::State::Ok);
}

using Fault = std::function<void(World&, Ledger&)>;
Q_DECLARE_METATYPE(Fault)
Q_DECLARE_METATYPE(muster::align::Verdict)
Q_DECLARE_METATYPE(muster::align::Invariant)

void LedgerTest::givesEachFaultItsVerdict_data()
{
    QTest::addColumn<Fault>("fault");
    QTest::addColumn<Verdict>("verdict");
    QTest::addColumn<Invariant>("invariant");
    QTest::addColumn<QString>("words");
    const auto send = [](Ledger& ledger, const wire::OutputBlock& block) {
        static_cast<void>(ledger.block(block, block.rank));
    };
    const auto row = [](const char* name, Fault fault, Verdict verdict, Invariant invariant,
                        const char* words) {
        QTest::newRow(name) << fault << verdict << invariant << QString(words);
    };
    row(
        "C-006 lost unit", [](World& w, Ledger&) { w.blocks.pop_back(); }, Verdict::Incomplete,
        Invariant::Coverage, "indices are missing");
    row(
        "drop", [](World& w, Ledger&) { w.blocks[1].outputs.pop_back(); }, Verdict::Misaligned,
        Invariant::Coverage, "as finished without 1 of its 10 rows");
    row(
        "duplicate",
        [](World& w, Ledger&) {
            auto& outputs = w.blocks[1].outputs;
            outputs.push_back(wire::Output(outputs[0]));
        },
        Verdict::Misaligned, Invariant::Coverage, "twice in unit 1");
    row(
        "swap",
        [](World& w, Ledger&) {
            auto& outputs = w.blocks[1].outputs;
            std::swap(outputs.front().item, outputs.back().item);
        },
        Verdict::Misaligned, Invariant::Identity, "are exchanged");
    row(
        "shift by one",
        [](World& w, Ledger&) {
            for (auto& block : w.blocks) {
                for (auto& output : block.outputs)
                    ++output.item;
            }
        },
        Verdict::Misaligned, Invariant::Identity, "from index 1 on everything is one place late");
    row(
        "shift by one from 40 on",
        [](World& w, Ledger&) {
            for (auto& block : w.blocks) {
                for (auto& output : block.outputs) {
                    const auto item = output.item.value;
                    if (item >= 40)
                        output = w.output(item - 1), output.item = ItemIndex(item);
                }
            }
        },
        Verdict::Misaligned, Invariant::Identity, "from index 40 on everything is one place late");
    row(
        "foreign index",
        [](World& w, Ledger&) { w.blocks[1].outputs.back().item.value += 1ULL << 40U; },
        Verdict::Misaligned, Invariant::Range, "and the plan ends at 99; its content belongs to");
    row(
        "wrong hash", [](World& w, Ledger&) { w.blocks[1].outputs.front().hash.low ^= 1U; },
        Verdict::Misaligned, Invariant::Identity, "was computed on other content");
    row(
        "wrong owner in the block",
        [](World& w, Ledger& ledger) {
            auto block = w.blocks[1];
            block.rank = RankId(2);
            static_cast<void>(ledger.block(block, RankId(1)));
            w.blocks.erase(w.blocks.begin() + 1);
        },
        Verdict::Misaligned, Invariant::Ownership, "in the name of rank 2");
    row(
        "wrong owner", [](World& w, Ledger&) { w.blocks[1].rank = RankId(2); }, Verdict::Misaligned,
        Invariant::Ownership, "never given; it belongs to rank 1");
    row(
        "F-07 conflicting duplicate",
        [send](World& w, Ledger& ledger) {
            auto block = w.blocks[1];
            send(ledger, block);
            block.outputs.front().payload[0] ^= std::byte{1};
            send(ledger, block);
        },
        Verdict::Misaligned, Invariant::Coverage, "not reproducible: unit 1");
    row(
        "C-001 pad scored",
        [](World& w, Ledger&) {
            auto& outputs = w.blocks[1].outputs;
            outputs.push_back(wire::Output(w.blocks[0].outputs[0]));
        },
        Verdict::Misaligned, Invariant::Padding, "without marking it as padding");
    row(
        "row of another unit",
        [](World& w, Ledger&) {
            auto& outputs = w.blocks[0].outputs;
            outputs.push_back(wire::Output(w.blocks[1].outputs[0]));
        },
        Verdict::Misaligned, Invariant::Ownership, "to which it does not belong");
    row(
        "truncated frame",
        [](World& w, Ledger& ledger) {
            ledger.damagedFrame(RankId(1), "E-WIRE-002");
            ledger.setAside(UnitId(1), RankId(1));
            w.blocks.erase(w.blocks.begin() + 1);
        },
        Verdict::Incomplete, Invariant::Coverage, "E-WIRE-002");
    row(
        "flipped bit",
        [](World& w, Ledger& ledger) {
            ledger.damagedFrame(RankId(1), "E-WIRE-003");
            ledger.setAside(UnitId(1), RankId(1));
            w.blocks.erase(w.blocks.begin() + 1);
        },
        Verdict::Incomplete, Invariant::Coverage, "set aside");
    row(
        "unknown unit",
        [](World& w, Ledger& ledger) { ledger.foreignUnit(UnitId(w.blocks.size()), RankId(1)); },
        Verdict::Misaligned, Invariant::Range, "the plan has 10 units");
}

void LedgerTest::givesEachFaultItsVerdict()
{
    QFETCH(Fault, fault);
    QFETCH(Verdict, verdict);
    QFETCH(Invariant, invariant);
    QFETCH(QString, words);
    World world(100, 10, 3);
    auto ledger = world.ledger();
    fault(world, ledger);
    for (const auto& block : world.blocks)
        static_cast<void>(ledger.block(block, block.rank));
    const auto proof = ledger.proof();
    QVERIFY2(proof.verdict == verdict, proof.sentence.c_str());
    QVERIFY(exitCode(proof.verdict) == (verdict == Verdict::Incomplete ? 5 : 6));
    QVERIFY(findingOf(proof, invariant).state == Finding::State::Violated);
    QVERIFY(!findingOf(proof, invariant).first.empty());
    QVERIFY2(QString::fromStdString(proof.sentence).contains(words), proof.sentence.c_str());
}

void LedgerTest::digestDoesNotDependOnOrderOrRanks()
{
    std::set<std::string> digests;
    for (const std::uint32_t ranks : {1U, 2U, 3U, 7U}) {
        World world(53, ranks + 2, ranks, ranks);
        auto ledger = world.ledger();
        std::shuffle(world.blocks.begin(), world.blocks.end(), world.random);
        for (const auto& block : world.blocks)
            QVERIFY(ledger.block(block, block.rank).isUsable);
        digests.insert(ledger.proof().outputDigest.hex());
    }
    QCOMPARE(digests.size(), std::size_t{1});
    World world(53, 4, 1);
    auto ledger = world.ledger();
    world.blocks[3].outputs[0].payload[0] ^= std::byte{1};
    for (const auto& block : world.blocks)
        QVERIFY(ledger.block(block, block.rank).isUsable);
    QVERIFY(!digests.contains(ledger.proof().outputDigest.hex()));
}

void LedgerTest::countsWhatIsLegal()
{
    World world(20, 5, 2);
    auto ledger = world.ledger();
    for (const auto& block : world.blocks)
        QVERIFY(ledger.block(block, block.rank).isUsable);
    const auto again = ledger.block(world.blocks[1], world.blocks[1].rank);
    QVERIFY(again.isDuplicate && again.isEqual && again.sentence.empty() && !again.isUsable);
    auto speculative = world.blocks[1];
    speculative.rank = RankId(0);
    speculative.attempt = 1;
    ledger.assigned(UnitId(1), RankId(0));
    QVERIFY(ledger.block(speculative, RankId(0)).isEqual);
    auto padded = world.blocks[2];
    padded.outputs.push_back(wire::Output(padded.outputs[0]));
    padded.outputs.back().flags = wire::padFlag;
    QVERIFY(ledger.block(padded, padded.rank).isEqual);
    ledger.damagedFrame(RankId(1), "E-WIRE-003");
    const auto proof = ledger.proof();
    QVERIFY2(proof.verdict == Verdict::Aligned, proof.sentence.c_str());
    QCOMPARE(proof.counts.resent, 10U);
    QCOMPARE(proof.counts.repeated, 5U);
    QCOMPARE(proof.counts.pads, 1U);
    QCOMPARE(proof.counts.damagedFrames, 1U);
}

void LedgerTest::keepsTheFirstOfTwoResults()
{
    World world(20, 5, 2);
    auto ledger = world.ledger();
    for (const auto& block : world.blocks)
        QVERIFY(ledger.block(block, block.rank).isUsable);
    const auto digest = ledger.proof().outputDigest;
    auto other = world.blocks[2];
    const std::uint64_t item = other.outputs[3].item.value;
    other.outputs[3].payload.push_back(std::byte{9});
    const auto result = ledger.block(other, other.rank);
    QVERIFY(result.isDuplicate && !result.isEqual && !result.isUsable);
    QCOMPARE(result.firstDifferingItem.value(), item);
    QCOMPARE(result.code, std::string("E-ALIGN-003"));
    QVERIFY(ledger.lastRows()[3] == Row::Conflict && ledger.lastRows()[2] == Row::AlreadyHave);
    QVERIFY(ledger.proof().outputDigest == digest);
}

void LedgerTest::remembersAFaultThatWasComputedAgain()
{
    World world(20, 5, 2);
    auto ledger = world.ledger();
    auto bad = world.blocks[0];
    bad.outputs[0].hash.high ^= 4U;
    QVERIFY(!ledger.block(bad, bad.rank).isUsable);
    QVERIFY(!ledger.hasItem(bad.outputs[1].item));
    world.blocks[0].attempt = 1;
    for (const auto& block : world.blocks)
        QVERIFY(ledger.block(block, block.rank).isUsable);
    QCOMPARE(ledger.itemsCovered(), 20U);
    QVERIFY(ledger.proof().verdict == Verdict::Misaligned);
}

void LedgerTest::namesWhatIsMissing()
{
    // C-006: 25 samples, two of them never arrive.
    World world(25, 1, 2);
    auto ledger = world.ledger();
    for (const auto& block : world.blocks) {
        const auto item = block.outputs[0].item.value;
        if (item != 7 && item != 19)
            QVERIFY(ledger.block(block, block.rank).isUsable);
    }
    const auto proof = ledger.proof();
    QVERIFY(proof.verdict == Verdict::Incomplete);
    QVERIFY((proof.missingItems == std::vector<std::uint64_t>{7, 19}));
    QCOMPARE(proof.samplesCovered, 23U);
    QVERIFY2(proof.sentence.starts_with("2 of 25 indices are missing: 7, 19"),
             proof.sentence.c_str());
}

void LedgerTest::comparesTotalsAcrossReconnects()
{
    World world(40, 5, 2);
    {
        auto ledger = world.ledger();
        for (std::size_t i = 0; i < world.blocks.size(); ++i) {
            if (i == 4)
                ledger.hello(RankId(0), 2, "model", "kernels", "1");
            QVERIFY(ledger.block(world.blocks[i], world.blocks[i].rank).isUsable);
        }
        static_cast<void>(ledger.block(world.blocks[0], RankId(0)));
        world.tellTotals(ledger);
        const auto proof = ledger.proof();
        QVERIFY2(proof.verdict == Verdict::Aligned, proof.sentence.c_str());
        QCOMPARE(proof.counts.totalsCompared, 3U);
    }
    auto ledger = world.ledger();
    for (const auto& block : world.blocks)
        QVERIFY(ledger.block(block, block.rank).isUsable);
    wire::Sums own{.units = 4, .items = 21, .realTokens = 140};
    ledger.totals(RankId(1), own);
    const auto proof = ledger.proof();
    QVERIFY(proof.verdict == Verdict::Misaligned);
    QVERIFY2(proof.sentence.starts_with("rank 1 counted 21 items and 20 arrived"),
             proof.sentence.c_str());
    QVERIFY(findingOf(proof, Invariant::Sums).state == Finding::State::Violated);
}

void LedgerTest::refusesAMixedWorld()
{
    World world(10, 5, 2);
    auto ledger = world.ledger();
    for (const auto& block : world.blocks)
        QVERIFY(ledger.block(block, block.rank).isUsable);
    ledger.hello(RankId(1), 1, "model", "kernels", "1");
    const auto proof = ledger.proof();
    QVERIFY(proof.verdict == Verdict::Misaligned);
    QVERIFY2(proof.sentence.starts_with("rank 1 reports world size 1, the others 2"),
             proof.sentence.c_str());
}

void LedgerTest::checksExportedOrder()
{
    World world(10, 5, 2);
    auto ledger = world.ledger();
    for (const auto& block : world.blocks)
        QVERIFY(ledger.block(block, block.rank).isUsable);
    const std::vector<std::uint64_t> order = {0, 2, 4, 6, 8, 1, 3, 5, 7, 9};
    ledger.exported("samples.jsonl", order);
    const auto proof = ledger.proof();
    QVERIFY(proof.verdict == Verdict::Misaligned);
    QVERIFY(findingOf(proof, Invariant::Position).state == Finding::State::Violated);
    QVERIFY2(proof.sentence.starts_with("samples.jsonl: the rows are rank-major"),
             proof.sentence.c_str());
}

void LedgerTest::saysUnverifiedWithoutHashes()
{
    World world(10, 5, 2);
    world.facts.itemHash.clear();
    auto ledger = world.ledger();
    for (const auto& block : world.blocks)
        QVERIFY(ledger.block(block, block.rank).isUsable);
    QVERIFY(ledger.proof().verdict == Verdict::Unverified);
}

void LedgerTest::flagsRowsThatCouldNotBeComputed()
{
    World world(10, 5, 2);
    auto ledger = world.ledger();
    world.blocks[0].outputs[2].flags = wire::errorFlag;
    for (const auto& block : world.blocks)
        QVERIFY(ledger.block(block, block.rank).isUsable);
    const auto proof = ledger.proof();
    QVERIFY(proof.verdict == Verdict::Incomplete);
    QCOMPARE(proof.samplesCovered, 9U);
    QVERIFY(proof.sentence.starts_with("1 could not be computed"));
}

void LedgerTest::findsRandomFaultsInRandomPlans()
{
    std::mt19937 random(99);
    const auto below = [&random](std::uint64_t limit) { return random() % limit; };
    for (int round = 0; round < 600; ++round) {
        World world(1 + below(60), 1 + below(9), static_cast<std::uint32_t>(1 + below(12)),
                    static_cast<unsigned>(round));
        auto ledger = world.ledger();
        auto& blocks = world.blocks;
        std::shuffle(blocks.begin(), blocks.end(), random);
        auto& block = blocks[below(blocks.size())];
        auto& outputs = block.outputs;
        auto& output = outputs[below(outputs.size())];
        Verdict expected = Verdict::Misaligned;
        std::optional<wire::OutputBlock> extra;
        switch (below(9)) {
        case 0:
            expected = Verdict::Aligned;
            extra = block;
            break;
        case 1:
            outputs.erase(outputs.begin() + static_cast<std::ptrdiff_t>(below(outputs.size())));
            break;
        case 2:
            outputs.push_back(wire::Output(output));
            break;
        case 3:
            output.item.value += 1 + below(1000);
            break;
        case 4:
            output.hash.high ^= 1ULL << below(64);
            break;
        case 5:
            extra = block;
            extra->outputs[below(outputs.size())].payload[below(9)] ^= std::byte{16};
            break;
        case 6:
            block.rank = RankId(block.rank.value + 1 + static_cast<std::uint32_t>(below(5)));
            if (block.rank.value % world.rankCount == block.unit.value % world.rankCount &&
                block.rank.value < world.rankCount)
                expected = Verdict::Aligned;
            break;
        case 7:
            blocks.erase(blocks.begin());
            expected = Verdict::Incomplete;
            break;
        default:
            expected = Verdict::Aligned;
            break;
        }
        for (const auto& each : blocks)
            static_cast<void>(ledger.block(each, each.rank));
        if (extra)
            static_cast<void>(ledger.block(*extra, extra->rank));
        const auto proof = ledger.proof();
        QVERIFY2(proof.verdict == expected,
                 qPrintable(QString("round %1: %2").arg(round).arg(proof.sentence.c_str())));
        QVERIFY(!proof.sentence.empty());
    }
}

void LedgerTest::writesTheSameProofForEverySchedule()
{
    std::set<std::string> proofs;
    for (const unsigned seed : {1U, 2U, 3U}) {
        World world(30, 4, 3);
        std::mt19937 random(seed);
        auto ledger = world.ledger();
        std::shuffle(world.blocks.begin(), world.blocks.end(), random);
        for (auto& block : world.blocks) {
            if (seed == 2) {
                block.rank = RankId(0);
                ledger.assigned(block.unit, block.rank);
            }
            QVERIFY(ledger.block(block, block.rank).isUsable);
        }
        if (seed == 1)
            world.tellTotals(ledger);
        proofs.insert(proofJson(ledger.proof(), "0.1.0"));
        QVERIFY(!ledgerJson(ledger.proof()).empty());
    }
    QCOMPARE(proofs.size(), std::size_t{1});
    QVERIFY(proofs.begin()->find("\"verdict\": \"ALIGNED\"") != std::string::npos);
}

QTEST_GUILESS_MAIN(LedgerTest)
#include "tst_ledger.moc"
