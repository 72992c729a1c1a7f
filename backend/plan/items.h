// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "base/ids.h"
#include "wire/unit.h"

#include <cstdint>
#include <span>
#include <vector>

namespace muster::plan {

/// All model inputs of a run, column by column, in item order (by sample, then by window).
/// Token ids of item i are tokens[offset[i] .. offset[i+1]).
class ItemTable final {
public:
    explicit ItemTable(wire::UnitKind kind) : m_kind(kind) {}

    /// Appends the next item and forms its content hash. `segments` is empty (all zero) or as long
    /// as `tokens`; `scoredFrom` is for language models, else 0. `sample` may not fall.
    void append(SampleIndex sample, std::span<const std::int32_t> tokens,
                std::span<const std::uint8_t> segments, std::uint32_t scoredFrom = 0);
    void reserve(std::size_t items, std::size_t tokens);

    [[nodiscard]] wire::UnitKind kind() const { return m_kind; }
    [[nodiscard]] std::size_t size() const { return m_sample.size(); }
    [[nodiscard]] std::uint64_t totalTokens() const { return m_offset.back(); }
    [[nodiscard]] SampleIndex sample(ItemIndex item) const
    {
        return SampleIndex(m_sample[static_cast<std::size_t>(item.value)]);
    }
    [[nodiscard]] std::uint32_t length(ItemIndex item) const
    {
        const auto i = static_cast<std::size_t>(item.value);
        return static_cast<std::uint32_t>(m_offset[i + 1] - m_offset[i]);
    }
    [[nodiscard]] std::span<const std::int32_t> tokens(ItemIndex item) const;
    /// Empty when no item has segments.
    [[nodiscard]] std::span<const std::uint8_t> segments(ItemIndex item) const;
    [[nodiscard]] std::uint32_t scoredFrom(ItemIndex item) const;
    [[nodiscard]] const Hash128& hash(ItemIndex item) const
    {
        return m_hash[static_cast<std::size_t>(item.value)];
    }
    /// Columns, [items].
    [[nodiscard]] std::span<const std::uint64_t> samples() const { return m_sample; }
    [[nodiscard]] std::span<const Hash128> hashes() const { return m_hash; }

private:
    wire::UnitKind m_kind;
    std::vector<std::uint64_t> m_sample;
    std::vector<std::uint64_t> m_offset{0};
    std::vector<std::int32_t> m_tokens;
    std::vector<std::uint8_t> m_segments;
    std::vector<std::uint32_t> m_scoredFrom;
    std::vector<Hash128> m_hash;
};

} // namespace muster::plan
