// SPDX-License-Identifier: Apache-2.0
#include "model/encoder_runner_p.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

namespace muster::model {
namespace {

/// Outputs of question answering travel as 16-bit positions.
constexpr std::size_t longestItem = 65536;

} // namespace

std::vector<std::byte> payloadOf(std::string_view text)
{
    std::vector<std::byte> bytes(text.size());
    std::transform(text.begin(), text.end(), bytes.begin(),
                   [](char c) { return static_cast<std::byte>(c); });
    return bytes;
}

std::optional<std::string> EncoderRunner::problem(const wire::Unit& unit, std::size_t place) const
{
    const std::size_t first = unit.offsets[place];
    const std::size_t last = unit.offsets[place + 1];
    const auto tokens = last - first;
    if (tokens == 0)
        return "the item has no tokens";
    if (tokens > m_shape.maxTokens() || tokens > longestItem)
        return fmt::format("the item has {} tokens and the model has {} positions", tokens,
                           m_shape.maxTokens());
    for (auto t = first; t < last; ++t) {
        if (unit.tokens[t] < 0 || std::cmp_greater_equal(unit.tokens[t], m_shape.vocabulary))
            return fmt::format("token {} of the item is {} and the vocabulary has {}", t - first,
                               unit.tokens[t], m_shape.vocabulary);
        if (!unit.segments.empty() && m_shape.segments != 0 && unit.segments[t] >= m_shape.segments)
            return fmt::format("token {} of the item has type {} and the model has {} types",
                               t - first, unit.segments[t], m_shape.segments);
    }
    return std::nullopt;
}

/// Deals whole items to the encoders, about the same number of tokens to each.
Status EncoderRunner::run(const PackedTokens& packed, float* logits)
{
    const auto items = packed.offsets.size() - 1;
    const auto threads = std::min(m_encoders.size(), items);
    if (threads <= 1)
        return items == 0 ? Status{} : m_encoders.front()->run(packed, logits);
    std::vector<Status> states(threads);
    std::vector<std::thread> workers;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < threads; ++i) {
        auto end = begin;
        const auto goal = packed.tokens.size() * (i + 1) / threads;
        while (end < items && (packed.offsets[end + 1] <= goal || end == begin))
            ++end;
        if (i + 1 == threads)
            end = items;
        const auto work = [this, &packed, &states, logits, i, begin, end] {
            const auto first = packed.offsets[begin];
            std::vector<std::uint32_t> offsets;
            for (auto item = begin; item <= end; ++item)
                offsets.push_back(packed.offsets[item] - first);
            const auto part = [&](auto span) {
                return span.empty() ? span : span.subspan(first, offsets.back());
            };
            states[i] =
                m_encoders[i]->run({part(packed.tokens), part(packed.segments), offsets},
                                   logits + (m_shape.isClassifier() ? begin * m_shape.outputs
                                                                    : 2 * std::size_t{first}));
        };
        if (i + 1 == threads)
            work();
        else
            workers.emplace_back(work);
        begin = end;
    }
    for (auto& worker : workers)
        worker.join();
    for (auto& state : states) {
        if (!state)
            return std::move(state);
    }
    return {};
}

Result<RunItems> EncoderRunner::run(const wire::Unit& unit)
{
    RunItems items;
    for (std::size_t place = 0; place < unit.size(); ++place) {
        if (!problem(unit, place))
            items.places.push_back(place);
    }
    std::vector<std::int32_t> tokens;
    std::vector<std::uint8_t> segments;
    items.offsets = {0};
    const auto append = [&](auto& to, const auto& from, std::size_t place) {
        to.insert(to.end(), from.begin() + unit.offsets[place],
                  from.begin() + unit.offsets[place + 1]);
    };
    for (const auto place : items.places) {
        append(tokens, unit.tokens, place);
        if (!unit.segments.empty())
            append(segments, unit.segments, place);
        items.offsets.push_back(static_cast<std::uint32_t>(tokens.size()));
    }
    float* logits = m_logits.reserve(m_shape.isClassifier() ? items.places.size() * m_shape.outputs
                                                            : tokens.size() * 2);
    if (auto status = run({tokens, segments, items.offsets}, logits); !status)
        return fail(std::move(status).error());
    items.logits = logits;
    return items;
}

} // namespace muster::model
