// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/ids.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::run {

/// The packed outputs of all items of a run, one block of memory. 16 bytes beside each payload.
class Payloads final {
public:
    explicit Payloads(std::size_t items) : m_place(items, 0), m_size(items, absent) {}

    /// Keeps the first payload of an item; returns whether it was the first.
    bool put(ItemIndex item, std::span<const std::byte> payload)
    {
        const auto i = static_cast<std::size_t>(item.value);
        if (m_size[i] != absent)
            return false;
        m_place[i] = m_bytes.size();
        m_size[i] = static_cast<std::uint32_t>(payload.size());
        m_bytes.insert(m_bytes.end(), payload.begin(), payload.end());
        return true;
    }

    [[nodiscard]] bool has(ItemIndex item) const
    {
        return m_size[static_cast<std::size_t>(item.value)] != absent;
    }
    /// Empty for an item that has() denies.
    [[nodiscard]] std::span<const std::byte> get(ItemIndex item) const
    {
        const auto i = static_cast<std::size_t>(item.value);
        if (m_size[i] == absent)
            return {};
        return std::span(m_bytes).subspan(static_cast<std::size_t>(m_place[i]), m_size[i]);
    }

private:
    static constexpr std::uint32_t absent = 0xFFFFFFFFU;
    std::vector<std::uint64_t> m_place;
    std::vector<std::uint32_t> m_size;
    std::vector<std::byte> m_bytes;
};

} // namespace muster::run
