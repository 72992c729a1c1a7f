// SPDX-License-Identifier: Apache-2.0
#include "run/dealer.h"

#include <algorithm>
#include <cassert>

namespace muster::run {

Dealer::Dealer(std::span<const double> costs, std::vector<RankId> owners, Rules rules)
    : m_costs(costs.begin(), costs.end()), m_owners(std::move(owners)), m_rules(rules),
      m_units(costs.size()), m_open(costs.size())
{
    assert(m_owners.empty() || m_owners.size() == m_units.size());
    for (std::size_t u = 0; u < m_units.size(); ++u)
        queueOf(UnitId(u)).push_back(UnitId(u));
}

std::deque<UnitId>& Dealer::queueOf(UnitId unit)
{
    return m_owners.empty() ? m_queue : m_own[m_owners[static_cast<std::size_t>(unit.value)]];
}

void Dealer::close(UnitId unit, State state)
{
    UnitState& u = at(unit);
    if (u.state == State::Done || u.state == State::SetAside)
        return;
    u.state = state;
    --m_open;
}

void Dealer::alreadyDone(UnitId unit)
{
    close(unit, State::Done);
}

void Dealer::rankJoined(RankId rank)
{
    m_ranks[rank].present = true;
}

void Dealer::setAside(UnitId unit)
{
    if (at(unit).state == State::Done || at(unit).state == State::SetAside)
        return;
    close(unit, State::SetAside);
    m_setAside.push_back(unit);
}

void Dealer::release(UnitId unit, bool isToBlame, Loss& loss)
{
    UnitState& u = at(unit);
    if (u.holders > 0)
        --u.holders;
    if (u.state != State::Out)
        return;
    if (isToBlame && ++u.kills >= m_rules.maxKills) {
        setAside(unit);
        loss.setAside.push_back(unit);
        return;
    }
    if (u.holders > 0)
        return; // a speculative copy is still with another rank
    u.state = State::Queued;
    queueOf(unit).push_front(unit);
    loss.requeued.push_back(unit);
}

Dealer::Loss Dealer::rankLost(RankId rank, Blame blame)
{
    Loss loss;
    RankState& r = m_ranks[rank];
    r.present = false;
    // Back to front, so that the queue has them in their old order.
    while (!r.inHand.empty()) {
        const UnitId unit = r.inHand.back();
        r.inHand.pop_back();
        release(unit, r.inHand.empty() && blame == Blame::UnitInWork, loss);
    }
    return loss;
}

Dealer::Loss Dealer::rankLostOver(RankId rank, UnitId culprit)
{
    Loss loss = rankLost(rank, Blame::Nobody);
    if (isSettled(culprit) || ++at(culprit).kills < m_rules.maxKills)
        return loss;
    setAside(culprit);
    std::erase(loss.requeued, culprit);
    loss.setAside.push_back(culprit);
    return loss;
}

Dealer::Loss Dealer::refused(RankId rank, UnitId unit)
{
    Loss loss;
    RankState& r = m_ranks[rank];
    const auto place = std::find(r.inHand.begin(), r.inHand.end(), unit);
    if (place != r.inHand.end())
        r.inHand.erase(place);
    if (UnitState& u = at(unit); u.state == State::Received) {
        // received() took it for a result; it is as if it had never come.
        u.state = State::Out;
        ++u.holders;
    }
    release(unit, true, loss);
    return loss;
}

void Dealer::abandon(RankId rank)
{
    const auto own = m_own.find(rank);
    if (own == m_own.end())
        return;
    for (const UnitId unit : own->second)
        m_queue.push_back(unit);
    m_own.erase(own);
    // Units that come back later must not go to a share that nobody serves.
    for (std::size_t u = 0; u < m_owners.size(); ++u)
        if (m_owners[u] == rank)
            m_owners[u] = noRank;
    m_own[noRank].clear();
}

void Dealer::reclaim(RankId rank, UnitId unit, std::int64_t nowNs)
{
    if (unit.value >= m_units.size())
        return;
    RankState& r = m_ranks[rank];
    UnitState& u = at(unit);
    if (u.state != State::Queued || !r.given.contains(unit.value))
        return;
    u.state = State::Out; // the queue skips units that are not queued any more
    u.last = rank;
    u.holders = 1;
    u.firstOutNs = nowNs;
    if (r.inHand.empty())
        r.frontSinceNs = nowNs;
    r.inHand.push_back(unit);
}

std::optional<UnitId> Dealer::nextFor(RankId rank, std::int64_t nowNs)
{
    const auto takeFrom = [&](std::deque<UnitId>& queue) -> std::optional<UnitId> {
        while (!queue.empty()) {
            const UnitId unit = queue.front();
            queue.pop_front();
            if (at(unit).state == State::Queued)
                return unit;
        }
        return std::nullopt;
    };
    if (const auto own = m_own.find(rank); own != m_own.end())
        if (auto unit = takeFrom(own->second))
            return unit;
    if (auto unit = takeFrom(m_queue))
        return unit;
    if (const auto orphans = m_own.find(noRank); orphans != m_own.end())
        if (auto unit = takeFrom(orphans->second))
            return unit;

    // Nothing is queued. An idle rank redoes the oldest unit that is out for more than twice its
    // time.
    if (!m_rules.speculate || !m_owners.empty() || m_nsPerCost <= 0.0 || inHand(rank) > 0)
        return std::nullopt;
    std::optional<UnitId> oldest;
    for (const auto& [other, state] : m_ranks) {
        if (other == rank || !state.present)
            continue;
        for (const UnitId unit : state.inHand) {
            const UnitState& u = at(unit);
            const double expected = m_nsPerCost * m_costs[static_cast<std::size_t>(unit.value)];
            if (u.state == State::Out && u.holders == 1 &&
                static_cast<double>(nowNs - u.firstOutNs) > 2.0 * expected + 2e8 &&
                (!oldest || u.firstOutNs < at(*oldest).firstOutNs))
                oldest = unit;
        }
    }
    return oldest;
}

std::vector<Dealer::Handout> Dealer::handOut(RankId rank, std::int64_t nowNs)
{
    std::vector<Handout> handouts;
    RankState& r = m_ranks[rank];
    if (m_stopped || !r.present)
        return handouts;
    while (r.inHand.size() < std::size_t{1} + m_rules.prefetch) {
        const auto unit = nextFor(rank, nowNs);
        if (!unit)
            break;
        UnitState& u = at(*unit);
        u.state = State::Out;
        u.last = rank;
        ++u.holders;
        if (u.holders == 1)
            u.firstOutNs = nowNs;
        if (r.inHand.empty())
            r.frontSinceNs = nowNs;
        r.inHand.push_back(*unit);
        r.given[unit->value] = u.attempts;
        handouts.push_back({*unit, u.attempts});
        ++u.attempts;
    }
    return handouts;
}

Dealer::Receipt Dealer::received(RankId rank, UnitId unit, std::int64_t nowNs)
{
    RankState& r = m_ranks[rank];
    if (!r.given.contains(unit.value))
        return Receipt::NeverGiven;
    const auto place = std::find(r.inHand.begin(), r.inHand.end(), unit);
    if (place != r.inHand.end()) {
        if (place == r.inHand.begin()) {
            const double cost = m_costs[static_cast<std::size_t>(unit.value)];
            if (cost > 0.0)
                m_nsPerCost =
                    std::max(m_nsPerCost, static_cast<double>(nowNs - r.frontSinceNs) / cost);
            r.frontSinceNs = nowNs;
        }
        r.inHand.erase(place);
        UnitState& u = at(unit);
        if (u.holders > 0)
            --u.holders;
    }
    UnitState& u = at(unit);
    if (u.state == State::Received || u.state == State::Done)
        return Receipt::Again;
    if (u.state == State::SetAside) {
        // It came after all: better late than never.
        m_setAside.erase(std::remove(m_setAside.begin(), m_setAside.end(), unit), m_setAside.end());
        ++m_open;
    }
    u.state = State::Received;
    return Receipt::Expected;
}

void Dealer::committed(UnitId unit)
{
    close(unit, State::Done);
}

std::vector<Dealer::Overdue> Dealer::overdue(std::int64_t nowNs) const
{
    std::vector<Overdue> late;
    for (const auto& [rank, r] : m_ranks) {
        if (!r.present || r.inHand.empty())
            continue;
        const UnitId unit = r.inHand.front();
        const double predicted = m_nsPerCost * m_costs[static_cast<std::size_t>(unit.value)];
        const auto limit = std::max(m_rules.leastDeadlineNs,
                                    static_cast<std::int64_t>(m_rules.deadlineFactor * predicted));
        if (nowNs - r.frontSinceNs > limit)
            late.push_back({rank, unit, r.frontSinceNs});
    }
    return late;
}

bool Dealer::idle() const
{
    return std::all_of(m_ranks.begin(), m_ranks.end(),
                       [](const auto& entry) { return entry.second.inHand.empty(); });
}

std::size_t Dealer::inHand(RankId rank) const
{
    const auto r = m_ranks.find(rank);
    return r == m_ranks.end() ? 0 : r->second.inHand.size();
}

bool Dealer::isDone(UnitId unit) const
{
    return at(unit).state == State::Done;
}

bool Dealer::isSetAside(UnitId unit) const
{
    return at(unit).state == State::SetAside;
}

bool Dealer::isSettled(UnitId unit) const
{
    const State state = at(unit).state;
    return state == State::Received || state == State::Done || state == State::SetAside;
}

std::optional<RankId> Dealer::holder(UnitId unit) const
{
    const UnitState& u = at(unit);
    return u.last == noRank ? std::nullopt : std::optional(u.last);
}

} // namespace muster::run
