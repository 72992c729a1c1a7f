// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.h"
#include "wire/message.h"

#include <cstdint>
#include <mutex>
#include <optional>

namespace muster::eval {

/// Where time is booked (DESIGN 8).
enum class TimeKind { Compute, Wait, Transfer, Load, Other };

/// What a rank is doing and where its time went. The main thread writes, the I/O thread reads for
/// heartbeats. Every nanosecond since the constructor is booked to exactly one kind, so the kinds
/// sum to the elapsed time.
class Progress final {
public:
    /// Time runs from now on; booked to Other until enter() is called.
    Progress();

    /// What came before `Progress` was made (such as MPI's start-up), booked to Other.
    void addEarlier(std::int64_t ns);

    /// From now on the rank does this, and its time is booked to `kind`.
    void enter(wire::RankPhase phase, TimeKind kind, std::optional<UnitId> unit = std::nullopt);
    /// From now on time is booked to `kind`; the phase stays. Returns the kind before.
    TimeKind book(TimeKind kind);
    /// Books `ns` that were booked to `from` to `to` instead, at most what `from` has.
    void move(TimeKind from, TimeKind to, std::int64_t ns);

    void setDoneUnits(std::uint64_t units);

    struct Snapshot {
        wire::RankPhase phase = wire::RankPhase::Starting;
        std::optional<UnitId> unit{};
        std::uint64_t doneUnits = 0;
        wire::Times times{};
    };
    [[nodiscard]] Snapshot snapshot() const;

private:
    std::int64_t& slot(TimeKind kind);
    void close(std::int64_t now);

    mutable std::mutex m_mutex;
    Snapshot m_now;
    TimeKind m_kind = TimeKind::Other;
    std::int64_t m_since = 0;
};

} // namespace muster::eval
