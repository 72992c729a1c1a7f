// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace muster::align {

/// How other programs deal samples to ranks and in which order their gather returns them.
struct Dealing {
    enum class Kind {
        Stride,  ///< rank r has r, r + W, …; all of rank 0, then all of rank 1 (semantics.md 1.2)
        Batches, ///< batches dealt in turn; all of rank 0, then all of rank 1 (semantics.md 1.4)
        Steps    ///< shares as in Stride, gathered after every `batch` rows of each rank (2.1)
    };
    Kind kind = Kind::Stride;
    std::uint64_t world = 1;
    std::uint64_t batch = 1; ///< Batches and Steps
    bool isPadded = false;   ///< ranks are evened out with copies from the front of the data set
    bool isByName = false;   ///< shares joined in the order of names: 0, 1, 10, 11, 2, …
    bool operator==(const Dealing&) const = default;
};

/// The order in which rows come back under a dealing. A pure function of the numbers.
class DealtOrder final {
public:
    /// `total` ≥ 1, `world` ≥ 1, `batch` ≥ 1.
    DealtOrder(std::uint64_t total, const Dealing& dealing);

    /// Rows with all copies.
    [[nodiscard]] std::uint64_t size() const { return m_starts.back(); }
    /// Index of the row at `place` < size().
    [[nodiscard]] std::uint64_t at(std::uint64_t place) const;

private:
    [[nodiscard]] std::uint64_t shareOf(std::uint64_t rank) const;
    std::uint64_t m_total;
    Dealing m_dealing;
    std::vector<std::uint64_t> m_ranks;  // rank of each share in file order
    std::vector<std::uint64_t> m_starts; // first row of each share in file order, and the end
};

/// 0 … count−1 ordered as decimal texts: 0, 1, 10, 11, 2, …
[[nodiscard]] std::vector<std::uint64_t> orderByName(std::uint64_t count);

} // namespace muster::align
