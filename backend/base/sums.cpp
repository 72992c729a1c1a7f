// SPDX-License-Identifier: Apache-2.0
#include "base/sums.h"

#include <bit>
#include <cmath>

namespace muster {

double plainSum(std::span<const double> values)
{
    double sum = 0.0;
    for (const double value : values)
        sum += value;
    return sum;
}

double compensatedSum(std::span<const double> values)
{
    double sum = 0.0;
    double compensation = 0.0;
    for (const double value : values) {
        const double next = sum + value;
        if (std::fabs(sum) >= std::fabs(value))
            compensation += (sum - next) + value;
        else
            compensation += (value - next) + sum;
        sum = next;
    }
    // CPython adds the compensation only when it is finite and not zero.
    if (compensation != 0.0 && std::isfinite(compensation))
        sum += compensation;
    return sum;
}

void ExactSum::add(double value)
{
    if (!std::isfinite(value)) {
        m_special += value;
        return;
    }
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const auto biased = static_cast<std::uint32_t>((bits >> 52U) & 0x7FFU);
    std::uint64_t mantissa = bits & ((std::uint64_t{1} << 52U) - 1);
    if (biased != 0)
        mantissa |= std::uint64_t{1} << 52U;
    // value = mantissa · 2^(shift − 1074)
    const std::uint32_t shift = biased == 0 ? 0 : biased - 1;
    const std::size_t limb = shift / 32;
    const std::uint32_t within = shift % 32;
    const auto low = static_cast<std::int64_t>((mantissa << within) & 0xFFFFFFFFU);
    const auto middle = static_cast<std::int64_t>((mantissa >> (32 - within)) & 0xFFFFFFFFU);
    const auto high =
        within == 0 ? 0 : static_cast<std::int64_t>((mantissa >> (64 - within)) & 0xFFFFFFFFU);
    const std::int64_t sign = (bits >> 63U) != 0 ? -1 : 1;
    m_limbs[limb] += sign * low;
    m_limbs[limb + 1] += sign * middle;
    m_limbs[limb + 2] += sign * high;
    if (++m_pending == (1U << 30U))
        propagate();
}

void ExactSum::add(const ExactSum& other)
{
    ExactSum settled = other;
    settled.propagate();
    propagate();
    for (std::size_t i = 0; i < limbCount; ++i)
        m_limbs[i] += settled.m_limbs[i];
    m_special += other.m_special;
    propagate();
}

void ExactSum::propagate()
{
    std::int64_t carry = 0;
    for (std::size_t i = 0; i + 1 < limbCount; ++i) {
        const std::int64_t value = m_limbs[i] + carry;
        carry = value >> 32; // arithmetic shift: floor
        m_limbs[i] = value - carry * (std::int64_t{1} << 32);
    }
    m_limbs[limbCount - 1] += carry;
    m_pending = 0;
}

double ExactSum::result() const
{
    if (m_special != 0.0 || std::isnan(m_special))
        return m_special;
    ExactSum copy = *this;
    copy.propagate();
    const bool negative = copy.m_limbs[limbCount - 1] < 0;
    if (negative) {
        for (auto& limb : copy.m_limbs)
            limb = -limb;
        copy.propagate();
    }
    // Find the leading bit, then round to 53 bits (or to the subnormal grid).
    std::size_t top = limbCount;
    while (top > 0 && copy.m_limbs[top - 1] == 0)
        --top;
    if (top == 0)
        return 0.0;
    const auto bitAt = [&](std::int64_t position) -> std::uint64_t {
        if (position < 0)
            return 0;
        const auto limb = static_cast<std::size_t>(position / 32);
        return (static_cast<std::uint64_t>(copy.m_limbs[limb]) >> (position % 32)) & 1U;
    };
    const auto leading = static_cast<std::uint64_t>(copy.m_limbs[top - 1]);
    std::int64_t highest =
        static_cast<std::int64_t>(top - 1) * 32 + (63 - std::countl_zero(leading));
    const std::int64_t lowest = highest >= 53 ? highest - 52 : 0;
    std::uint64_t mantissa = 0;
    for (std::int64_t i = highest; i >= lowest; --i)
        mantissa = (mantissa << 1U) | bitAt(i);
    if (lowest > 0 && bitAt(lowest - 1) != 0) {
        bool sticky = false;
        const std::int64_t below = lowest - 1;
        for (std::int64_t i = 0; i < below / 32 && !sticky; ++i)
            sticky = copy.m_limbs[static_cast<std::size_t>(i)] != 0;
        for (std::int64_t i = below / 32 * 32; i < below && !sticky; ++i)
            sticky = bitAt(i) != 0;
        if (sticky || (mantissa & 1U) != 0)
            ++mantissa;
    }
    const double magnitude =
        std::ldexp(static_cast<double>(mantissa), static_cast<int>(lowest - 1074));
    return negative ? -magnitude : magnitude;
}

} // namespace muster
