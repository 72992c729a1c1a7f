// SPDX-License-Identifier: Apache-2.0
#include "eval/loop.h"

#include "base/clock.h"
#include "eval/fake_controller.h"
#include "eval/fake_model.h"
#include "eval/stream_sink.h"

#include <QTest>

#include <deque>
#include <stop_token>

using namespace muster;
using namespace muster::eval;

namespace {

class ListSource final : public UnitSource {
public:
    explicit ListSource(std::uint64_t units)
    {
        for (std::uint64_t i = 0; i < units; ++i)
            m_units.push_back(test::makeUnit(i));
    }
    Pulled next(const std::stop_token& stop, std::chrono::milliseconds limit) override
    {
        if (stop.stop_requested())
            return {Pulled::State::Stopped};
        if (emptyBefore > 0 && m_units.size() == emptyBefore) {
            if (limit.count() == 0)
                return {Pulled::State::Empty};
            emptyBefore = 0;
        }
        if (m_units.empty())
            return {Pulled::State::Drained};
        Pulled pulled{Pulled::State::Unit, m_units.front()};
        m_units.pop_front();
        return pulled;
    }
    std::size_t emptyBefore = 0; ///< says once that there is no unit when so many are left

private:
    std::deque<wire::Unit> m_units;
};

class ListSink final : public OutputSink {
public:
    Status deliver(wire::OutputBlock block) override
    {
        blocks.push_back(std::move(block));
        if (blocks.size() == failAt)
            return fail(Error::Kind::Io, "E-TEST-001", "full");
        return {};
    }
    Result<bool> turn(Supply supply) override
    {
        turns.push_back(supply);
        return true;
    }
    std::vector<wire::OutputBlock> blocks;
    std::vector<Supply> turns;
    std::size_t failAt = 0;
};

} // namespace

