// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "eval/flow.h"
#include "eval/progress.h"

#include <cstdint>
#include <vector>

namespace muster::eval {

/// When outputs leave a rank in stream mode: as soon as the estimated cost of sending is at most
/// 1 % of the time computed since the last time, at the latest when a size or an age is reached,
/// and at once when the rank has nothing else to do.
class FlushPolicy final {
public:
    /// \param bytes  size at which outputs leave in any case
    /// \param ageNs  age of the oldest output at which they leave in any case
    FlushPolicy(std::uint64_t bytes, std::int64_t ageNs) : m_bytes(bytes), m_ageNs(ageNs) {}

    /// \param waiting    bytes that wait
    /// \param oldestNs   when the oldest of them came
    /// \param computedNs computing time since the last flush
    [[nodiscard]] bool shouldFlush(std::uint64_t waiting, std::int64_t oldestNs, std::int64_t nowNs,
                                   std::int64_t computedNs) const;

    /// A flush took so long; the estimate is a moving average (weight 1/8).
    void onFlushed(std::int64_t tookNs);
    [[nodiscard]] std::int64_t estimatedNs() const { return m_costNs; }

private:
    std::uint64_t m_bytes;
    std::int64_t m_ageNs;
    std::int64_t m_costNs = 20'000; ///< of a flush, until one was measured
};

/// Collects finished units and passes them on to `next` as the policy says.
class StreamSink final : public OutputSink {
public:
    StreamSink(OutputSink& next, Progress& progress, FlushPolicy policy);

    [[nodiscard]] Status deliver(wire::OutputBlock block) override;
    [[nodiscard]] Result<bool> turn(Supply supply) override;

    [[nodiscard]] std::uint64_t flushes() const { return m_flushes; }

private:
    OutputSink& m_next;
    Progress& m_progress;
    FlushPolicy m_policy;
    std::vector<wire::OutputBlock> m_waiting;
    std::uint64_t m_bytes = 0;
    std::int64_t m_oldestNs = 0;
    std::int64_t m_computedBefore = 0;
    std::uint64_t m_flushes = 0;
};

} // namespace muster::eval
