// SPDX-License-Identifier: Apache-2.0
#include "model/qa_model_p.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace muster::model {
namespace {

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
    : m_runner(shape, std::move(encoders)), m_identity(std::move(identity)), m_nBest(nBest),
      m_ties(ties)
{
}

Result<std::vector<float>> QaModel::logits(const wire::Unit& unit)
{
    std::vector<float> all(unit.tokens.size() * 2);
    const auto items = m_runner.run(unit);
    if (!items)
        return fail(items.error());
    for (std::size_t i = 0; i < items->places.size(); ++i)
        std::copy(items->logits + 2 * std::size_t{items->offsets[i]},
                  items->logits + 2 * std::size_t{items->offsets[i + 1]},
                  all.begin() + 2 * static_cast<std::ptrdiff_t>(unit.offsets[items->places[i]]));
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
        auto text = m_runner.problem(unit, place);
        if (!text && !std::all_of(own.begin(), own.end(), [](float x) { return std::isfinite(x); }))
            text = "the model gave a logit that is not finite";
        if (text) {
            output.flags |= wire::errorFlag;
            output.payload = payloadOf(*text);
        } else {
            output.payload = wire::encodeQa(largestLogits(own, m_nBest, m_ties));
        }
    }
    return outputs;
}

} // namespace muster::model
