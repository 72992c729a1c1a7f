// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace muster::run {

/// Deals units to ranks: the whole logic of handing out, losing, redoing and setting aside, without
/// sockets, clocks or threads (times are given in). One thread.
///
/// A unit is open until committed() or set aside. Ranks pull: handOut() fills a rank up to one unit
/// to compute and `prefetch` more. With fixed shares a rank gets only its own units, and those of
/// ranks that were abandoned.
class Dealer final {
public:
    struct Rules {
        std::uint32_t prefetch = 2;
        std::uint32_t maxKills =
            2;                 ///< a unit that was in work when a rank died this often is set aside
        bool speculate = true; ///< dynamic only: idle ranks redo the oldest open units at the end
        std::int64_t leastDeadlineNs = 60'000'000'000;
        double deadlineFactor = 20.0; ///< times the predicted time of the unit
    };

    struct Handout {
        UnitId unit;
        std::uint32_t attempt = 0;
        bool operator==(const Handout&) const = default;
    };

    /// What became of the units of a lost rank.
    struct Loss {
        std::vector<UnitId> requeued;
        std::vector<UnitId> setAside;
    };

    enum class Receipt {
        Expected,   ///< first result of a unit that this rank was given
        Again,      ///< the unit is done already; compare and acknowledge
        NeverGiven, ///< this rank was never given this unit: ownership is violated
    };

    /// `costs`: predicted work of each unit, in the order of handing out. `owners`: rank of each
    /// unit for fixed shares; empty = ranks pull.
    Dealer(std::span<const double> costs, std::vector<RankId> owners, Rules rules);

    /// The unit's outputs were stored by an earlier session of the run.
    void alreadyDone(UnitId unit);

    void rankJoined(RankId rank);
    /// Whether the unit in work may have caused the loss. A rank that goes because its launcher
    /// tears down the whole group after another rank's death says nothing about its unit.
    enum class Blame { UnitInWork, Nobody };

    /// The rank is gone or silent: its units go back to the front of the queue; the one it computed
    /// counts a kill when it is to blame. A rank that joins again is ordinary.
    Loss rankLost(RankId rank, Blame blame = Blame::UnitInWork);
    /// The rank is gone because of this unit, which it may have computed long ago: a kill counts
    /// for it and for no other.
    Loss rankLostOver(RankId rank, UnitId culprit);
    /// The rank will not come back: with fixed shares its units are dealt to the others.
    void abandon(RankId rank);
    /// The unit could not be computed by anybody; nothing more is expected of it.
    void setAside(UnitId unit);

    /// A rank that connected again still holds this unit and will send its outputs: when nobody
    /// else has got it meanwhile, it is this rank's again.
    void reclaim(RankId rank, UnitId unit, std::int64_t nowNs);
    /// Units that the rank is to get now. Empty when it has enough, nothing is open, or stopped().
    std::vector<Handout> handOut(RankId rank, std::int64_t nowNs);
    /// Outputs of a unit arrived from the rank, complete.
    Receipt received(RankId rank, UnitId unit, std::int64_t nowNs);
    /// The outputs are on disk.
    void committed(UnitId unit);
    /// What came back was not usable: the unit is open again, as if its rank had been lost in it.
    Loss refused(RankId rank, UnitId unit);

    /// A rank whose unit in work is past its deadline.
    struct Overdue {
        RankId rank;
        UnitId unit;
        std::int64_t sinceNs = 0;
    };
    [[nodiscard]] std::vector<Overdue> overdue(std::int64_t nowNs) const;

    /// Hands out nothing more; units in work may still come back.
    void stop() { m_stopped = true; }
    [[nodiscard]] bool stopped() const { return m_stopped; }

    /// Every unit is committed or set aside.
    [[nodiscard]] bool finished() const { return m_open == 0; }
    /// No rank has a unit in hand.
    [[nodiscard]] bool idle() const;
    [[nodiscard]] std::size_t openUnits() const { return m_open; }
    [[nodiscard]] std::size_t inHand(RankId rank) const;
    [[nodiscard]] const std::vector<UnitId>& unitsSetAside() const { return m_setAside; }
    [[nodiscard]] bool isDone(UnitId unit) const;
    [[nodiscard]] bool isSetAside(UnitId unit) const;
    /// Nothing more is expected of the unit: it arrived, or it was set aside.
    [[nodiscard]] bool isSettled(UnitId unit) const;
    /// How often the unit was handed out: its attempts are 0 up to this, exclusive.
    [[nodiscard]] std::uint32_t attempts(UnitId unit) const { return at(unit).attempts; }
    /// The rank whose result is expected for the unit: the last one that it was handed to.
    [[nodiscard]] std::optional<RankId> holder(UnitId unit) const;

private:
    enum class State : std::uint8_t { Queued, Out, Received, Done, SetAside };
    struct UnitState {
        State state = State::Queued;
        std::uint32_t attempts = 0;
        std::uint32_t kills = 0;
        std::uint32_t holders = 0; ///< ranks that have it in hand
        RankId last = noRank;
        std::int64_t firstOutNs = 0;
    };
    struct RankState {
        bool present = false;
        std::deque<UnitId> inHand;     ///< in the order given; the first one is in work
        std::int64_t frontSinceNs = 0; ///< when the first one became first
        std::unordered_map<std::uint64_t, std::uint32_t> given; ///< unit → attempt, ever
    };

    UnitState& at(UnitId unit) { return m_units[static_cast<std::size_t>(unit.value)]; }
    [[nodiscard]] const UnitState& at(UnitId unit) const
    {
        return m_units[static_cast<std::size_t>(unit.value)];
    }
    std::deque<UnitId>& queueOf(UnitId unit);
    std::optional<UnitId> nextFor(RankId rank, std::int64_t nowNs);
    void release(UnitId unit, bool isToBlame, Loss& loss);
    void close(UnitId unit, State state);

    std::vector<double> m_costs;
    std::vector<RankId> m_owners;
    Rules m_rules;
    std::vector<UnitState> m_units;
    std::unordered_map<RankId, RankState> m_ranks;
    std::deque<UnitId> m_queue;                           ///< dynamic, and units of abandoned ranks
    std::unordered_map<RankId, std::deque<UnitId>> m_own; ///< fixed shares
    std::vector<UnitId> m_setAside;
    std::size_t m_open = 0;
    double m_nsPerCost = 0.0; ///< slowest seen
    bool m_stopped = false;
};

} // namespace muster::run
