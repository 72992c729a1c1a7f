// SPDX-License-Identifier: Apache-2.0
// One rank of the tests of the MPI communicator: rank_collectives CASE FAMILY, under mpirun.
#include "comm/mpi_communicator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <sys/resource.h>
#include <thread>

using namespace muster;
using namespace muster::comm;

namespace {

/// Counts what does not hold, and says it.
class Checks final {
public:
    explicit Checks(std::uint32_t rank) : m_rank(rank) {}
    bool that(bool holds, const std::string& what)
    {
        if (!holds) {
            std::fprintf(stderr, "rank %u: %s does not hold\n", m_rank, what.c_str());
            ++m_failures;
        }
        return holds;
    }
    bool ok(const Status& status, const std::string& what)
    {
        return that(status.has_value(), what + (status ? "" : ": " + status.error().text()));
    }
    [[nodiscard]] std::int64_t failures() const { return m_failures; }

private:
    std::uint32_t m_rank;
    std::int64_t m_failures = 0;
};

std::vector<std::byte> bytesOf(const std::string& text)
{
    const auto view = std::as_bytes(std::span(text));
    return {view.begin(), view.end()};
}

std::string textOf(std::uint32_t rank, std::size_t round)
{
    return std::string(rank * 1009U + round * 10U * rank, static_cast<char>('a' + rank));
}

double valueOf(std::uint32_t rank, std::size_t i)
{
    return (rank % 2 == 0 ? 1e16 : -1e16) / (static_cast<double>(i) + 1) + 0.1 * rank;
}

double cpuSeconds()
{
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void checkGather(Communicator& comm, Checks& checks)
{
    for (std::size_t round = 0; round < 5; ++round) {
        const auto all = comm.gather(bytesOf(textOf(comm.rank(), round)));
        if (!checks.that(all.has_value(), "gather"))
            return;
        checks.that(all->size() == (comm.rank() == 0 ? comm.size() : 0), "size of a gather");
        for (std::uint32_t r = 0; r < all->size(); ++r)
            checks.that((*all)[r] == bytesOf(textOf(r, round)), "text of a rank");
    }
    // T-21: minus zero, NaN payloads, subnormals.
    const std::array<std::uint64_t, 5> mine{0x8000000000000000, 0x7FF8DEADBEEF0001,
                                            0x7FF0000000000001, 1, comm.rank()};
    const auto bits = comm.gather(std::as_bytes(std::span(mine)));
    if (!checks.that(bits.has_value(), "gather of bits"))
        return;
    for (std::size_t r = 0; r < bits->size(); ++r) {
        auto expected = mine;
        expected[4] = r;
        checks.that((*bits)[r].size() == sizeof expected &&
                        std::memcmp((*bits)[r].data(), expected.data(), sizeof expected) == 0,
                    "T-21 bits of a rank");
    }
    const auto nothing = comm.gather({});
    checks.that(nothing.has_value(), "gather of nothing");
}

void checkSums(Communicator& comm, Checks& checks)
{
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}}) {
        std::vector<double> values(count);
        std::vector<std::int64_t> counts(count, comm.rank() + 1);
        for (std::size_t i = 0; i < count; ++i)
            values[i] = valueOf(comm.rank(), i);
        checks.ok(comm.allReduceSum(std::span(values)), "sum");
        checks.ok(comm.allReduceSum(std::span(counts)), "sum of integers");
        const std::int64_t expectedCount = std::int64_t{comm.size()} * (comm.size() + 1) / 2;
        for (std::size_t i = 0; i < count; ++i) {
            double expected = valueOf(0, i);
            for (std::uint32_t r = 1; r < comm.size(); ++r)
                expected += valueOf(r, i);
            if (!checks.that(std::bit_cast<std::uint64_t>(expected) ==
                                 std::bit_cast<std::uint64_t>(values[i]),
                             "sum in rank order") ||
                !checks.that(counts[i] == expectedCount, "sum of integers in rank order"))
                break;
        }
    }
    std::array<double, 1> zero{-0.0};
    checks.ok(comm.allReduceSum(std::span<double>(zero)), "sum of minus zero");
    checks.that(std::signbit(zero[0]), "T-21 minus zero in a sum");
}

void checkBroadcast(Communicator& comm, Checks& checks)
{
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{5000}}) {
        auto bytes = bytesOf(comm.rank() == 0 ? std::string(size, 'z') : std::string(17, 'q'));
        checks.ok(comm.broadcast(bytes), "broadcast");
        checks.that(bytes == bytesOf(std::string(size, 'z')), "bytes of a broadcast");
    }
}

void checkBits(Communicator& comm, Checks& checks, const std::string& family)
{
    const std::string library = comm.library();
    const bool isRightFamily =
        (family == "openmpi" && mpiFamily() == MpiFamily::OpenMpi &&
         library.starts_with("Open MPI v")) ||
        (family == "mpich" && mpiFamily() == MpiFamily::Mpich && library.starts_with("MPICH ")) ||
        family == "system";
    checks.that(isRightFamily, "the family " + family + " of " + library);
    checks.that(comm.localSize() == comm.size() && comm.localRank() == comm.rank(),
                "all ranks on this node");
    checks.ok(comm.barrier(), "barrier");
    checkGather(comm, checks);
    checkSums(comm, checks);
    checkBroadcast(comm, checks);
    checks.that(comm.times().calls == 18, "number of calls");
}

