// SPDX-License-Identifier: Apache-2.0
#include "eval/stream_sink.h"

#include "base/clock.h"

#include <utility>

namespace muster::eval {

namespace {

constexpr std::int64_t shareOfComputing = 100; // 1 %
constexpr std::uint64_t rowBytes = 32;

} // namespace

bool FlushPolicy::shouldFlush(std::uint64_t waiting, std::int64_t oldestNs, std::int64_t nowNs,
                              std::int64_t computedNs) const
{
    if (waiting == 0)
        return false;
    return waiting >= m_bytes || nowNs - oldestNs >= m_ageNs ||
           m_costNs * shareOfComputing <= computedNs;
}

void FlushPolicy::onFlushed(std::int64_t tookNs)
{
    m_costNs += (tookNs - m_costNs) / 8;
}

StreamSink::StreamSink(OutputSink& next, Progress& progress, FlushPolicy policy)
    : m_next(next), m_progress(progress), m_policy(policy)
{
}

Status StreamSink::deliver(wire::OutputBlock block)
{
    if (m_waiting.empty())
        m_oldestNs = monotonicNs();
    for (const wire::Output& output : block.outputs)
        m_bytes += rowBytes + output.payload.size();
    m_waiting.push_back(std::move(block));
    return {};
}

Result<bool> StreamSink::turn(Supply supply)
{
    if (m_waiting.empty())
        return m_next.turn(supply);
    const std::int64_t now = monotonicNs();
    const std::int64_t computed = m_progress.snapshot().times.computeNs;
    if (supply == Supply::Busy &&
        !m_policy.shouldFlush(m_bytes, m_oldestNs, now, computed - m_computedBefore))
        return false;

    const TimeKind before = m_progress.book(TimeKind::Transfer);
    Status given;
    for (wire::OutputBlock& block : m_waiting) {
        given = m_next.deliver(std::move(block));
        if (!given)
            break;
    }
    m_waiting.clear();
    m_bytes = 0;
    m_computedBefore = computed;
    ++m_flushes;
    Result<bool> isFinished = false;
    if (given)
        isFinished = m_next.turn(supply);
    m_progress.book(before);
    m_policy.onFlushed(monotonicNs() - now);
    if (!given)
        return fail(given.error());
    return isFinished;
}

} // namespace muster::eval
