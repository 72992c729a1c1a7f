// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace muster {

namespace {

constexpr std::array<std::uint32_t, 256> makeTable()
{
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
        std::uint32_t crc = i;
        for (int bit = 0; bit < 8; ++bit)
            crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U);
        table[i] = crc;
    }
    return table;
}

std::uint32_t byTable(std::span<const std::byte> bytes, std::uint32_t crc)
{
    static constexpr auto table = makeTable();
    for (const std::byte b : bytes)
        crc = table[(crc ^ static_cast<std::uint32_t>(b)) & 255U] ^ (crc >> 8U);
    return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t byInstruction(std::span<const std::byte> bytes,
                                                              std::uint32_t crc)
{
    const std::byte* p = bytes.data();
    std::size_t left = bytes.size();
    std::uint64_t wide = crc;
    for (; left >= 8; p += 8, left -= 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, p, 8);
        wide = _mm_crc32_u64(wide, word);
    }
    crc = static_cast<std::uint32_t>(wide);
    for (; left > 0; ++p, --left)
        crc = _mm_crc32_u8(crc, static_cast<unsigned char>(*p));
    return crc;
}
#endif

} // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t previous)
{
    const std::uint32_t start = ~previous;
#if defined(__x86_64__)
    static const bool hasInstruction = __builtin_cpu_supports("sse4.2") != 0;
    if (hasInstruction)
        return ~byInstruction(bytes, start);
#endif
    return ~byTable(bytes, start);
}

} // namespace muster
