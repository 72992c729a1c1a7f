// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "align/likelihood_p.h"
#include "align/order_test.h"

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace muster::align {

/// Names what pieces at different shifts are; `changes` lie between neighbours [pieces − 1].
[[nodiscard]] OrderDiagnosis namePieces(std::span<const Piece> pieces,
                                        std::span<const Change> changes, std::uint64_t rows);

/// The ranks of the block shares of `world` whose shares the two exchanged pieces are, up to a few
/// rows at each end; nothing when they are no shares.
[[nodiscard]] std::optional<std::pair<std::uint64_t, std::uint64_t>>
exchangedRanks(std::span<const Piece> pieces, std::uint64_t references, std::uint64_t world);

/// Ranks a < b of block shares exchanged; `exact` has a piece for each rank.
[[nodiscard]] OrderDiagnosis nameExchangedRanks(std::span<const Piece> exact, std::uint64_t world,
                                                std::uint64_t a, std::uint64_t b);

/// Writes `sentence` and `cause` from the numbers.
void nameOrder(OrderDiagnosis& diagnosis, std::uint64_t rows, std::uint64_t references);

} // namespace muster::align
