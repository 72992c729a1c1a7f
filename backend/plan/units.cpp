// SPDX-License-Identifier: Apache-2.0
#include "plan/units.h"

#include <algorithm>
#include <numeric>

namespace muster::plan {

std::span<const std::uint64_t> UnitTable::items(UnitId unit) const
{
    const std::size_t i = at(unit);
    return std::span(m_items).subspan(static_cast<std::size_t>(m_offset[i]),
                                      static_cast<std::size_t>(m_offset[i + 1] - m_offset[i]));
}

UnitTable UnitTable::pack(const ItemTable& items, const PackRules& rules)
{
    std::vector<std::uint64_t> order(items.size());
    std::iota(order.begin(), order.end(), std::uint64_t{0});
    const auto length = [&](std::uint64_t item) { return items.length(ItemIndex(item)); };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint64_t a, std::uint64_t b) { return length(a) > length(b); });

    struct Draft {
        std::size_t from = 0;
        std::size_t to = 0;
        double cost = 0.0;
        std::uint64_t tokens = 0;
    };
    std::vector<Draft> drafts;
    std::uint64_t remaining = items.totalTokens();
    std::uint64_t budget = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const std::uint32_t tokens = length(order[i]);
        const bool opens = drafts.empty() || drafts.back().tokens + tokens > budget ||
                           drafts.back().to - drafts.back().from >= rules.unitItems;
        if (opens) {
            // Units shrink towards the end, so that the last ones of all ranks end nearly together.
            budget =
                std::clamp<std::uint64_t>(remaining / 64, rules.unitTokens / 8, rules.unitTokens);
            drafts.push_back({i, i, 0.0, 0});
        }
        Draft& draft = drafts.back();
        draft.to = i + 1;
        draft.cost += rules.cost.of(tokens);
        draft.tokens += tokens;
        remaining -= tokens;
    }
    std::stable_sort(drafts.begin(), drafts.end(),
                     [](const Draft& a, const Draft& b) { return a.cost > b.cost; });

    UnitTable table;
    table.m_items.reserve(order.size());
    table.m_unitOf.resize(order.size());
    for (const Draft& draft : drafts) {
        for (std::size_t i = draft.from; i < draft.to; ++i) {
            table.m_unitOf[static_cast<std::size_t>(order[i])] =
                static_cast<std::uint32_t>(table.m_cost.size());
            table.m_items.push_back(order[i]);
        }
        table.m_offset.push_back(table.m_items.size());
        table.m_cost.push_back(draft.cost);
        table.m_tokens.push_back(draft.tokens);
    }
    return table;
}

Hash128 planDigest(const ItemTable& items, const UnitTable& units)
{
    Hasher hasher;
    hasher.add(static_cast<std::uint64_t>(items.kind())).add(std::uint64_t{items.size()});
    for (const Hash128& hash : items.hashes())
        hasher.add(hash);
    hasher.add(std::uint64_t{units.size()});
    for (std::uint64_t u = 0; u < units.size(); ++u) {
        const auto members = units.items(UnitId(u));
        hasher.add(std::uint64_t{members.size()});
        for (const std::uint64_t item : members)
            hasher.add(item);
    }
    return hasher.result();
}

wire::Unit makeUnit(const ItemTable& items, const UnitTable& units, UnitId unit,
                    std::uint32_t attempt)
{
    wire::Unit made;
    made.id = unit;
    made.kind = items.kind();
    made.attempt = attempt;
    const auto members = units.items(unit);
    made.items.assign(members.begin(), members.end());
    made.offsets.reserve(members.size() + 1);
    made.offsets.push_back(0);
    made.tokens.reserve(static_cast<std::size_t>(units.tokens(unit)));
    for (const std::uint64_t member : members) {
        const ItemIndex item(member);
        const auto tokens = items.tokens(item);
        const auto segments = items.segments(item);
        made.tokens.insert(made.tokens.end(), tokens.begin(), tokens.end());
        made.segments.insert(made.segments.end(), segments.begin(), segments.end());
        made.offsets.push_back(static_cast<std::uint32_t>(made.tokens.size()));
        if (items.kind() == wire::UnitKind::Lm)
            made.scoredFrom.push_back(items.scoredFrom(item));
    }
    return made;
}

} // namespace muster::plan
