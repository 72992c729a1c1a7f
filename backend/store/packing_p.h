// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/bytes.h"
#include "base/crc32c.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace muster::store {

/// CRC-32C over the fields of a row, each of variable length preceded by its length.
class RowCrc final {
public:
    RowCrc& add(std::uint64_t value)
    {
        m_crc = crc32c(std::as_bytes(std::span(&value, 1)), m_crc);
        return *this;
    }
    RowCrc& add(std::int64_t value) { return add(static_cast<std::uint64_t>(value)); }
    RowCrc& add(std::uint32_t value) { return add(std::uint64_t{value}); }
    RowCrc& add(double value) { return add(std::bit_cast<std::uint64_t>(value)); }
    RowCrc& add(const std::optional<double>& value)
    {
        add(std::uint64_t{value.has_value() ? 1U : 0U});
        return value ? add(*value) : *this;
    }
    RowCrc& add(const Hash128& hash) { return add(hash.high).add(hash.low); }
    RowCrc& add(std::span<const std::byte> bytes)
    {
        add(static_cast<std::uint64_t>(bytes.size()));
        m_crc = crc32c(bytes, m_crc);
        return *this;
    }
    RowCrc& add(std::string_view text) { return add(std::as_bytes(std::span(text))); }
    [[nodiscard]] std::uint32_t value() const { return m_crc; }

private:
    std::uint32_t m_crc = 0;
};

/// Appends in 7-bit groups, lowest first.
inline void putVarint(ByteWriter& writer, std::uint64_t value)
{
    while (value >= 0x80U) {
        writer.put(static_cast<std::uint8_t>(value | 0x80U));
        value >>= 7U;
    }
    writer.put(static_cast<std::uint8_t>(value));
}

/// 0 after the end of the bytes, where reader.failed() tells, and for more than ten groups.
inline std::uint64_t getVarint(ByteReader& reader)
{
    std::uint64_t value = 0;
    for (std::uint32_t shift = 0; shift < 64; shift += 7) {
        const auto group = reader.get<std::uint8_t>();
        value |= std::uint64_t{group & 0x7FU} << shift;
        if ((group & 0x80U) == 0)
            return value;
    }
    return 0;
}

inline std::uint64_t zigzag(std::uint64_t from, std::uint64_t to)
{
    const std::uint64_t difference = to - from;
    return (difference << 1U) ^ (0U - (difference >> 63U));
}

inline std::uint64_t unzigzag(std::uint64_t from, std::uint64_t coded)
{
    return from + ((coded >> 1U) ^ (0U - (coded & 1U)));
}

/// Numbers as varints of the differences between neighbours; small for rising numbers.
inline std::vector<std::byte> packDeltas(std::span<const std::uint64_t> values)
{
    ByteWriter writer;
    writer.reserve(values.size() * 2);
    std::uint64_t before = 0;
    for (const std::uint64_t value : values) {
        putVarint(writer, zigzag(before, value));
        before = value;
    }
    return writer.take();
}

inline std::vector<std::uint64_t> unpackDeltas(std::span<const std::byte> bytes)
{
    ByteReader reader(bytes);
    std::vector<std::uint64_t> values;
    std::uint64_t before = 0;
    while (reader.remaining() > 0 && !reader.failed()) {
        before = unzigzag(before, getVarint(reader));
        values.push_back(before);
    }
    return values;
}

} // namespace muster::store
