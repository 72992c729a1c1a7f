// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <cstdint>
#include <vector>

namespace muster::task {

/// Context tokens [start, start + count) that go into one feature.
struct Window {
    std::uint32_t start = 0;
    std::uint32_t count = 0;

    bool operator==(const Window&) const = default;
};

/// What the stride says (T-32).
enum class StrideMeaning {
    Overlap, ///< tokens that two windows share: Hugging Face
    Step     ///< distance of two window starts: original BERT
};

struct WindowRules {
    std::uint32_t maxSeqLength = 384; ///< tokens of a feature, question and special ones included
    std::uint32_t stride = 128;       ///< tokens
    StrideMeaning meaning = StrideMeaning::Overlap;
    std::uint32_t specialTokens = 3; ///< around question and context; 3 for BERT, 4 for RoBERTa
};

/// Cuts a context into windows that cover every token, in order; the last one is the first that
/// reaches the end. Only the context is cut, never the question. A context without tokens gives one
/// window without tokens, so that every question has a feature.
///
/// Capacity = maxSeqLength − question − special tokens. Next start = start + (capacity − stride)
/// for Overlap, start + stride for Step.
///
/// Errors: Invalid (`E-TASK-001`) when the context needs several windows and the stride would not
/// advance (Overlap) or would leave gaps (Step); the message has the largest legal value (C-029).
/// Invalid (`E-TASK-002`) when the question leaves no room for the context.
/// Source: semantics.md 3.1.
[[nodiscard]] Result<std::vector<Window>>
planWindows(std::uint32_t questionTokens, std::uint32_t contextTokens, const WindowRules& rules);

} // namespace muster::task
