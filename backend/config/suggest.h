// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace muster::config {

/// The candidate that a person most likely meant by `word`: the nearest by edit distance with
/// swaps of neighbours (optimal string alignment, over bytes), at most a third of the word's length
/// away (at least 1). Empty when none is that near. The first of equals.
[[nodiscard]] std::string nearest(std::string_view word, std::span<const std::string> candidates);

} // namespace muster::config
