// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

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
    std::uint64_t bytes = 0;     ///< sent and received by this rank
    std::uint64_t calls = 0;
};

/// A group of ranks that call the same collectives in the same order. One thread per rank calls it
/// (MPI_THREAD_FUNNELED). Every call may be made with empty contributions.
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

    [[nodiscard]] virtual const CommTimes& times() const = 0;
};

/// The one-rank group.
[[nodiscard]] std::unique_ptr<Communicator> makeSelfCommunicator();
/// `size` communicators over shared memory of this process, one for each thread of a test.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>>
makeThreadCommunicators(std::uint32_t size);

} // namespace muster::comm
