// SPDX-License-Identifier: Apache-2.0
#include "model/config_reader_p.h"

namespace muster::model {

/// Mistral (Jiang et al. 2023): Llama with a sliding window on every layer, as transformers'
/// MistralForCausalLM computes it. The window is 4,096 when the key is absent and off when it is
/// null.
DecoderPlan planMistral(ConfigReader& config)
{
    constexpr std::uint32_t usualWindow = 4096;
    DecoderPlan plan;
    plan.shape = llamaShape(config, false, 0);
    const auto window =
        config.count("sliding_window", config.holds("sliding_window") ? 0 : usualWindow);
    plan.shape.windows.assign(plan.shape.layers, window);
    config.only("attention_bias");
    config.only("mlp_bias");
    plan.names = llamaNames(plan.shape.layers, {});
    return plan;
}

} // namespace muster::model