class TestLoop : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyUnitIsComputedOnceAndDeliveredWithItsIndices()
    {
        for (const std::uint64_t units : {0U, 1U, 2U, 17U}) {
            ListSource source(units);
            ListSink sink;
            test::FakeModel model;
            Progress progress;
            Loop loop(RankId(4), model, source, sink, progress);
            QVERIFY(loop.run({}).has_value());
            QCOMPARE(sink.blocks.size(), units);
            for (std::uint64_t i = 0; i < units; ++i) {
                const wire::Unit unit = test::makeUnit(i);
                const wire::OutputBlock& block = sink.blocks[i];
                QCOMPARE(block.unit, unit.id);
                QCOMPARE(block.rank, RankId(4));
                QCOMPARE(block.sequence, i);
                QCOMPARE(block.realTokens, unit.tokens.size());
                QVERIFY(block.startedNs <= block.finishedNs);
                for (std::size_t k = 0; k < unit.size(); ++k) {
                    QCOMPARE(block.outputs[k].item, ItemIndex(unit.items[k]));
                    QCOMPARE(block.outputs[k].hash, wire::itemHash(unit, k));
                }
            }
            QCOMPARE(loop.sums().units, static_cast<std::int64_t>(units));
            QCOMPARE(loop.sums().items, static_cast<std::int64_t>(units * 3));
            QCOMPARE(progress.snapshot().doneUnits, units);
        }
    }

    void theTimesSumToTheElapsedTime()
    {
        ListSource source(10);
        source.emptyBefore = 5;
        ListSink sink;
        test::FakeModel model(std::chrono::microseconds(2000));
        Progress progress;
        progress.addEarlier(123456);
        const std::int64_t began = monotonicNs();
        Loop loop(RankId(0), model, source, sink, progress);
        QVERIFY(loop.run({}).has_value());
        const std::int64_t passed = monotonicNs() - began;
        const wire::Times times = progress.snapshot().times;
        QCOMPARE(times.computeNs + times.waitNs + times.transferNs + times.loadNs + times.otherNs,
                 times.elapsedNs);
        QVERIFY(times.computeNs >= 20'000'000);
        QVERIFY(times.elapsedNs >= passed);
        progress.move(TimeKind::Compute, TimeKind::Transfer, 1000);
        progress.move(TimeKind::Load, TimeKind::Transfer, 1000);
        const wire::Times moved = progress.snapshot().times;
        QCOMPARE(moved.transferNs, times.transferNs + 1000);
        QCOMPARE(moved.computeNs, times.computeNs - 1000);
    }

    void aStopEndsTheLoop()
    {
        ListSource source(10);
        ListSink sink;
        test::FakeModel model;
        Progress progress;
        Loop loop(RankId(0), model, source, sink, progress);
        std::stop_source stop;
        stop.request_stop();
        const Status done = loop.run(stop.get_token());
        QVERIFY(!done);
        QVERIFY(done.error().kind == Error::Kind::Cancelled);
        QVERIFY(sink.blocks.empty());
    }

    void anErrorOfTheSinkEndsTheLoop()
    {
        ListSource source(10);
        ListSink sink;
        sink.failAt = 3;
        test::FakeModel model;
        Progress progress;
        Loop loop(RankId(0), model, source, sink, progress);
        const Status done = loop.run({});
        QVERIFY(!done);
        QVERIFY(done.error().code == "E-TEST-001");
        QCOMPARE(model.computed, 3);
    }

    void outputsLeaveAtOnceWhenThereIsNothingElseToDo()
    {
        ListSource source(6);
        source.emptyBefore = 4;
        ListSink last;
        test::FakeModel model;
        Progress progress;
        StreamSink sink(last, progress, FlushPolicy(1U << 30U, 3'600'000'000'000));
        Loop loop(RankId(0), model, source, sink, progress);
        QVERIFY(loop.run({}).has_value());
        QCOMPARE(last.blocks.size(), std::size_t{6});
        // Once when the source was empty after two units, once at the end.
        QCOMPARE(sink.flushes(), std::uint64_t{2});
    }

    void theFlushThresholdFollowsTheMeasuredCost()
    {
        FlushPolicy policy(1000, 1'000'000'000);
        QVERIFY(!policy.shouldFlush(0, 0, 1, 1'000'000'000));
        QVERIFY(policy.shouldFlush(1000, 0, 1, 0));
        QVERIFY(policy.shouldFlush(1, 0, 1'000'000'000, 0));
        QVERIFY(!policy.shouldFlush(1, 0, 1, policy.estimatedNs() * 99));
        QVERIFY(policy.shouldFlush(1, 0, 1, policy.estimatedNs() * 100));
        for (int i = 0; i < 100; ++i)
            policy.onFlushed(1'000'000);
        QVERIFY(policy.estimatedNs() > 900'000);
        QVERIFY(!policy.shouldFlush(1, 0, 1, 50'000'000));
        QVERIFY(policy.shouldFlush(1, 0, 1, 100'000'000));
    }

    void eachFaultIsMadeAsItsNameSays_data()
    {
        QTest::addColumn<QString>("name");
        for (const char* name : {"drop", "duplicate", "swap", "off-by-one", "foreign", "wrong-hash",
                                 "wrong-owner", "conflict", "pad-scored"})
            QTest::newRow(name) << QString::fromLatin1(name);
    }
    void eachFaultIsMadeAsItsNameSays()
    {
        QFETCH(QString, name);
        ListSource source(3);
        ListSink sink;
        test::FakeModel model;
        Progress progress;
        const auto inject = Inject::parse(name.toStdString(), RankId(1), 2, 0);
        QVERIFY(inject.has_value());
        Loop loop(RankId(1), model, source, sink, progress, *inject);
        QVERIFY(loop.run({}).has_value());

        ListSource cleanSource(3);
        ListSink clean;
        Loop cleanLoop(RankId(1), model, cleanSource, clean, progress);
        QVERIFY(cleanLoop.run({}).has_value());
        const auto& got = sink.blocks.front();
        const auto& good = clean.blocks.front();
        QVERIFY(!(got.outputs == good.outputs) || got.rank != good.rank ||
                sink.blocks.size() != clean.blocks.size());
        if (name == QStringLiteral("drop"))
            QCOMPARE(got.outputs.size(), good.outputs.size() - 1);
        if (name == QStringLiteral("duplicate"))
            QCOMPARE(got.outputs.back(), good.outputs.front());
        if (name == QStringLiteral("swap")) {
            QCOMPARE(got.outputs.front().item, good.outputs.back().item);
            QCOMPARE(got.outputs.front().hash, good.outputs.front().hash);
        }
        if (name == QStringLiteral("off-by-one"))
            QCOMPARE(sink.blocks[2].outputs[0].item.value,
                     clean.blocks[2].outputs[0].item.value + 1);
        if (name == QStringLiteral("wrong-owner"))
            QCOMPARE(got.rank, RankId(0));
        if (name == QStringLiteral("conflict")) {
            QCOMPARE(sink.blocks.size(), std::size_t{4});
            QVERIFY(sink.blocks[0].outputs[0].payload != sink.blocks[1].outputs[0].payload);
            QCOMPARE(sink.blocks[0].outputs[0].item, sink.blocks[1].outputs[0].item);
        }
        if (name == QStringLiteral("pad-scored"))
            QCOMPARE(got.outputs.size(), good.outputs.size() + 1);
    }

    void namesOfFaultsAreChecked()
    {
        for (const char* name : {"", "rank-loss", "crash-unit:3", "hang-unit:0", "slow", "slow:5",
                                 "flipped-bit", "truncated-frame"})
            QVERIFY2(Inject::parse(name, RankId(0), 1, 0), name);
        for (const char* name : {"none", "drop:1", "crash-unit", "crash-unit:", "crash-unit:x",
                                 "hang-unit:-1", "slow:"}) {
            const auto inject = Inject::parse(name, RankId(0), 1, 0);
            QVERIFY2(!inject, name);
            QVERIFY(inject.error().code == "E-EVAL-001");
        }
    }
};

QTEST_GUILESS_MAIN(TestLoop)
#include "tst_loop.moc"
