// SPDX-License-Identifier: Apache-2.0
#include "wire/unit.h"

#include "base/bytes.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace muster::wire {

namespace {

enum UnitFlag : std::uint16_t { hasSegments = 1U << 0U, hasScoredFrom = 1U << 1U };

bool isKnown(UnitKind kind)
{
    return kind == UnitKind::Qa || kind == UnitKind::Lm || kind == UnitKind::Classification;
}

} // namespace

bool Unit::valid() const
{
    if (!isKnown(kind) || items.empty() || offsets.size() != items.size() + 1 ||
        offsets.front() != 0 || offsets.back() != tokens.size())
        return false;
    if (!segments.empty() && segments.size() != tokens.size())
        return false;
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
        if (offsets[i + 1] <= offsets[i])
            return false;
    }
    if (!scoredFrom.empty()) {
        if (scoredFrom.size() != items.size())
            return false;
        for (std::size_t i = 0; i < items.size(); ++i) {
            if (scoredFrom[i] > offsets[i + 1] - offsets[i])
                return false;
        }
    }
    return true;
}

Hash128 itemHash(ItemIndex item, UnitKind kind, std::span<const std::int32_t> tokens,
                 std::span<const std::uint8_t> segments, std::uint32_t scoredFrom)
{
    // Segments that are all zero mean the same as none.
    if (std::ranges::all_of(segments, [](std::uint8_t s) { return s == 0; }))
        segments = {};

    struct Head {
        std::uint64_t item;
        std::uint64_t tokens;
        std::uint64_t segments;
        std::uint32_t kind;
        std::uint32_t scoredFrom;
    };
    static_assert(sizeof(Head) == 32);
    const Head head{item.value, tokens.size(), segments.size(), static_cast<std::uint32_t>(kind),
                    scoredFrom};
    const std::size_t size = sizeof(Head) + tokens.size_bytes() + segments.size_bytes();

    // Most items are short: no allocation for them.
    std::array<std::byte, 4096> small;
    std::vector<std::byte> large;
    std::byte* at = small.data();
    if (size > small.size()) {
        large.resize(size);
        at = large.data();
    }
    std::memcpy(at, &head, sizeof(Head));
    if (!tokens.empty())
        std::memcpy(at + sizeof(Head), tokens.data(), tokens.size_bytes());
    if (!segments.empty())
        std::memcpy(at + sizeof(Head) + tokens.size_bytes(), segments.data(), segments.size());
    return hash128(std::span<const std::byte>{at, size});
}

Hash128 itemHash(const Unit& unit, std::size_t place)
{
    assert(place < unit.items.size());
    const std::size_t from = unit.offsets[place];
    const std::size_t count = unit.offsets[place + 1] - from;
    const std::span<const std::int32_t> tokens{unit.tokens};
    const std::span<const std::uint8_t> segments{unit.segments};
    return itemHash(ItemIndex(unit.items[place]), unit.kind, tokens.subspan(from, count),
                    segments.empty() ? segments : segments.subspan(from, count),
                    unit.scoredFrom.empty() ? 0U : unit.scoredFrom[place]);
}

// {u64 id, u16 kind, u16 flags, u32 attempt, u32 items n, u32 tokens t, u64 items[n],
//  u32 offsets[n + 1], i32 tokens[t], u8 segments[t]?, u32 scoredFrom[n]?}
std::vector<std::byte> encodeUnit(const Unit& unit)
{
    assert(unit.valid());
    ByteWriter out;
    out.reserve(32 + unit.items.size() * 16 + unit.tokens.size() * 5);
    out.put(unit.id.value);
    out.put(static_cast<std::uint16_t>(unit.kind));
    out.put(static_cast<std::uint16_t>((unit.segments.empty() ? 0U : unsigned{hasSegments}) |
                                       (unit.scoredFrom.empty() ? 0U : unsigned{hasScoredFrom})));
    out.put(unit.attempt);
    out.put(static_cast<std::uint32_t>(unit.items.size()));
    out.put(static_cast<std::uint32_t>(unit.tokens.size()));
    out.putArray(std::span<const std::uint64_t>{unit.items});
    out.putArray(std::span<const std::uint32_t>{unit.offsets});
    out.putArray(std::span<const std::int32_t>{unit.tokens});
    out.putArray(std::span<const std::uint8_t>{unit.segments});
    out.putArray(std::span<const std::uint32_t>{unit.scoredFrom});
    return out.take();
}

Result<Unit> decodeUnit(std::span<const std::byte> payload)
{
    ByteReader in(payload);
    Unit unit;
    unit.id = UnitId(in.get<std::uint64_t>());
    unit.kind = static_cast<UnitKind>(in.get<std::uint16_t>());
    const auto flags = in.get<std::uint16_t>();
    unit.attempt = in.get<std::uint32_t>();
    const std::uint64_t items = in.get<std::uint32_t>();
    const std::uint64_t tokens = in.get<std::uint32_t>();
    unit.items = in.getArray<std::uint64_t>(items);
    unit.offsets = in.getArray<std::uint32_t>(items + 1);
    unit.tokens = in.getArray<std::int32_t>(tokens);
    if ((flags & hasSegments) != 0)
        unit.segments = in.getArray<std::uint8_t>(tokens);
    if ((flags & hasScoredFrom) != 0)
        unit.scoredFrom = in.getArray<std::uint32_t>(items);
    if ((flags & ~(unsigned{hasSegments} | unsigned{hasScoredFrom})) != 0 || !in.finished() ||
        !unit.valid() || ((flags & hasSegments) != 0 && unit.segments.empty()))
        return fail(Error::Kind::Protocol, "E-WIRE-010",
                    "a unit of " + std::to_string(payload.size()) +
                        " bytes is not well formed; the connection is closed");
    return unit;
}

} // namespace muster::wire
