// SPDX-License-Identifier: Apache-2.0
#pragma once

// Before <compare>, which moc of Qt 6.4 cannot read as the first standard header of a file.
#include <cstddef>
#include <cstdint>

#include <compare>
#include <functional>

namespace muster {

/// An index that does not mix with indices of other things. 64 bits; the default is 0.
template <typename Tag>
struct Index {
    std::uint64_t value = 0;

    constexpr Index() = default;
    constexpr explicit Index(std::uint64_t v) : value(v) {}

    constexpr auto operator<=>(const Index&) const = default;

    constexpr Index& operator++()
    {
        ++value;
        return *this;
    }
};

/// Place of a sample in the data set, 0..N−1, in reading order.
using SampleIndex = Index<struct SampleTag>;
/// Place of a model input (feature, window, sentence), 0..M−1, ordered by sample, then by window.
using ItemIndex = Index<struct ItemTag>;
/// A fixed batch of items that is handed out as one; 0..U−1 in the order of the plan (longest
/// first).
using UnitId = Index<struct UnitTag>;

/// One process of a run, 0..W−1. 32 bits as in MPI.
struct RankId {
    std::uint32_t value = 0;
    constexpr RankId() = default;
    constexpr explicit RankId(std::uint32_t v) : value(v) {}
    constexpr auto operator<=>(const RankId&) const = default;
};

/// Marks "no rank" where a rank is optional in a packed form.
inline constexpr RankId noRank{0xFFFFFFFFU};

} // namespace muster

template <typename Tag>
struct std::hash<muster::Index<Tag>> {
    std::size_t operator()(const muster::Index<Tag>& index) const noexcept
    {
        return std::hash<std::uint64_t>{}(index.value);
    }
};

template <>
struct std::hash<muster::RankId> {
    std::size_t operator()(const muster::RankId& rank) const noexcept
    {
        return std::hash<std::uint32_t>{}(rank.value);
    }
};
