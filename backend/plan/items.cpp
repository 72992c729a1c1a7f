// SPDX-License-Identifier: Apache-2.0
#include "plan/items.h"

#include <algorithm>
#include <cassert>

namespace muster::plan {

void ItemTable::append(SampleIndex sample, std::span<const std::int32_t> tokens,
                       std::span<const std::uint8_t> segments, std::uint32_t scoredFrom)
{
    assert(m_sample.empty() || m_sample.back() <= sample.value);
    assert(segments.empty() || segments.size() == tokens.size());
    m_hash.push_back(
        wire::itemHash(ItemIndex(m_sample.size()), m_kind, tokens, segments, scoredFrom));
    if (!segments.empty()) {
        m_segments.resize(m_tokens.size(), 0);
        m_segments.insert(m_segments.end(), segments.begin(), segments.end());
    } else if (!m_segments.empty()) {
        m_segments.resize(m_tokens.size() + tokens.size(), 0);
    }
    m_tokens.insert(m_tokens.end(), tokens.begin(), tokens.end());
    m_sample.push_back(sample.value);
    m_offset.push_back(m_tokens.size());
    if (scoredFrom != 0 || !m_scoredFrom.empty()) {
        m_scoredFrom.resize(m_sample.size(), 0);
        m_scoredFrom.back() = scoredFrom;
    }
}

void ItemTable::reserve(std::size_t items, std::size_t tokens)
{
    m_sample.reserve(items);
    m_hash.reserve(items);
    m_offset.reserve(items + 1);
    m_tokens.reserve(tokens);
}

std::span<const std::int32_t> ItemTable::tokens(ItemIndex item) const
{
    const auto i = static_cast<std::size_t>(item.value);
    return std::span(m_tokens).subspan(static_cast<std::size_t>(m_offset[i]), length(item));
}

std::span<const std::uint8_t> ItemTable::segments(ItemIndex item) const
{
    if (m_segments.empty())
        return {};
    const auto i = static_cast<std::size_t>(item.value);
    return std::span(m_segments).subspan(static_cast<std::size_t>(m_offset[i]), length(item));
}

std::uint32_t ItemTable::scoredFrom(ItemIndex item) const
{
    const auto i = static_cast<std::size_t>(item.value);
    return i < m_scoredFrom.size() ? m_scoredFrom[i] : 0;
}

} // namespace muster::plan
