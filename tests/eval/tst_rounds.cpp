// SPDX-License-Identifier: Apache-2.0
#include "eval/rounds.h"

#include "comm/communicator.h"
#include "eval/fake_controller.h"
#include "eval/fake_model.h"
#include "eval/loop.h"

#include <QTest>

#include <atomic>
#include <map>
#include <random>
#include <thread>

using namespace muster;
using namespace muster::eval;

namespace {

/// Gives the units of a fixed share; sometimes says that there is none yet.
class ShareSource final : public UnitSource {
public:
    ShareSource(std::vector<std::uint64_t> units, unsigned seed, bool hesitates)
        : m_units(std::move(units)), m_random(seed), m_hesitates(hesitates)
    {
    }
    Pulled next(const std::stop_token&, std::chrono::milliseconds limit) override
    {
        if (m_at == m_units.size())
            return {Pulled::State::Drained};
        if (m_hesitates && m_random() % 3 == 0) {
            std::this_thread::sleep_for(std::min(limit, std::chrono::milliseconds(m_random() % 4)));
            return {Pulled::State::Empty};
        }
        return {Pulled::State::Unit, test::makeUnit(m_units[m_at++])};
    }

private:
    std::vector<std::uint64_t> m_units;
    std::size_t m_at = 0;
    std::mt19937 m_random;
    bool m_hesitates;
};

class ListSink final : public OutputSink {
public:
    Status deliver(wire::OutputBlock block) override
    {
        blocks.push_back(std::move(block));
        return {};
    }
    Result<bool> turn(Supply) override { return true; }
    std::vector<wire::OutputBlock> blocks;
};

/// Passes calls on, and damages what rank 1 contributes.
class DamagingCommunicator final : public comm::Communicator {
public:
    explicit DamagingCommunicator(comm::Communicator& inner) : m_inner(inner) {}
    std::uint32_t rank() const override { return m_inner.rank(); }
    std::uint32_t size() const override { return m_inner.size(); }
    std::uint32_t localRank() const override { return m_inner.localRank(); }
    std::uint32_t localSize() const override { return m_inner.localSize(); }
    std::string library() const override { return m_inner.library(); }
    Status barrier() override { return m_inner.barrier(); }
    Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> mine) override
    {
        std::vector<std::byte> bytes(mine.begin(), mine.end());
        if (rank() == 1)
            bytes.back() ^= std::byte{1};
        return m_inner.gather(bytes);
    }
    Status allReduceSum(std::span<double> values) override { return m_inner.allReduceSum(values); }
    Status allReduceSum(std::span<std::int64_t> values) override
    {
        return m_inner.allReduceSum(values);
    }
    Status broadcast(std::vector<std::byte>& bytes) override { return m_inner.broadcast(bytes); }
    void setTimeLimit(std::chrono::milliseconds limit) override { m_inner.setTimeLimit(limit); }
    const comm::CommTimes& times() const override { return m_inner.times(); }

private:
    comm::Communicator& m_inner;
};

} // namespace

