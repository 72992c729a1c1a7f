// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/merging_p.h"

#include <algorithm>
#include <bit>

namespace muster::tokenizer {

MergeTable::MergeTable(std::size_t expected)
    : m_slots(std::bit_ceil(2 * expected + 16)), m_mask(m_slots.size() - 1),
      m_shift(64U - static_cast<unsigned>(std::countr_zero(m_slots.size())))
{
}

void MergeTable::grow()
{
    std::vector<Merge> old(m_slots.size() * 2);
    old.swap(m_slots);
    m_mask = m_slots.size() - 1;
    --m_shift;
    for (const Merge& merge : old) {
        if (merge.pair == free)
            continue;
        std::size_t at = mix(merge.pair);
        while (m_slots[at].pair != free)
            at = (at + 1) & m_mask;
        m_slots[at] = merge;
    }
}

void MergeTable::set(std::int32_t left, std::int32_t right, std::uint32_t rank, std::int32_t merged)
{
    if (2 * (m_used + 1) > m_slots.size())
        grow();
    const std::uint64_t pair = pairOf(left, right);
    std::size_t at = mix(pair);
    while (m_slots[at].pair != free && m_slots[at].pair != pair)
        at = (at + 1) & m_mask;
    m_used += m_slots[at].pair == free ? 1U : 0U;
    m_slots[at] = {pair, rank, merged};
}

std::size_t MergeTable::mergeAll(std::span<MergeSymbol> symbols, MergeSpace& space) const
{
    if (symbols.size() < 2)
        return symbols.size();
    return symbols.size() <= smallWord ? mergeSmall(symbols) : mergeLarge(symbols, space);
}

std::size_t MergeTable::mergeSmall(std::span<MergeSymbol> symbols) const
{
    std::size_t count = symbols.size();
    std::uint32_t ranks[smallWord]; // of the merge of a symbol with the next
    std::int32_t merged[smallWord];
    const auto rate = [&](std::size_t i) {
        const Merge& merge = find(symbols[i].id, symbols[i + 1].id);
        ranks[i] = merge.rank;
        merged[i] = merge.id;
    };
    for (std::size_t i = 0; i + 1 < count; ++i)
        rate(i);
    for (;;) {
        std::uint32_t best = noRank;
        std::size_t place = 0;
        for (std::size_t i = 0; i + 1 < count; ++i) {
            const bool isBetter = ranks[i] < best;
            best = isBetter ? ranks[i] : best;
            place = isBetter ? i : place;
        }
        if (best == noRank)
            return count;
        symbols[place].id = merged[place];
        symbols[place].size += symbols[place + 1].size;
        --count;
        for (std::size_t i = place + 1; i < count; ++i)
            symbols[i] = symbols[i + 1];
        for (std::size_t i = place; i + 1 < count; ++i) {
            ranks[i] = ranks[i + 1];
            merged[i] = merged[i + 1];
        }
        if (place + 1 < count)
            rate(place);
        if (place > 0)
            rate(place - 1);
    }
}

std::size_t MergeTable::mergeLarge(std::span<MergeSymbol> symbols, MergeSpace& space) const
{
    const auto count = static_cast<std::int32_t>(symbols.size());
    space.links.assign(symbols.size(), MergeSpace::Link{});
    space.heap.clear();
    const auto at = [](std::int32_t place) { return static_cast<std::size_t>(place); };
    const auto rate = [&](std::int32_t place) {
        MergeSpace::Link& link = space.links[at(place)];
        link.rank = noRank;
        if (link.next >= 0) {
            const Merge& merge = find(symbols[at(place)].id, symbols[at(link.next)].id);
            link.rank = merge.rank;
            link.merged = merge.id;
        }
        if (link.rank != noRank)
            space.heap.push_back({link.rank, static_cast<std::uint32_t>(place)});
        return link.rank != noRank;
    };
    for (std::int32_t i = 0; i < count; ++i) {
        space.links[at(i)].previous = i - 1;
        space.links[at(i)].next = i + 1 < count ? i + 1 : -1;
        rate(i);
    }
    std::ranges::make_heap(space.heap, std::less<>{});
    while (!space.heap.empty()) {
        std::ranges::pop_heap(space.heap, std::less<>{});
        const MergeSpace::Waiting top = space.heap.back();
        space.heap.pop_back();
        MergeSpace::Link& link = space.links[top.place];
        if (link.rank != top.rank)
            continue; // merged away or changed since
        const std::int32_t gone = link.next;
        symbols[top.place].id = link.merged;
        symbols[top.place].size += symbols[at(gone)].size;
        space.links[at(gone)].rank = noRank;
        link.next = space.links[at(gone)].next;
        if (link.next >= 0)
            space.links[at(link.next)].previous = static_cast<std::int32_t>(top.place);
        if (rate(static_cast<std::int32_t>(top.place)))
            std::ranges::push_heap(space.heap, std::less<>{});
        if (link.previous >= 0 && rate(link.previous))
            std::ranges::push_heap(space.heap, std::less<>{});
    }
    std::size_t left = 0;
    for (std::int32_t i = 0; i >= 0; i = space.links[at(i)].next)
        symbols[left++] = symbols[at(i)];
    return left;
}

std::unique_ptr<EncodeSpace> SpacePool::take()
{
    {
        const std::scoped_lock lock(m_mutex);
        if (!m_free.empty()) {
            std::unique_ptr<EncodeSpace> space = std::move(m_free.back());
            m_free.pop_back();
            return space;
        }
    }
    return std::make_unique<EncodeSpace>();
}

void SpacePool::give(std::unique_ptr<EncodeSpace> space)
{
    // A word of many megabytes leaves large buffers behind; they are not kept.
    constexpr std::size_t keptSymbols = std::size_t{1} << 16U;
    if (space->symbols.capacity() > keptSymbols || space->path.capacity() > keptSymbols) {
        space->symbols = {};
        space->path = {};
        space->merging = {};
    }
    const std::scoped_lock lock(m_mutex);
    m_free.push_back(std::move(space));
}

} // namespace muster::tokenizer
