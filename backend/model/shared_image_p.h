// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "base/result.h"
#include "model/model.h"

#include <cstddef>
#include <functional>
#include <memory>

namespace muster::model {

/// Weights in memory, read-only once they are filled.
struct Image {
    std::shared_ptr<const std::byte> bytes; ///< at a multiple of 64; freed with the last owner
    bool isShared = false;                  ///< mapped by several ranks of the node
};

/// Makes an image of `size` bytes, zeroed and then filled by `fill`; with several local ranks it is
/// filled once, by local rank 0, and mapped by the others.
///
/// Sharing leaves nothing behind, whatever kills the ranks: the memory has no name (memfd, sealed
/// against writing before it is handed out), and it travels over an abstract socket whose name is
/// formed from `shared.key`, between processes of the same user only. A short thread of local rank
/// 0 hands it to localRanks − 1 others and ends. A rank that finds no local
/// rank 0 within 3 seconds, or gets memory with another digest or size, fills its own: sharing
/// saves memory and time and never decides a result.
///
/// Error: Internal (`E-MODEL-092`) when memory cannot be had.
[[nodiscard]] Result<Image> makeImage(const SharedWeights& shared, const Hash128& digest,
                                      std::size_t size,
                                      const std::function<void(std::byte*)>& fill);

} // namespace muster::model
