// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <array>
#include <ctime>

namespace muster {

namespace {

std::int64_t read(clockid_t clock)
{
    timespec now = {};
    ::clock_gettime(clock, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

} // namespace

std::int64_t monotonicNs()
{
    return read(CLOCK_MONOTONIC);
}

std::int64_t wallClockNs()
{
    return read(CLOCK_REALTIME);
}

std::string utcTime(std::int64_t wallNs, TimeStyle style)
{
    const std::time_t seconds = wallNs / 1'000'000'000;
    std::tm parts = {};
    ::gmtime_r(&seconds, &parts);
    std::array<char, 32> text{};
    const std::size_t size =
        style == TimeStyle::Iso
            ? std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts)
            : std::strftime(text.data(), text.size(), "%Y-%m-%dT%H-%M-%SZ", &parts);
    return {text.data(), size};
}

} // namespace muster
