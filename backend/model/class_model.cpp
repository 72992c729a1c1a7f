// SPDX-License-Identifier: Apache-2.0
#include "model/qa_model_p.h"

#include <algorithm>
#include <cmath>

namespace muster::model {

Result<std::vector<wire::Output>> ClassModel::compute(const wire::Unit& unit)
{
    if (!unit.valid() || unit.kind != wire::UnitKind::Classification)
        return fail(Error::Kind::Internal, "E-MODEL-091",
                    "the unit is malformed or not of classification");
    const auto items = m_runner.run(unit);
    if (!items)
        return fail(items.error());
    std::vector<wire::Output> outputs(unit.size());
    for (std::size_t place = 0; place < unit.size(); ++place) {
        outputs[place].item = ItemIndex(unit.items[place]);
        outputs[place].hash = wire::itemHash(unit, place);
        if (const auto text = m_runner.problem(unit, place)) {
            outputs[place].flags |= wire::errorFlag;
            outputs[place].payload = payloadOf(*text);
        }
    }
    const std::size_t classes = m_runner.shape().outputs;
    for (std::size_t i = 0; i < items->places.size(); ++i) {
        wire::Output& output = outputs[items->places[i]];
        const std::span<const float> own(items->logits + i * classes, classes);
        if (std::all_of(own.begin(), own.end(), [](float x) { return std::isfinite(x); })) {
            output.payload = wire::encodeClass({{own.begin(), own.end()}});
        } else {
            output.flags |= wire::errorFlag;
            output.payload = payloadOf("the model gave a logit that is not finite");
        }
    }
    return outputs;
}

} // namespace muster::model
