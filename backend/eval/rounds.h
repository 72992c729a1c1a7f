// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eval/flow.h"
#include "eval/progress.h"
#include "wire/message.h"

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::comm {
class Communicator;
}

namespace muster::eval {

struct RoundOptions {
    std::uint32_t units = 8;               ///< most units that a rank adds to one round
    std::chrono::milliseconds period{100}; ///< longest time between two rounds
};

/// What one rank adds to a round: its finished blocks, or one pad row that is flagged as such.
struct Contribution {
    std::uint64_t round = 0;
    bool isDone = false; ///< no more units will come for this rank
    std::vector<wire::OutputBlock> blocks;
};

/// {u32 magic, u32 flags, u64 round, u64 rows, u64 bytes, u32 blocks, blocks × {u32 size, u32
/// CRC-32C, u32 flags, bytes}}. Without blocks one flagged pad block with one flagged pad row is
/// added.
[[nodiscard]] std::vector<std::byte> encodeContribution(const Contribution& contribution);
/// Pads are removed by their flag; rows, bytes and checksums are compared. Errors: Integrity
/// `E-EVAL-003` (form), `E-EVAL-004` (checksum), `E-EVAL-005` (counts).
[[nodiscard]] Result<Contribution> decodeContribution(std::span<const std::byte> bytes);

/// Gathers outputs over the ranks of a group in rounds in which every rank takes part equally often
/// (gather mode `collective`). A rank enters a round when it holds `units` finished units, when it
/// has finished units and no other work, when `period` has passed, or when it is drained; the round
/// ends for all together. Rank 0 checks what came and passes the blocks on unchanged, with the rank
/// that made them. The rounds are over when every rank is drained and has nothing left.
class RoundSink final : public OutputSink {
public:
    /// \param relay  used on rank 0 only
    RoundSink(comm::Communicator& comm, OutputSink& relay, Progress& progress,
              RoundOptions options = {});

    [[nodiscard]] Status deliver(wire::OutputBlock block) override;
    /// Errors on every rank when one fails: Integrity `E-EVAL-003` to `E-EVAL-005` on rank 0,
    /// `E-EVAL-006` elsewhere.
    [[nodiscard]] Result<bool> turn(Supply supply) override;
    [[nodiscard]] std::chrono::milliseconds patience() const override;

    [[nodiscard]] std::uint64_t rounds() const { return m_round; }

private:
    [[nodiscard]] Result<bool> exchange(bool isDrained);
    [[nodiscard]] Status relay(const std::vector<std::vector<std::byte>>& all);

    comm::Communicator& m_comm;
    OutputSink& m_relay;
    Progress& m_progress;
    RoundOptions m_options;
    std::vector<wire::OutputBlock> m_waiting;
    std::uint64_t m_round = 0;
    std::int64_t m_lastNs = 0;
    bool m_isOver = false;
};

/// The sums over all ranks of the communicator, formed in rank order; collective (invariant I6).
[[nodiscard]] Result<wire::Sums> reduceSums(comm::Communicator& comm, const wire::Sums& own);

} // namespace muster::eval
