// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace muster {

/// Nanoseconds of the monotonic clock of this machine (CLOCK_MONOTONIC); comparable between the
/// processes of one machine, not between machines.
[[nodiscard]] std::int64_t monotonicNs();

/// Nanoseconds since 1970-01-01 UTC.
[[nodiscard]] std::int64_t wallClockNs();

/// `2026-01-31T12:00:05Z`; with '-' in place of ':' for file names when `forFileName`.
enum class TimeStyle { Iso, FileName };
[[nodiscard]] std::string utcTime(std::int64_t wallNs, TimeStyle style = TimeStyle::Iso);

} // namespace muster
