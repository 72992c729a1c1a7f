// SPDX-License-Identifier: Apache-2.0
#include "model/config_reader_p.h"
#include "model/rope_p.h"

#include <fmt/format.h>

#include <array>

namespace muster::model {

DecoderShape llamaShape(ConfigReader& config, bool keyHeadsDefault, std::uint32_t headSize)
{
    constexpr std::uint32_t widest = 1U << 16U;
    DecoderShape shape;
    shape.vocabulary = config.count("vocab_size", {});
    shape.positions = config.count("max_position_embeddings", {});
    shape.width = config.count("hidden_size", {}, 1, widest);
    shape.inner = config.count("intermediate_size", {}, 1, 1U << 18U);
    shape.layers = config.count("num_hidden_layers", {}, 1, mostLayers);
    shape.heads = config.count("num_attention_heads", {}, 1, widest);
    if (!keyHeadsDefault && !config.has("num_key_value_heads"))
        config.refuse("E-MODEL-021", "the key num_key_value_heads is missing");
    shape.keyHeads = config.count("num_key_value_heads", shape.heads, 1, widest);
    shape.headSize =
        config.count("head_dim", headSize != 0 ? headSize : shape.width / shape.heads, 1, 4096);
    if (headSize == 0 && !config.has("head_dim") && shape.width % shape.heads != 0)
        config.refuse("E-MODEL-021", fmt::format("{} attention heads do not divide the width {}",
                                                 shape.heads, shape.width));
    if (shape.heads % shape.keyHeads != 0)
        config.refuse("E-MODEL-021",
                      fmt::format("num_key_value_heads = {} does not divide the {} attention heads",
                                  shape.keyHeads, shape.heads));
    if (shape.headSize % 2 != 0)
        config.refuse("E-MODEL-021",
                      fmt::format("head_dim = {} is odd and cannot be rotated", shape.headSize));
    if (shape.queryWidth() > 4 * widest)
        config.refuse("E-MODEL-021", "the heads are wider than Muster's limit");
    shape.epsilon = config.positive("rms_norm_eps", 1e-6);
    if (const auto name = config.text("hidden_act", "silu"); name != "silu" && name != "swish")
        config.refuse("E-MODEL-022",
                      fmt::format("hidden_act = {} is not computed by Muster for this architecture "
                                  "(silu is)",
                                  inQuotes(name)));
    shape.isTied = config.flag("tie_word_embeddings", false);
    shape.rope = readRope(config, shape.positions);
    shape.windows.assign(shape.layers, 0);
    constexpr std::array<std::string_view, 5> harmless{"attention_dropout", "pretraining_tp",
                                                       "is_llama_config", "transformers.js_config",
                                                       "unsloth_fixed"};
    config.ignore(harmless);
    config.only("rope_interleaved");
    return shape;
}

DecoderNames llamaNames(std::uint32_t layers, const LlamaParts& parts)
{
    const auto linear = [](const std::string& name, bool hasBias) {
        return LinearNames{name + ".weight", hasBias ? name + ".bias" : std::string()};
    };
    DecoderNames names;
    names.words = "model.embed_tokens.weight";
    for (std::uint32_t i = 0; i < layers; ++i) {
        const auto layer = fmt::format("model.layers.{}.", i);
        const auto attention = layer + "self_attn.";
        auto& to = names.layers.emplace_back();
        to.inputNorm = linear(layer + "input_layernorm", false);
        to.query = linear(attention + "q_proj", parts.hasInputBias);
        to.key = linear(attention + "k_proj", parts.hasInputBias);
        to.value = linear(attention + "v_proj", parts.hasInputBias);
        if (parts.hasHeadNorms) {
            to.queryNorm = linear(attention + "q_norm", false);
            to.keyNorm = linear(attention + "k_norm", false);
        }
        to.attentionOutput = linear(attention + "o_proj", parts.hasOutputBias);
        to.middleNorm = linear(layer + "post_attention_layernorm", false);
        to.gate = linear(layer + "mlp.gate_proj", parts.hasInnerBias);
        to.up = linear(layer + "mlp.up_proj", parts.hasInnerBias);
        to.down = linear(layer + "mlp.down_proj", parts.hasInnerBias);
    }
    names.finalNorm = linear("model.norm", false);
    names.head = "lm_head.weight";
    names.harmless = {"*.self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq"};
    return names;
}

/// Llama 1 to 3 (Touvron et al. 2023) and what keeps its form, such as SmolLM2, as transformers'
/// LlamaForCausalLM computes it in evaluation.
DecoderPlan planLlama(ConfigReader& config)
{
    DecoderPlan plan;
    plan.shape = llamaShape(config, true, 0);
    const bool hasAttentionBias = config.flag("attention_bias", false);
    plan.names = llamaNames(plan.shape.layers, {.hasInputBias = hasAttentionBias,
                                                .hasOutputBias = hasAttentionBias,
                                                .hasInnerBias = config.flag("mlp_bias", false)});
    return plan;
}

} // namespace muster::model
