// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/piece_table_p.h"

#include <algorithm>

namespace muster::tokenizer {

PieceTable::PieceTable(std::size_t expected) : m_lengths(2 * startCount)
{
    const std::size_t slots = std::bit_ceil(std::max<std::size_t>(2 * expected, 64));
    m_slots.resize(slots);
    m_mask = slots - 1;
    m_shift = 64U - static_cast<unsigned>(std::countr_zero(slots));
    std::fill(&m_single[0][0], &m_single[0][0] + 512, none);
}

void PieceTable::grow()
{
    std::vector<Slot> old = std::move(m_slots);
    m_slots.assign(old.size() * 2, Slot{});
    m_mask = m_slots.size() - 1;
    --m_shift;
    for (const Slot& slot : old) {
        if (slot.tag == 0)
            continue;
        std::size_t at = slotOf({slot.low, slot.high}, slot.tag);
        while (m_slots[at].tag != 0)
            at = (at + 1) & m_mask;
        m_slots[at] = slot;
    }
}

void PieceTable::add(Kind kind, std::string_view piece, std::int32_t id)
{
    if (piece.empty())
        return;
    const auto k = static_cast<std::size_t>(kind);
    const Packed packed = packExact(piece.data(), std::min(piece.size(), shortSize));
    Lengths& lengths = m_lengths[startOf(kind, packed.low)];
    if (piece.size() > shortSize) {
        m_long[k].insert_or_assign(std::string(piece), id);
        m_longestSize[k] = std::max(m_longestSize[k], piece.size());
        lengths.hasLong = 1;
        return;
    }
    if (piece.size() == 1)
        m_single[k][static_cast<unsigned char>(piece[0])] = id;
    else
        lengths.present = static_cast<std::uint16_t>(lengths.present | 1U << (piece.size() - 1));
    if (4 * (m_used + 1) > 3 * m_slots.size())
        grow();
    const std::uint32_t tag = tagOf(kind, piece.size());
    std::size_t at = slotOf(packed, tag);
    while (m_slots[at].tag != 0) {
        Slot& slot = m_slots[at];
        if (slot.low == packed.low && slot.high == packed.high && slot.tag == tag) {
            slot.id = id;
            return;
        }
        at = (at + 1) & m_mask;
    }
    m_slots[at] = {packed.low, packed.high, tag, id};
    ++m_used;
}

std::int32_t PieceTable::find(Kind kind, std::string_view piece) const
{
    if (piece.empty())
        return none;
    if (piece.size() <= shortSize)
        return find(kind, packExact(piece.data(), piece.size()), piece.size());
    if (piece.size() > m_longestSize[static_cast<std::size_t>(kind)])
        return none;
    const auto& table = m_long[static_cast<std::size_t>(kind)];
    const auto hit = table.find(piece);
    return hit == table.end() ? none : hit->second;
}

PieceTable::Longest PieceTable::longest(Kind kind, const char* bytes, std::size_t size) const
{
    const auto k = static_cast<std::size_t>(kind);
    const Packed all = packWide(bytes, std::min(size, shortSize));
    const Lengths lengths = m_lengths[startOf(kind, all.low)];
    if (lengths.hasLong != 0 && size > shortSize) {
        for (std::size_t n = std::min(size, m_longestSize[k]); n > shortSize; --n) {
            const std::int32_t id = find(kind, std::string_view(bytes, n));
            if (id != none)
                return {id, n};
        }
    }
    std::uint32_t candidates = lengths.present;
    if (size < shortSize)
        candidates &= (1U << size) - 1U;
    while (candidates != 0) {
        const auto n = static_cast<std::size_t>(std::bit_width(candidates));
        const std::int32_t id = find(kind, packWide(bytes, n), n);
        if (id != none)
            return {id, n};
        candidates &= ~(1U << (n - 1));
    }
    const std::int32_t single = m_single[k][static_cast<unsigned char>(*bytes)];
    return {single, single == none ? std::size_t{0} : std::size_t{1}};
}

} // namespace muster::tokenizer
