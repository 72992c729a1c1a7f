// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace muster {

/// CRC-32C (Castagnoli), as in RFC 3720 appendix B.4: 32 zero bytes give 0x8A9136AA.
/// `previous` is the result over the bytes before, for data in pieces.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous = 0);

} // namespace muster
