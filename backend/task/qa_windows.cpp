// SPDX-License-Identifier: Apache-2.0
#include "task/qa_windows.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::task {

Result<std::vector<Window>> planWindows(std::uint32_t questionTokens, std::uint32_t contextTokens,
                                        const WindowRules& rules)
{
    const std::uint64_t taken = std::uint64_t{questionTokens} + rules.specialTokens;
    if (taken > rules.maxSeqLength || (taken == rules.maxSeqLength && contextTokens > 0))
        return fail(Error::Kind::Invalid, "E-TASK-002",
                    fmt::format("a question of {} tokens and {} special tokens leave no room for "
                                "the context in a sequence of {}; raise qa.max_seq_length to at "
                                "least {}",
                                questionTokens, rules.specialTokens, rules.maxSeqLength,
                                taken + 1));
    const std::uint64_t capacity = rules.maxSeqLength - taken;
    if (contextTokens <= capacity)
        return std::vector<Window>{{0, contextTokens}};

    std::uint64_t step = 0;
    if (rules.meaning == StrideMeaning::Overlap) {
        if (rules.stride >= capacity)
            return fail(Error::Kind::Invalid, "E-TASK-001",
                        fmt::format("windows of {} context tokens cannot overlap by {}: with a "
                                    "question of {} tokens the largest legal qa.doc_stride is {}",
                                    capacity, rules.stride, questionTokens, capacity - 1));
        step = capacity - rules.stride;
    } else {
        if (rules.stride > capacity || rules.stride == 0)
            return fail(Error::Kind::Invalid, "E-TASK-001",
                        fmt::format("windows of {} context tokens at a step of {} {}: with a "
                                    "question of {} tokens the largest gap-free step is {}",
                                    capacity, rules.stride,
                                    rules.stride == 0 ? "do not advance" : "leave gaps",
                                    questionTokens, capacity));
        step = rules.stride;
    }
    std::vector<Window> windows;
    for (std::uint64_t start = 0;; start += step) {
        const std::uint64_t count = std::min(capacity, contextTokens - start);
        windows.push_back({static_cast<std::uint32_t>(start), static_cast<std::uint32_t>(count)});
        if (start + count == contextTokens)
            return windows;
    }
}

} // namespace muster::task
