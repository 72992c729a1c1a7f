// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/items.h"

#include <cstdint>
#include <span>
#include <vector>

namespace muster::plan {

/// Predicted work of an item of s tokens: linear · s + quadratic · s². Units are arbitrary.
struct CostModel {
    double linear = 1.0;
    double quadratic = 0.0;

    [[nodiscard]] double of(std::uint32_t tokens) const
    {
        const auto s = static_cast<double>(tokens);
        return s * (linear + quadratic * s);
    }
    /// Of a transformer with this hidden size: matrix products 12·h² and attention 2·s·h for each
    /// token and layer, divided by 2·h·layers.
    [[nodiscard]] static CostModel transformer(std::uint32_t hidden)
    {
        return {6.0 * static_cast<double>(hidden), 1.0};
    }
};

/// How items are packed. Part of what identifies a run's numbers.
struct PackRules {
    std::uint32_t unitTokens = 2048; ///< token budget; one longer item makes a unit of its own
    std::uint32_t unitItems = 256;
    CostModel cost;
};

/// Units in the order in which they are handed out, longest predicted first.
class UnitTable final {
public:
    [[nodiscard]] std::size_t size() const { return m_cost.size(); }
    [[nodiscard]] std::span<const std::uint64_t> items(UnitId unit) const;
    [[nodiscard]] double cost(UnitId unit) const { return m_cost[at(unit)]; }
    [[nodiscard]] std::uint64_t tokens(UnitId unit) const { return m_tokens[at(unit)]; }
    [[nodiscard]] UnitId unitOf(ItemIndex item) const
    {
        return UnitId(m_unitOf[static_cast<std::size_t>(item.value)]);
    }
    [[nodiscard]] std::span<const double> costs() const { return m_cost; }

    /// Packs greedily: items by falling length (equal lengths by rising index) fill a unit until
    /// the next would pass the token budget or the item limit; then units by falling cost (equal
    /// costs in the order made). A pure function of its arguments; no items give no units.
    [[nodiscard]] static UnitTable pack(const ItemTable& items, const PackRules& rules);

private:
    static std::size_t at(UnitId unit) { return static_cast<std::size_t>(unit.value); }
    std::vector<std::uint64_t> m_offset{0};
    std::vector<std::uint64_t> m_items;
    std::vector<double> m_cost;
    std::vector<std::uint64_t> m_tokens;
    std::vector<std::uint32_t> m_unitOf;
};

/// What identifies a plan: kind, every item's hash in order, and the items of every unit in order.
[[nodiscard]] Hash128 planDigest(const ItemTable& items, const UnitTable& units);

/// The unit as it goes to a rank.
[[nodiscard]] wire::Unit makeUnit(const ItemTable& items, const UnitTable& units, UnitId unit,
                                  std::uint32_t attempt);

} // namespace muster::plan
