// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace muster {

/// Plain running sum in the order given, as Python's sum() up to 3.11 and a `for` loop do.
/// Zero for no values.
[[nodiscard]] double plainSum(std::span<const double> values);

/// Neumaier's compensated sum in the order given, as Python's sum() does from 3.12 on
/// (semantics.md 3.4, T-40). Zero for no values.
[[nodiscard]] double compensatedSum(std::span<const double> values);

/// An exact sum of finite doubles: the result is the correctly rounded value of the true sum, so it
/// does not depend on the order of adding nor on how partial sums were merged. A fixed-point
/// number of 2,176 bits (the range of double plus 64 bits of carry); non-finite values are kept
/// apart. At most 2^63 values may be added.
class ExactSum final {
public:
    void add(double value);
    void add(const ExactSum& other);
    /// Correctly rounded (to nearest, ties to even). Infinity or NaN when such values were added.
    [[nodiscard]] double result() const;

private:
    void propagate();
    // Limb i holds bits of weight 2^(32 i - 1074) as a signed value, carries left in until they
    // grow.
    static constexpr std::size_t limbCount = 68;
    std::array<std::int64_t, limbCount> m_limbs{};
    std::uint32_t m_pending = 0;
    double m_special = 0.0;
};

} // namespace muster
