// SPDX-License-Identifier: Apache-2.0
#include "comm/communicator.h"

#include <QtTest>

#include <atomic>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>

using namespace muster;
using namespace muster::comm;

namespace {

std::vector<std::byte> bytesOf(const std::string& text)
{
    const auto view = std::as_bytes(std::span(text));
    return {view.begin(), view.end()};
}

/// A text whose length depends on the rank: rank 0 gives nothing.
std::string textOf(std::uint32_t rank)
{
    return std::string(rank * 37U, static_cast<char>('a' + rank));
}

/// Runs one thread for each communicator; the result is the number of failed conditions.
int onRanks(std::vector<std::unique_ptr<Communicator>>& ranks,
            const std::function<int(Communicator&)>& body)
{
    std::atomic<int> failures = 0;
    std::vector<std::thread> threads;
    for (auto& rank : ranks)
        threads.emplace_back([&] { failures += body(*rank); });
    for (auto& thread : threads)
        thread.join();
    return failures;
}

void addSizes()
{
    QTest::addColumn<unsigned>("size");
    for (const unsigned size : {1U, 2U, 3U, 8U})
        QTest::addRow("%u ranks", size) << size;
}

} // namespace

class TestCommunicator : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void oneRankIsAGroupOfItsOwn()
    {
        const auto self = makeSelfCommunicator();
        QCOMPARE(self->size(), 1U);
        QCOMPARE(self->library(), std::string("self"));
        QVERIFY(self->barrier().has_value());
        const auto all = self->gather(bytesOf("abc"));
        QVERIFY(all.has_value());
        QCOMPARE(all->size(), std::size_t{1});
        QVERIFY(all->front() == bytesOf("abc"));
        std::vector<double> values{-0.0, 3.0};
        QVERIFY(self->allReduceSum(std::span(values)).has_value());
        QVERIFY(std::signbit(values[0]));
        QCOMPARE(self->times().calls, std::uint64_t{3});
        QCOMPARE(self->times().waitNs, std::int64_t{0});
    }

    void gatherKeepsUnequalLengthsInRankOrder_data() { addSizes(); }
    void gatherKeepsUnequalLengthsInRankOrder()
    {
        QFETCH(unsigned, size);
        auto ranks = makeThreadCommunicators(size);
        const int failures = onRanks(ranks, [&](Communicator& comm) {
            int bad = 0;
            for (int round = 0; round < 50; ++round) {
                const auto all = comm.gather(bytesOf(textOf(comm.rank())));
                if (!all)
                    return 1;
                bad += all->size() != (comm.rank() == 0 ? size : 0) ? 1 : 0;
                for (std::uint32_t r = 0; r < all->size(); ++r)
                    bad += (*all)[r] == bytesOf(textOf(r)) ? 0 : 1;
            }
            return bad;
        });
        QCOMPARE(failures, 0);
    }

    void sumsAreFormedInRankOrderAndEqualEverywhere_data() { addSizes(); }
    void sumsAreFormedInRankOrderAndEqualEverywhere()
    {
        QFETCH(unsigned, size);
        const auto value = [](std::uint32_t rank, int i) {
            return (rank % 2 == 0 ? 1e16 : -1e16) / (i + 1) + 0.1 * rank;
        };
        auto ranks = makeThreadCommunicators(size);
        const int failures = onRanks(ranks, [&](Communicator& comm) {
            std::vector<double> values;
            std::vector<std::int64_t> counts{comm.rank(), std::numeric_limits<std::int64_t>::max()};
            for (int i = 0; i < 10; ++i)
                values.push_back(value(comm.rank(), i));
            if (!comm.allReduceSum(std::span(values)) || !comm.allReduceSum(std::span(counts)))
                return 1;
            int bad = 0;
            for (int i = 0; i < 10; ++i) {
                double expected = value(0, i);
                for (std::uint32_t r = 1; r < size; ++r)
                    expected += value(r, i);
                bad += std::bit_cast<std::uint64_t>(expected) ==
                               std::bit_cast<std::uint64_t>(values[static_cast<std::size_t>(i)])
                           ? 0
                           : 1;
            }
            bad += counts[0] == std::int64_t{size} * (size - 1) / 2 ? 0 : 1;
            return bad;
        });
        QCOMPARE(failures, 0);
    }

    void broadcastGivesRankZerosBytesToAll_data() { addSizes(); }
    void broadcastGivesRankZerosBytesToAll()
    {
        QFETCH(unsigned, size);
        auto ranks = makeThreadCommunicators(size);
        const int failures = onRanks(ranks, [&](Communicator& comm) {
            auto bytes = bytesOf(comm.rank() == 0 ? "from the root" : std::string(99, 'x'));
            if (!comm.broadcast(bytes) || bytes != bytesOf("from the root"))
                return 1;
            bytes = bytesOf(comm.rank() == 0 ? "" : "y");
            return comm.broadcast(bytes) && bytes.empty() ? 0 : 1;
        });
        QCOMPARE(failures, 0);
    }

    void gatherKeepsEveryBit_data()
    {
        QTest::addColumn<quint64>("bits");
        QTest::newRow("T-21 minus zero") << quint64{0x8000000000000000};
        QTest::newRow("T-21 quiet NaN with payload") << quint64{0x7FF8DEADBEEF0001};
        QTest::newRow("T-21 signalling NaN") << quint64{0x7FF0000000000001};
        QTest::newRow("T-21 smallest subnormal") << quint64{1};
    }
    void gatherKeepsEveryBit()
    {
        QFETCH(quint64, bits);
        auto ranks = makeThreadCommunicators(3);
        const int failures = onRanks(ranks, [&](Communicator& comm) {
            const std::array<quint64, 2> mine{bits, comm.rank()};
            const auto all = comm.gather(std::as_bytes(std::span(mine)));
            if (!all)
                return 1;
            int bad = 0;
            for (std::size_t r = 0; r < all->size(); ++r) {
                const std::array<quint64, 2> expected{bits, r};
                bad += (*all)[r].size() == sizeof expected &&
                               std::memcmp((*all)[r].data(), expected.data(), sizeof expected) == 0
                           ? 0
                           : 1;
            }
            return bad;
        });
        QCOMPARE(failures, 0);
    }

    void unequalShareOfRowsArrivesWhole() // C-043
    {
        auto ranks = makeThreadCommunicators(4);
        const int failures = onRanks(ranks, [](Communicator& comm) {
            std::string mine;
            for (std::uint32_t row = comm.rank(); row < 7; row += 4)
                mine += std::to_string(row) + ":" + std::string(row * 11, 'r') + ";";
            const auto all = comm.gather(bytesOf(mine));
            if (!all)
                return 1;
            std::size_t rows = 0;
            for (const auto& part : *all)
                rows += static_cast<std::size_t>(
                    std::count(part.begin(), part.end(), static_cast<std::byte>(';')));
            return rows == (comm.rank() == 0 ? 7U : 0U) ? 0 : 1;
        });
        QCOMPARE(failures, 0);
    }

    void waitingIsCountedApartFromMoving() // C-067
    {
        auto ranks = makeThreadCommunicators(2);
        const int failures = onRanks(ranks, [](Communicator& comm) {
            if (comm.rank() == 1)
                std::this_thread::sleep_for(std::chrono::milliseconds(1000));
            if (!comm.gather(bytesOf("x")))
                return 1;
            const bool isWaitRight = comm.rank() == 0 ? comm.times().waitNs > 900'000'000
                                                      : comm.times().waitNs < 500'000'000;
            return isWaitRight && comm.times().transferNs < 100'000'000 ? 0 : 1;
        });
        QCOMPARE(failures, 0);
    }

    void ranksInDifferentCallsAreToldSo()
    {
        auto ranks = makeThreadCommunicators(3);
        const int failures = onRanks(ranks, [](Communicator& comm) {
            const auto call = comm.rank() == 1 ? comm.barrier() : Status();
            std::string code;
            if (comm.rank() == 1) {
                code = call ? "" : call.error().code;
            } else {
                const auto all = comm.gather({});
                code = all ? "" : all.error().code;
            }
            std::vector<double> values(comm.rank() == 2 ? 4 : 3);
            const auto sum = comm.allReduceSum(std::span(values));
            const bool isSumRefused = !sum && sum.error().code == "E-COMM-003";
            // The group is still of use afterwards.
            return code == "E-COMM-003" && isSumRefused && comm.barrier() ? 0 : 1;
        });
        QCOMPARE(failures, 0);
    }

    void timeLimitNamesTheCallAndWhoIsAbsent()
    {
        auto ranks = makeThreadCommunicators(3);
        const int failures = onRanks(ranks, [](Communicator& comm) {
            if (comm.rank() == 2)
                return 0;
            comm.setTimeLimit(std::chrono::milliseconds(200));
            const auto all = comm.gather({});
            const auto next = comm.barrier();
            if (all || next || next.error().code != "E-COMM-004")
                return 1;
            // The first to give up names the rank; the other is told that the group is lost.
            return all.error().message.find("gather") != std::string::npos &&
                           all.error().message.find("rank 2") != std::string::npos
                       ? 0
                       : 1;
        });
        QCOMPARE(failures, 0);
    }
};

QTEST_GUILESS_MAIN(TestCommunicator)
#include "tst_communicator.moc"
