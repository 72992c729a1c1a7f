// SPDX-License-Identifier: Apache-2.0
#include "model/rope_p.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

namespace muster::model {

/// Both spellings: `rope_scaling` beside `rope_theta`, and `rope_parameters` with everything.
RopeShape readRope(ConfigReader& config, std::uint32_t positions)
{
    RopeShape rope;
    const bool isOld = config.has("rope_scaling");
    if (isOld && config.has("rope_parameters"))
        config.refuse("E-MODEL-022", "rope_scaling and rope_parameters are both there; which of "
                                     "them holds is not guessed");
    constexpr double largestTheta = 1e15;
    rope.theta = config.number("rope_theta", 10000.0, 1.0, largestTheta);
    if (config.number("partial_rotary_factor", 1.0, 0.0, 1.0) != 1.0)
        config.refuse("E-MODEL-022",
                      "partial_rotary_factor other than 1 is not computed by Muster");
    auto part = config.part(isOld ? "rope_scaling" : "rope_parameters");
    rope.theta = part.number("rope_theta", rope.theta, 1.0, largestTheta);
    if (part.number("partial_rotary_factor", 1.0, 0.0, 1.0) != 1.0)
        part.refuse("E-MODEL-022", "partial_rotary_factor other than 1 is not computed by Muster");
    const auto older = part.text("type", "default");
    const auto kind = part.text("rope_type", older);
    if (part.has("type") && older != kind)
        part.refuse("E-MODEL-022", "type and rope_type differ");
    constexpr double largestFactor = 1e6;
    if (kind == "default") {
        rope.kind = RopeKind::Plain;
    } else if (kind == "linear") {
        rope.kind = RopeKind::Linear;
        rope.factor = part.number("factor", {}, 1e-3, largestFactor);
    } else if (kind == "llama3") {
        rope.kind = RopeKind::Llama3;
        rope.factor = part.number("factor", {}, 1e-3, largestFactor);
        rope.lowFrequency = part.number("low_freq_factor", {}, 1e-3, largestFactor);
        rope.highFrequency = part.number("high_freq_factor", {}, 1e-3, largestFactor);
        rope.originalPositions = part.number("original_max_position_embeddings",
                                             static_cast<double>(positions), 1.0, 1e9);
        if (rope.highFrequency <= rope.lowFrequency)
            part.refuse("E-MODEL-021", "high_freq_factor must be above low_freq_factor");
    } else {
        part.refuse("E-MODEL-022",
                    fmt::format("rope_type {} is not computed by Muster (default, linear and "
                                "llama3 are)",
                                inQuotes(kind)));
    }
    config.close(std::move(part));
    return rope;
}

std::vector<float> ropeFrequencies(const RopeShape& rope, std::uint32_t headSize)
{
    std::vector<float> frequencies;
    for (std::uint32_t i = 0; i < headSize; i += 2) {
        const auto exponent = static_cast<float>(i) / static_cast<float>(headSize);
        const auto wave = static_cast<float>(std::pow(rope.theta, static_cast<double>(exponent)));
        float frequency = 1.0F / wave;
        if (rope.kind == RopeKind::Linear)
            frequency /= static_cast<float>(rope.factor);
        if (rope.kind == RopeKind::Llama3) {
            const auto length = 2.0F * std::numbers::pi_v<float> / frequency;
            const auto original = static_cast<float>(rope.originalPositions);
            const auto low = static_cast<float>(rope.lowFrequency);
            const auto high = static_cast<float>(rope.highFrequency);
            const auto factor = static_cast<float>(rope.factor);
            if (length > original / low) {
                frequency /= factor;
            } else if (length >= original / high) {
                const auto smooth = (original / length - low) / (high - low);
                frequency = (1.0F - smooth) * frequency / factor + smooth * frequency;
            }
        }
        frequencies.push_back(frequency);
    }
    return frequencies;
}

} // namespace muster::model
