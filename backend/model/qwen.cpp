// SPDX-License-Identifier: Apache-2.0
#include "model/config_reader_p.h"
#include "model/safetensors.h"

#include <fmt/format.h>

namespace muster::model {

std::vector<std::uint32_t> qwenWindows(ConfigReader& config, std::uint32_t layers)
{
    constexpr std::uint32_t usualWindow = 4096;
    constexpr std::uint32_t usualFirst = 28;
    const bool isUsed = config.flag("use_sliding_window", false);
    const auto window =
        config.count("sliding_window", config.holds("sliding_window") ? 0 : usualWindow);
    const auto first = config.count("max_window_layers", usualFirst, 0);
    const auto types = config.texts("layer_types");
    std::vector<std::uint32_t> windows(layers, 0);
    if (config.has("layer_types") && types.size() != layers)
        config.refuse("E-MODEL-021", "layer_types must name every layer");
    for (std::uint32_t i = 0; i < layers; ++i) {
        const bool isListed = i < types.size();
        const bool slides = isListed ? types[i] == "sliding_attention" : isUsed && i >= first;
        if (isListed && !slides && types[i] != "full_attention")
            config.refuse("E-MODEL-022", fmt::format("layer_types: {} is not computed by Muster",
                                                     inQuotes(types[i])));
        if (isListed && slides && (!isUsed || window == 0))
            config.refuse("E-MODEL-022", "layer_types asks for a sliding window and "
                                         "use_sliding_window or sliding_window turns it off");
        if (slides && isUsed)
            windows[i] = window;
    }
    return windows;
}

/// Qwen2 and Qwen2.5 (Yang et al. 2024): Llama with biases of query, key and value, as
/// transformers' Qwen2ForCausalLM computes it.
DecoderPlan planQwen2(ConfigReader& config)
{
    DecoderPlan plan;
    plan.shape = llamaShape(config, false, 0);
    plan.shape.windows = qwenWindows(config, plan.shape.layers);
    config.only("use_mrope");
    config.only("mlp_bias");
    plan.names = llamaNames(plan.shape.layers, {.hasInputBias = true});
    return plan;
}

/// Qwen3 (Yang et al. 2025): each head's query and key pass an RMS norm before they are rotated, as
/// transformers' Qwen3ForCausalLM computes it.
DecoderPlan planQwen3(ConfigReader& config)
{
    constexpr std::uint32_t usualHeadSize = 128;
    DecoderPlan plan;
    plan.shape = llamaShape(config, false, usualHeadSize);
    plan.shape.windows = qwenWindows(config, plan.shape.layers);
    const bool hasBias = config.flag("attention_bias", false);
    config.only("mlp_bias");
    plan.names =
        llamaNames(plan.shape.layers,
                   {.hasInputBias = hasBias, .hasOutputBias = hasBias, .hasHeadNorms = true});
    return plan;
}

} // namespace muster::model
