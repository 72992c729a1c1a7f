// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace muster::comm {

/// Time and bytes of the collective calls so far, waiting for partners apart from moving bytes.
struct CommTimes {
    std::int64_t waitNs = 0;     ///< until the last partner arrived; nothing moving
    std::int64_t transferNs = 0; ///< after that
    std::uint64_t bytes = 0;     ///< payload that this rank gave to and took from others
    std::uint64_t calls = 0;
};

/// How a group moves bytes and how long it waits.
struct CommOptions {
    /// Largest message in bytes, below 2^31; tests set it small.
    std::size_t pieceBytes = std::size_t{1} << 28U;
    /// Longest time in one collective call; zero = no limit. See Communicator::setTimeLimit().
    std::chrono::milliseconds timeLimit{0};
};

/// A group of ranks that call the same collectives in the same order. One thread per rank calls it
/// (MPI_THREAD_FUNNELED). Every call may be made with empty contributions.
///
/// Each call first waits, without using the core, until all ranks have entered the same call, and
/// moves bytes after that; times() keeps the two apart (C-050, C-067).
///
/// Errors of every call: Timeout (`E-COMM-001`) when the limit ran out, naming the call; Io
/// (`E-COMM-002`) when the library fails; Protocol (`E-COMM-003`) on every rank when the ranks
/// entered different calls or gave a different number of values to a sum. After the first two the
/// group can no longer be used: each later call returns `E-COMM-004` at once, and what was passed
/// to the call should stay alive until the process ends, since the library may still read it.
class Communicator {
public:
    virtual ~Communicator() = default;
    Communicator() = default;
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;

    [[nodiscard]] virtual std::uint32_t rank() const = 0;
    [[nodiscard]] virtual std::uint32_t size() const = 0;
    /// Ranks on this node, and this rank's number among them.
    [[nodiscard]] virtual std::uint32_t localRank() const = 0;
    [[nodiscard]] virtual std::uint32_t localSize() const = 0;
    /// One line such as `Open MPI v4.1.4`, `MPICH 4.0.2`, `self`, `threads`.
    [[nodiscard]] virtual std::string library() const = 0;

    virtual Status barrier() = 0;
    /// Byte strings of unequal length to rank 0: there [size()] in rank order, elsewhere empty.
    /// Counts are exchanged first; each string is moved in pieces below 2^31 bytes.
    virtual Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> mine) = 0;
    /// Element-wise sums over the ranks, on every rank; formed in rank order, so equal everywhere.
    virtual Status allReduceSum(std::span<double> values) = 0;
    virtual Status allReduceSum(std::span<std::int64_t> values) = 0;
    /// Rank 0's bytes to all.
    virtual Status broadcast(std::vector<std::byte>& bytes) = 0;

    /// Longest time that one later call may take, waiting and moving; zero = no limit.
    virtual void setTimeLimit(std::chrono::milliseconds limit) = 0;

    [[nodiscard]] virtual const CommTimes& times() const = 0;
};

/// The one-rank group.
[[nodiscard]] std::unique_ptr<Communicator> makeSelfCommunicator();
/// `size` communicators over shared memory of this process, one for each thread of a test.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>>
makeThreadCommunicators(std::uint32_t size, const CommOptions& options = {});

} // namespace muster::comm
