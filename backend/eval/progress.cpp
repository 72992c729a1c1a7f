// SPDX-License-Identifier: Apache-2.0
#include "eval/progress.h"

#include "base/clock.h"

#include <algorithm>

namespace muster::eval {

namespace {

std::int64_t& slotOf(wire::Times& times, TimeKind kind)
{
    switch (kind) {
    case TimeKind::Compute:
        return times.computeNs;
    case TimeKind::Wait:
        return times.waitNs;
    case TimeKind::Transfer:
        return times.transferNs;
    case TimeKind::Load:
        return times.loadNs;
    case TimeKind::Other:
        break;
    }
    return times.otherNs;
}

} // namespace

Progress::Progress() : m_since(monotonicNs())
{
}

std::int64_t& Progress::slot(TimeKind kind)
{
    return slotOf(m_now.times, kind);
}

void Progress::close(std::int64_t now)
{
    const std::int64_t passed = now - m_since;
    slot(m_kind) += passed;
    m_now.times.elapsedNs += passed;
    m_since = now;
}

void Progress::addEarlier(std::int64_t ns)
{
    const std::scoped_lock lock(m_mutex);
    m_now.times.otherNs += ns;
    m_now.times.elapsedNs += ns;
}

void Progress::enter(wire::RankPhase phase, TimeKind kind, std::optional<UnitId> unit)
{
    const std::scoped_lock lock(m_mutex);
    close(monotonicNs());
    m_kind = kind;
    m_now.phase = phase;
    m_now.unit = unit;
}

TimeKind Progress::book(TimeKind kind)
{
    const std::scoped_lock lock(m_mutex);
    close(monotonicNs());
    return std::exchange(m_kind, kind);
}

void Progress::move(TimeKind from, TimeKind to, std::int64_t ns)
{
    const std::scoped_lock lock(m_mutex);
    close(monotonicNs());
    const std::int64_t moved = std::clamp<std::int64_t>(ns, 0, slot(from));
    slot(from) -= moved;
    slot(to) += moved;
}

void Progress::setDoneUnits(std::uint64_t units)
{
    const std::scoped_lock lock(m_mutex);
    m_now.doneUnits = units;
}

Progress::Snapshot Progress::snapshot() const
{
    const std::scoped_lock lock(m_mutex);
    Snapshot copy = m_now;
    const std::int64_t passed = monotonicNs() - m_since;
    slotOf(copy.times, m_kind) += passed;
    copy.times.elapsedNs += passed;
    return copy;
}

} // namespace muster::eval
