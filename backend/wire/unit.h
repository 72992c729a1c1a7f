// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"

#include <cstdint>
#include <span>
#include <vector>

namespace muster::wire {

/// What a rank does with a unit and which form its outputs have.
enum class UnitKind : std::uint16_t {
    Qa = 1,             ///< start and end logits: QaOutput
    Lm = 2,             ///< loss sums: LmOutput (issue of the perplexity job)
    Classification = 3, ///< logits of each class
};

/// A fixed batch of items as it goes to a rank: token ids without padding, one after the other.
/// A plain value; valid() holds for everything that decodeUnit() returns.
struct Unit {
    UnitId id;
    UnitKind kind = UnitKind::Qa;
    std::uint32_t attempt = 0;          ///< 0 for the first time the unit is handed out
    std::vector<std::uint64_t> items;   ///< ItemIndex of each item [n]
    std::vector<std::uint32_t> offsets; ///< where each item starts in tokens, and the end [n + 1]
    std::vector<std::int32_t> tokens;   ///< token ids, packed [offsets.back()]
    std::vector<std::uint8_t> segments; ///< token type ids, packed; empty = all zero
    std::vector<std::uint32_t>
        scoredFrom; ///< LM: first scored position of each item [n]; else empty

    bool operator==(const Unit&) const = default;

    [[nodiscard]] std::size_t size() const { return items.size(); }
    /// Sizes agree and offsets rise.
    [[nodiscard]] bool valid() const;
};

/// Content hash of one item, formed from what is fed to the model: item index, kind, token ids,
/// segments and first scored position. The controller forms it when it plans, the rank again from
/// the tokens that it computed on; equal hashes prove invariant I2 for the item.
[[nodiscard]] Hash128 itemHash(ItemIndex item, UnitKind kind, std::span<const std::int32_t> tokens,
                               std::span<const std::uint8_t> segments, std::uint32_t scoredFrom);
/// The same for item number `place` of the unit.
[[nodiscard]] Hash128 itemHash(const Unit& unit, std::size_t place);

[[nodiscard]] std::vector<std::byte> encodeUnit(const Unit& unit);
/// Error: Protocol (`E-WIRE-010`) for anything that encodeUnit() does not make.
[[nodiscard]] Result<Unit> decodeUnit(std::span<const std::byte> payload);

} // namespace muster::wire
