// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "foreign/number_array.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace muster::foreign {

enum class ElementKind { Bool, Signed, Unsigned, Real, Brain };

/// Number of elements of a shape; an error when they cannot lie in `available` bytes.
[[nodiscard]] Result<std::uint64_t> elementCount(const std::vector<std::uint64_t>& shape,
                                                 std::uint64_t elementSize,
                                                 std::uint64_t available);

/// Value of an IEEE half.
[[nodiscard]] double halfToDouble(std::uint16_t bits);

/// Appends one packed element of 1, 2, 4 or 8 bytes; false when it does not fit.
[[nodiscard]] bool appendElement(NumberArray& array, const char* bytes, ElementKind kind,
                                 std::size_t size, bool isSwapped);

} // namespace muster::foreign