class TestRounds : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyRanksOutputsArriveOnceAtRankZero_data()
    {
        QTest::addColumn<int>("ranks");
        QTest::addColumn<int>("units");
        QTest::addColumn<bool>("isUnequal");
        QTest::addColumn<bool>("hesitates");
        for (const int ranks : {1, 2, 3, 8}) {
            for (const int units : {0, 1, 5, 40}) {
                for (const bool isUnequal : {false, true}) {
                    QTest::addRow("%d ranks, %d units, %s", ranks, units,
                                  isUnequal ? "unequal" : "equal")
                        << ranks << units << isUnequal << (units == 40);
                }
            }
        }
    }
    void everyRanksOutputsArriveOnceAtRankZero()
    {
        QFETCH(int, ranks);
        QFETCH(int, units);
        QFETCH(bool, isUnequal);
        QFETCH(bool, hesitates);
        const auto world = static_cast<std::uint32_t>(ranks);
        auto comms = comm::makeThreadCommunicators(world);
        std::vector<std::vector<std::uint64_t>> shares(world);
        for (std::uint64_t u = 0; u < static_cast<std::uint64_t>(units); ++u)
            shares[isUnequal ? (u % 5 == 0 ? u % world : world - 1) : u % world].push_back(u);
        ListSink gathered;
        std::vector<wire::Sums> own(world);
        std::vector<wire::Sums> reduced(world);
        std::vector<std::uint64_t> rounds(world);
        std::atomic<int> failures = 0;
        std::vector<std::thread> threads;
        for (std::uint32_t r = 0; r < world; ++r) {
            threads.emplace_back([&, r] {
                ShareSource source(shares[r], r, hesitates);
                ListSink unused;
                test::FakeModel model(std::chrono::microseconds(r * 50));
                Progress progress;
                RoundSink sink(*comms[r], r == 0 ? gathered : unused, progress,
                               {3, std::chrono::milliseconds(20)});
                Loop loop(RankId(r), model, source, sink, progress);
                if (!loop.run({}))
                    ++failures;
                rounds[r] = sink.rounds();
                own[r] = loop.sums();
                const auto sums = reduceSums(*comms[r], loop.sums());
                if (!sums)
                    ++failures;
                else
                    reduced[r] = *sums;
                if (!unused.blocks.empty())
                    ++failures;
                const wire::Times times = progress.snapshot().times;
                if (times.computeNs + times.waitNs + times.transferNs + times.loadNs +
                        times.otherNs !=
                    times.elapsedNs)
                    ++failures;
            });
        }
        for (std::thread& thread : threads)
            thread.join();
        QCOMPARE(failures.load(), 0);
        std::map<std::uint64_t, std::uint32_t> seen;
        for (const wire::OutputBlock& block : gathered.blocks) {
            QVERIFY(seen.emplace(block.unit.value, block.rank.value).second);
            const wire::Unit unit = test::makeUnit(block.unit.value);
            QCOMPARE(block.outputs.size(), unit.size());
            for (std::size_t i = 0; i < unit.size(); ++i) {
                QCOMPARE(block.outputs[i].item, ItemIndex(unit.items[i]));
                QCOMPARE(block.outputs[i].hash, wire::itemHash(unit, i));
                QCOMPARE(block.outputs[i].flags, 0U);
            }
        }
        QCOMPARE(seen.size(), static_cast<std::size_t>(units));
        for (std::uint32_t r = 0; r < world; ++r) {
            QCOMPARE(rounds[r], rounds[0]);
            for (const std::uint64_t u : shares[r])
                QCOMPARE(seen[u], r);
            QCOMPARE(own[r].units, static_cast<std::int64_t>(shares[r].size()));
            QCOMPARE(reduced[r], reduced[0]);
        }
        QCOMPARE(reduced[0].units, static_cast<std::int64_t>(units));
        QCOMPARE(reduced[0].items, static_cast<std::int64_t>(units) * 3);
    }

    void aDamagedContributionEndsTheRoundOnEveryRank()
    {
        auto comms = comm::makeThreadCommunicators(3);
        std::vector<std::string> codes(3);
        std::vector<std::thread> threads;
        for (std::uint32_t r = 0; r < 3; ++r) {
            threads.emplace_back([&, r] {
                DamagingCommunicator damaged(*comms[r]);
                ShareSource source({r}, r, false);
                ListSink gathered;
                test::FakeModel model;
                Progress progress;
                RoundSink sink(damaged, gathered, progress);
                Loop loop(RankId(r), model, source, sink, progress);
                const Status done = loop.run({});
                codes[r] = done ? "" : done.error().code;
            });
        }
        for (std::thread& thread : threads)
            thread.join();
        QVERIFY(codes[0] == "E-EVAL-004");
        QVERIFY(codes[1] == "E-EVAL-006");
        QVERIFY(codes[2] == "E-EVAL-006");
    }

    void contributionsComeBackWithoutTheirPads()
    {
        Contribution empty;
        empty.round = 7;
        empty.isDone = true;
        const auto back = decodeContribution(encodeContribution(empty));
        QVERIFY(back.has_value());
        QVERIFY(back->blocks.empty());
        QVERIFY(back->isDone);
        QCOMPARE(back->round, std::uint64_t{7});
        // A pad row travels although there is nothing to tell.
        QVERIFY(encodeContribution(empty).size() > 100);
    }

    void contributionsThatContradictThemselvesAreRefused()
    {
        Contribution contribution;
        contribution.blocks.resize(2);
        contribution.blocks[0].outputs.resize(3);
        const auto good = encodeContribution(contribution);
        QVERIFY(decodeContribution(good).has_value());
        for (std::size_t size = 0; size < good.size(); ++size)
            QVERIFY(!decodeContribution(std::span{good}.first(size)));
        auto bytes = good;
        bytes[16] ^= std::byte{1};
        QVERIFY(decodeContribution(bytes).error().code == "E-EVAL-005");
        bytes = good;
        bytes.back() ^= std::byte{1};
        QVERIFY(decodeContribution(bytes).error().code == "E-EVAL-004");
        for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
            bytes = good;
            bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
            (void)decodeContribution(bytes);
        }
    }
};

QTEST_GUILESS_MAIN(TestRounds)
#include "tst_rounds.moc"
