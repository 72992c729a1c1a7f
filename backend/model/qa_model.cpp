// SPDX-License-Identifier: Apache-2.0
#include "model/qa_model_p.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <thread>
#include <utility>

namespace muster::model {
namespace {

/// Outputs travel as 16-bit positions.
constexpr std::size_t longestItem = 65536;

void takeLargest(std::span<const float> logits, std::size_t column, std::uint32_t count, Ties ties,
                 std::vector<std::uint16_t>& positions, std::vector<float>& values)
{
    const auto tokens = logits.size() / 2;
    const auto kept = std::min<std::size_t>(count, tokens);
    std::vector<std::uint32_t> order(tokens);
    std::iota(order.begin(), order.end(), 0U);
    const auto at = [&](std::uint32_t t) { return logits[2 * std::size_t{t} + column]; };
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                      [&](std::uint32_t a, std::uint32_t b) {
                          if (at(a) != at(b))
                              return at(a) > at(b);
                          return ties == Ties::Hf ? a > b : a < b;
                      });
    for (std::size_t i = 0; i < kept; ++i) {
        positions.push_back(static_cast<std::uint16_t>(order[i]));
        values.push_back(at(order[i]));
    }
}

std::vector<std::byte> bytesOf(std::string_view text)
{
    std::vector<std::byte> bytes(text.size());
    std::transform(text.begin(), text.end(), bytes.begin(),
                   [](char c) { return static_cast<std::byte>(c); });
    return bytes;
}

} // namespace

wire::QaOutput largestLogits(std::span<const float> logits, std::uint32_t count, Ties ties)
{
    wire::QaOutput output;
    if (logits.size() < 2)
        return output;
    output.nullStart = logits[0];
    output.nullEnd = logits[1];
    takeLargest(logits, 0, count, ties, output.startPosition, output.startLogit);
    takeLargest(logits, 1, count, ties, output.endPosition, output.endLogit);
    return output;
}

QaModel::QaModel(const EncoderShape& shape, ModelIdentity identity,
                 std::vector<std::unique_ptr<Encoder>> encoders, std::uint32_t nBest, Ties ties)
    : m_shape(shape), m_identity(std::move(identity)), m_encoders(std::move(encoders)),
      m_nBest(nBest), m_ties(ties)
{
}

std::optional<std::string> QaModel::problem(const wire::Unit& unit, std::size_t place) const
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
Status QaModel::run(const PackedTokens& packed, float* logits)
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
            states[i] = m_encoders[i]->run({part(packed.tokens), part(packed.segments), offsets},
                                           logits + 2 * first);
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

Result<std::vector<float>> QaModel::logits(const wire::Unit& unit)
{
    std::vector<float> all(unit.tokens.size() * 2);
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < unit.size(); ++place) {
        if (!problem(unit, place))
            places.push_back(place);
    }
    std::vector<std::int32_t> tokens;
    std::vector<std::uint8_t> segments;
    std::vector<std::uint32_t> offsets{0};
    const auto append = [&](auto& to, const auto& from, std::size_t place) {
        to.insert(to.end(), from.begin() + unit.offsets[place],
                  from.begin() + unit.offsets[place + 1]);
    };
    for (const auto place : places) {
        append(tokens, unit.tokens, place);
        if (!unit.segments.empty())
            append(segments, unit.segments, place);
        offsets.push_back(static_cast<std::uint32_t>(tokens.size()));
    }
    float* packed = m_logits.reserve(tokens.size() * 2);
    if (auto status = run({tokens, segments, offsets}, packed); !status)
        return fail(std::move(status).error());
    for (std::size_t i = 0; i < places.size(); ++i)
        std::copy(packed + 2 * std::size_t{offsets[i]}, packed + 2 * std::size_t{offsets[i + 1]},
                  all.begin() + 2 * static_cast<std::ptrdiff_t>(unit.offsets[places[i]]));
    return all;
}

Result<std::vector<wire::Output>> QaModel::compute(const wire::Unit& unit)
{
    if (!unit.valid() || unit.kind != wire::UnitKind::Qa)
        return fail(Error::Kind::Internal, "E-MODEL-091",
                    "the unit is malformed or not of question answering");
    const auto all = logits(unit);
    if (!all)
        return fail(all.error());
    std::vector<wire::Output> outputs(unit.size());
    for (std::size_t place = 0; place < unit.size(); ++place) {
        auto& output = outputs[place];
        output.item = ItemIndex(unit.items[place]);
        output.hash = wire::itemHash(unit, place);
        const auto own =
            std::span(*all).subspan(2 * std::size_t{unit.offsets[place]},
                                    2 * std::size_t{unit.offsets[place + 1] - unit.offsets[place]});
        auto text = problem(unit, place);
        if (!text && !std::all_of(own.begin(), own.end(), [](float x) { return std::isfinite(x); }))
            text = "the model gave a logit that is not finite";
        if (text) {
            output.flags |= wire::errorFlag;
            output.payload = bytesOf(*text);
        } else {
            output.payload = wire::encodeQa(largestLogits(own, m_nBest, m_ties));
        }
    }
    return outputs;
}

} // namespace muster::model
