// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace muster::tokenizer {

/// Bytes of a word in two machine words; the bytes behind the word are 0.
struct Packed {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
};

/// Reads `size` (1..16) bytes of which 16 may be touched.
[[nodiscard]] inline Packed packWide(const char* bytes, std::size_t size)
{
    static_assert(std::endian::native == std::endian::little);
    Packed out;
    std::memcpy(&out.low, bytes, 8);
    std::memcpy(&out.high, bytes + 8, 8);
    if (size <= 8) {
        out.low &= ~std::uint64_t{0} >> (64 - 8 * size);
        out.high = 0;
    } else {
        out.high &= ~std::uint64_t{0} >> (128 - 8 * size);
    }
    return out;
}

/// Reads `size` (1..16) bytes and touches no others.
[[nodiscard]] inline Packed packExact(const char* bytes, std::size_t size)
{
    char buffer[16] = {};
    std::memcpy(buffer, bytes, size);
    return packWide(buffer, 16);
}

/// Vocabulary pieces and their ids, in two kinds that do not mix: those that open a word and those
/// that continue one. Made for looking up short pieces without touching the heap; built once, then
/// constant.
class PieceTable final {
public:
    enum class Kind : std::uint8_t { opening, continuing };
    static constexpr std::size_t shortSize = 16;
    static constexpr std::int32_t none = -1;

    /// \param expected  pieces that will be added; more are possible
    explicit PieceTable(std::size_t expected);

    /// The last id given to a piece counts. An empty piece is left out.
    void add(Kind kind, std::string_view piece, std::int32_t id);

    /// Id of a piece of 1..16 bytes, `none` when there is none.
    [[nodiscard]] std::int32_t find(Kind kind, const Packed& piece, std::size_t size) const
    {
        const std::uint32_t tag = tagOf(kind, size);
        for (std::size_t at = slotOf(piece, tag);; at = (at + 1) & m_mask) {
            const Slot& slot = m_slots[at];
            if (slot.low == piece.low && slot.high == piece.high && slot.tag == tag)
                return slot.id;
            if (slot.tag == 0)
                return none;
        }
    }
    /// Id of a piece of any size.
    [[nodiscard]] std::int32_t find(Kind kind, std::string_view piece) const;

    /// The longest piece that `bytes` starts with; 16 bytes behind `bytes + size` may be touched.
    struct Longest {
        std::int32_t id = none;
        std::size_t size = 0;
    };
    [[nodiscard]] Longest longest(Kind kind, const char* bytes, std::size_t size) const;

private:
    struct Slot {
        std::uint64_t low = 0;
        std::uint64_t high = 0;
        std::uint32_t tag = 0; // 0: free
        std::int32_t id = none;
    };
    struct Lengths {
        std::uint16_t present = 0; // bit n − 1: a piece of n bytes may start like this
        std::uint16_t hasLong = 0;
    };
    static constexpr std::size_t startCount = 4096;

    [[nodiscard]] static std::uint32_t tagOf(Kind kind, std::size_t size)
    {
        return static_cast<std::uint32_t>(size) << 1U | static_cast<std::uint32_t>(kind);
    }
    [[nodiscard]] std::size_t slotOf(const Packed& piece, std::uint32_t tag) const
    {
        std::uint64_t h = (piece.low ^ tag) * 0x9E3779B97F4A7C15ULL;
        h ^= std::rotl(piece.high * 0xC2B2AE3D27D4EB4FULL, 29);
        h ^= h >> 32U;
        h *= 0xD6E8FEB86659FD93ULL;
        return h >> m_shift;
    }
    // Pieces of one byte have no second byte: their bit stands in every entry of their first byte,
    // through `m_single`.
    [[nodiscard]] static std::size_t startOf(Kind kind, std::uint64_t firstBytes)
    {
        const std::uint64_t two = firstBytes & 0xFFFFU;
        return static_cast<std::size_t>(kind) * startCount +
               (two * 0x9E3779B1U >> 16U) % startCount;
    }
    void grow();

    std::vector<Slot> m_slots;
    std::size_t m_used = 0;
    std::size_t m_mask = 0;
    unsigned m_shift = 0;
    std::vector<Lengths> m_lengths;
    std::int32_t m_single[2][256];
    /// Looks up views without making strings of them.
    struct BytesHash {
        using is_transparent = void;
        std::size_t operator()(std::string_view bytes) const
        {
            return std::hash<std::string_view>{}(bytes);
        }
    };
    std::unordered_map<std::string, std::int32_t, BytesHash, std::equal_to<>> m_long[2];
    std::size_t m_longestSize[2] = {0, 0};
};

} // namespace muster::tokenizer
