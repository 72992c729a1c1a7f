// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.h"
#include "wire/message.h"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::run {

/// How a rank stands with the controller.
enum class RankState {
    Absent,   ///< not launched yet, or between two launches
    Joined,   ///< said hello
    Ready,    ///< model loaded, gets units
    Suspect,  ///< silent longer than the suspect limit
    Lost,     ///< connection gone, or silent longer than the dead limit
    Finished, ///< delivered everything and said goodbye
};

/// What is known of one rank at a moment.
struct RankView {
    RankId rank;
    RankState state = RankState::Absent;
    std::uint32_t generation = 0;
    std::string node;
    std::int64_t pid = 0;
    std::uint64_t startTicks = 0;
    wire::RankPhase phase = wire::RankPhase::Starting;
    std::uint64_t units = 0; ///< committed
    std::uint64_t items = 0; ///< committed
    std::uint64_t realTokens = 0;
    std::uint64_t padTokens = 0;
    std::uint64_t rssBytes = 0;
    std::uint64_t memoryLimitBytes = 0;
    wire::Times times;        ///< as the rank last reported them
    std::int64_t readyNs = 0; ///< monotonic, of the controller
    std::int64_t firstUnitNs = 0;
};

/// An immutable picture of a run in progress; made at most ten times a second.
struct Snapshot {
    std::int64_t elapsedNs = 0;        ///< since launch
    std::int64_t sinceFirstUnitNs = 0; ///< 0 before it
    std::uint64_t units = 0;
    std::uint64_t unitsDone = 0;
    std::uint64_t items = 0;
    std::uint64_t itemsDone = 0;
    std::uint64_t itemsBefore = 0; ///< done by an earlier session (resume)
    std::uint64_t realTokens = 0;  ///< of this session
    std::uint64_t padTokens = 0;
    double costDone = 0.0; ///< share of the predicted work, 0..1
    std::string paused;    ///< why nothing is acknowledged, such as a full disk; else empty
    std::vector<RankView> ranks;
};

} // namespace muster::run
