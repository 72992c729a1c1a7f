// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace muster::run {

/// Puts a model input together from texts and special tokens; reuse one object for many inputs.
struct InputBuilder {
    std::vector<std::int32_t> ids;
    std::vector<std::uint8_t> segments; ///< token type of each id

    void clear()
    {
        ids.clear();
        segments.clear();
    }
    void put(std::span<const std::int32_t> tokens, std::int32_t segment)
    {
        ids.insert(ids.end(), tokens.begin(), tokens.end());
        segments.resize(ids.size(), static_cast<std::uint8_t>(segment));
    }
    /// Special tokens, each with a type of its own.
    void put(const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& types)
    {
        for (std::size_t i = 0; i < tokens.size(); ++i)
            put(std::span(&tokens[i], 1), types[i]);
    }
};

} // namespace muster::run
