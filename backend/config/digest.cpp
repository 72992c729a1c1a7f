// SPDX-License-Identifier: Apache-2.0
#include "config/digest.h"

namespace muster::config {

namespace {

/// Whether a setting can change a number of this run: those of other tasks cannot.
bool concerns(const Setting& setting, const RunConfig& config)
{
    const std::string_view section = setting.section();
    for (const Task task : {Task::Qa, Task::Lm, Task::Classification})
        if (section == taskName(task))
            return config.task == task;
    return setting.key != "model.group_size" || config.model.dtype == Dtype::Int4;
}

} // namespace

Hash128 evaluationDigest(const RunConfig& config)
{
    Hasher hasher;
    hasher.add("muster-evaluation/1");
    for (const Setting& setting : settings()) {
        if (setting.effect != Effect::Numbers || !concerns(setting, config))
            continue;
        hasher.add(setting.key);
        hasher.add(tomlText(setting.get(config)));
    }
    return hasher.result();
}

std::vector<Difference> differences(const RunConfig& a, const RunConfig& b)
{
    const auto shown = [](const Value& value) {
        std::string text = tomlText(value);
        return text.empty() ? std::string("(none)") : text;
    };
    std::vector<Difference> found;
    for (const Setting& setting : settings()) {
        Difference difference{std::string(setting.key), shown(setting.get(a)),
                              shown(setting.get(b)), setting.effect};
        if (difference.first != difference.second)
            found.push_back(std::move(difference));
    }
    return found;
}

} // namespace muster::config