/// C-043: N = 7, W = 4 give 2, 2, 2, 1 rows of unequal length.
void checkUnequalCounts(Communicator& comm, Checks& checks)
{
    const auto row = [](std::uint32_t i) {
        return std::to_string(i) + ":" + std::string(i * 301U, static_cast<char>('a' + i)) + ";";
    };
    std::string mine;
    for (std::uint32_t i = comm.rank(); i < 7; i += comm.size())
        mine += row(i);
    const auto all = comm.gather(bytesOf(mine));
    if (!checks.that(all.has_value(), "gather") || comm.rank() != 0)
        return;
    std::size_t rows = 0;
    for (std::uint32_t r = 0; r < comm.size(); ++r) {
        std::string expected;
        for (std::uint32_t i = r; i < 7; i += comm.size(), ++rows)
            expected += row(i);
        checks.that((*all)[r] == bytesOf(expected), "rows of rank " + std::to_string(r));
    }
    checks.that(rows == 7, "seven rows");
}

/// C-050: who waits leaves its core to others.
void checkIdleWaiting(Communicator& comm, Checks& checks)
{
    constexpr double delay = 4.0;
    checks.ok(comm.barrier(), "barrier");
    if (comm.rank() == 0)
        std::this_thread::sleep_for(std::chrono::duration<double>(delay));
    const double before = cpuSeconds();
    checks.ok(comm.barrier(), "barrier");
    const double used = cpuSeconds() - before;
    std::fprintf(stderr, "rank %u used %.3f s of processor time in %.1f s of waiting\n",
                 comm.rank(), used, delay);
    checks.that(comm.rank() == 0 || used < 0.05 * delay, "C-050 under 5 % of a core");
}

/// C-067: waiting for a partner is no transfer.
void checkTimes(Communicator& comm, Checks& checks)
{
    checks.ok(comm.barrier(), "barrier");
    const CommTimes before = comm.times();
    if (comm.rank() == 1)
        std::this_thread::sleep_for(std::chrono::seconds(1));
    checks.that(comm.gather(bytesOf(std::string(1000, 'g'))).has_value(), "gather");
    const double wait = static_cast<double>(comm.times().waitNs - before.waitNs) * 1e-9;
    const double transfer = static_cast<double>(comm.times().transferNs - before.transferNs) * 1e-9;
    std::fprintf(stderr, "rank %u: wait %.4f s, transfer %.4f s\n", comm.rank(), wait, transfer);
    checks.that(comm.rank() == 0 ? wait > 0.9 : wait < 0.5, "C-067 wait");
    checks.that(transfer < 0.1, "C-067 transfer below 0.1 s");
}

void checkMismatch(Communicator& comm, Checks& checks)
{
    std::string code;
    if (comm.rank() == 0) {
        const auto status = comm.barrier();
        code = status ? "" : status.error().code;
    } else {
        const auto all = comm.gather(bytesOf("x"));
        code = all ? "" : all.error().code;
    }
    checks.that(code == "E-COMM-003", "different calls are found");
    std::vector<double> values(comm.rank() == 0 ? 3 : 4);
    const auto sum = comm.allReduceSum(std::span(values));
    checks.that(!sum && sum.error().code == "E-COMM-003", "different counts are found");
    checks.ok(comm.barrier(), "the group is of use afterwards");
}

/// Rank 1 comes too late; rank 0 says so itself, because the group is lost then.
int checkLimit(Communicator& comm, Checks& checks)
{
    comm.setTimeLimit(std::chrono::milliseconds(500));
    if (comm.rank() != 0) {
        std::this_thread::sleep_for(std::chrono::seconds(3));
        return 0;
    }
    const auto all = comm.gather(bytesOf("x"));
    checks.that(!all && all.error().code == "E-COMM-001" &&
                    all.error().kind == Error::Kind::Timeout &&
                    all.error().message.find("gather") != std::string::npos,
                "the limit ends the gather");
    const auto next = comm.barrier();
    checks.that(!next && next.error().code == "E-COMM-004", "the group is given up");
    std::printf("limit on %u ranks: %lld failures\n", comm.size(),
                static_cast<long long>(checks.failures()));
    std::fflush(stdout);
    return checks.failures() == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv)
{
    const std::string name = argc > 1 ? argv[1] : "bits";
    const std::string family = argc > 2 ? argv[2] : "system";
    if (mpiLibraryVersion().empty())
        return 2;
    CommOptions options;
    options.pieceBytes = name == "bits" ? 100 : options.pieceBytes;
    options.timeLimit = std::chrono::seconds(30);
    auto made = makeMpiCommunicator(&argc, &argv, options);
    if (!made) {
        std::fprintf(stderr, "%s\n", made.error().text().c_str());
        return 2;
    }
    Communicator& comm = **made;
    Checks checks(comm.rank());
    if (name == "bits")
        checkBits(comm, checks, family);
    else if (name == "C-043")
        checkUnequalCounts(comm, checks);
    else if (name == "C-050")
        checkIdleWaiting(comm, checks);
    else if (name == "C-067")
        checkTimes(comm, checks);
    else if (name == "mismatch")
        checkMismatch(comm, checks);
    else if (name == "limit")
        return checkLimit(comm, checks);
    else
        checks.that(false, "the name of the case " + name);
    std::array<std::int64_t, 1> failures{checks.failures()};
    checks.ok(comm.allReduceSum(std::span<std::int64_t>(failures)), "sum of failures");
    if (comm.rank() == 0) {
        std::printf("%s on %u ranks: %lld failures\n", name.c_str(), comm.size(),
                    static_cast<long long>(failures[0]));
        std::fflush(stdout);
    }
    return failures[0] == 0 && checks.failures() == 0 ? 0 : 1;
}
