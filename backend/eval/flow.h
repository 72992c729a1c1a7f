// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "wire/output.h"
#include "wire/unit.h"

#include <chrono>
#include <optional>
#include <stop_token>

namespace muster::eval {

/// What a source had to give.
struct Pulled {
    enum class State {
        Unit,    ///< `unit` is set
        Empty,   ///< nothing came within the limit
        Drained, ///< nothing will come any more
        Stopped, ///< a stop was asked for
    };
    State state = State::Empty;
    std::optional<wire::Unit> unit{};
};

/// Where the units of a rank come from. Called by the rank's main thread.
class UnitSource {
public:
    virtual ~UnitSource() = default;
    UnitSource() = default;
    UnitSource(const UnitSource&) = delete;
    UnitSource& operator=(const UnitSource&) = delete;

    /// The next unit; waits for it until `limit` has passed, the source is drained or a stop is
    /// asked for. A limit of zero only looks.
    [[nodiscard]] virtual Pulled next(const std::stop_token& stop,
                                      std::chrono::milliseconds limit) = 0;
};

/// How much work the rank has, as a sink is told it.
enum class Supply {
    Busy,    ///< a unit is at hand
    Idle,    ///< none is at hand, more may come
    Drained, ///< none will come any more
};

/// Where the outputs of a rank go. Called by the rank's main thread.
class OutputSink {
public:
    virtual ~OutputSink() = default;
    OutputSink() = default;
    OutputSink(const OutputSink&) = delete;
    OutputSink& operator=(const OutputSink&) = delete;

    /// Takes over the outputs of a finished unit.
    [[nodiscard]] virtual Status deliver(wire::OutputBlock block) = 0;

    /// Called between two units, and while there is none: the moment to send what waits. True when
    /// nothing is left to be done; asked for when the supply is Drained.
    [[nodiscard]] virtual Result<bool> turn(Supply supply) = 0;

    /// How long the rank may wait for a unit before the sink wants its next turn().
    [[nodiscard]] virtual std::chrono::milliseconds patience() const
    {
        return std::chrono::milliseconds(1000);
    }
};

} // namespace muster::eval
