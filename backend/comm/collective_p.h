// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace muster::comm {

/// The calls of a Communicator; every rank must enter the same one.
enum class Collective : std::int64_t { Barrier = 1, Gather, SumDouble, SumInteger, Broadcast };

[[nodiscard]] inline const char* collectiveName(Collective collective)
{
    switch (collective) {
    case Collective::Barrier:
        return "barrier";
    case Collective::Gather:
        return "gather";
    case Collective::SumDouble:
        return "sum of numbers";
    case Collective::SumInteger:
        return "sum of integers";
    case Collective::Broadcast:
        return "broadcast";
    }
    return "unknown call";
}

[[nodiscard]] inline Error timeLimitError(Collective collective, std::uint64_t call,
                                          std::string_view step, std::chrono::milliseconds limit,
                                          std::string_view who)
{
    return Error{
        Error::Kind::Timeout, "E-COMM-001",
        fmt::format("{} (call {} of this rank) was still {} after {} ms{}. The group of "
                    "ranks can no longer be used; outputs that were acknowledged are safe.",
                    collectiveName(collective), call, step, limit.count(), who)};
}

[[nodiscard]] inline Error mismatchError(Collective collective, std::uint64_t call)
{
    return Error{
        Error::Kind::Protocol, "E-COMM-003",
        fmt::format("The ranks do not agree at call {}: this rank is in {}, and others are "
                    "in another call or give another number of values.",
                    call, collectiveName(collective))};
}

[[nodiscard]] inline Error brokenError(std::string_view first)
{
    return Error{Error::Kind::Io, "E-COMM-004",
                 fmt::format("The group of ranks was given up before: {}", first)};
}

/// The sum of two values of a reduction; integers wrap as in two's complement.
[[nodiscard]] inline double added(double a, double b)
{
    return a + b;
}
[[nodiscard]] inline std::int64_t added(std::int64_t a, std::int64_t b)
{
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

} // namespace muster::comm
