// SPDX-License-Identifier: Apache-2.0
#include "model/config_reader_p.h"

#include <fmt/format.h>

#include <array>

namespace muster::model {
namespace {

LinearNames linear(const std::string& name)
{
    return {name + ".weight", name + ".bias"};
}

} // namespace

/// GPT-2 (Radford et al. 2019), as transformers' GPT2LMHeadModel computes it in evaluation.
DecoderPlan planGpt2(ConfigReader& config)
{
    DecoderPlan plan;
    auto& shape = plan.shape;
    shape.vocabulary = config.count("vocab_size", {});
    shape.positions = config.count("n_positions", {}, 1, 1U << 20U);
    shape.width = config.count("n_embd", {}, 1, 1U << 16U);
    shape.layers = config.count("n_layer", {}, 1, mostLayers);
    shape.heads = config.count("n_head", {}, 1, 1U << 16U);
    shape.keyHeads = shape.heads;
    shape.inner = config.count("n_inner", 4 * shape.width, 1, 1U << 18U);
    shape.epsilon = config.positive("layer_norm_epsilon", 1e-5);
    shape.activation = config.activation("activation_function", "gelu_new");
    shape.norm = NormKind::Layer;
    shape.isGated = false;
    shape.isTied = config.flag("tie_word_embeddings", true);
    if (shape.width % shape.heads != 0)
        config.refuse("E-MODEL-021", fmt::format("{} attention heads do not divide the width {}",
                                                 shape.heads, shape.width));
    shape.headSize = shape.width / shape.heads;
    shape.windows.assign(shape.layers, 0);
    if (!config.flag("scale_attn_weights", true))
        config.refuse("E-MODEL-022", "scale_attn_weights = false is not computed by Muster");
    config.only("scale_attn_by_inverse_layer_idx");
    constexpr std::array<std::string_view, 8> harmless{"attn_pdrop",
                                                       "embd_pdrop",
                                                       "resid_pdrop",
                                                       "n_ctx",
                                                       "summary_first_dropout",
                                                       "summary_proj_to_labels",
                                                       "reorder_and_upcast_attn",
                                                       "transformers.js_config"};
    config.ignore(harmless);

    auto& names = plan.names;
    const std::string prefix = "transformer.";
    names.optionalPrefix = prefix;
    names.words = prefix + "wte.weight";
    names.positions = prefix + "wpe.weight";
    names.isFused = true;
    names.isTransposed = true;
    for (std::uint32_t i = 0; i < shape.layers; ++i) {
        const auto layer = fmt::format("{}h.{}.", prefix, i);
        names.layers.push_back({.inputNorm = linear(layer + "ln_1"),
                                .query = linear(layer + "attn.c_attn"),
                                .attentionOutput = linear(layer + "attn.c_proj"),
                                .middleNorm = linear(layer + "ln_2"),
                                .up = linear(layer + "mlp.c_fc"),
                                .down = linear(layer + "mlp.c_proj")});
    }
    names.finalNorm = linear(prefix + "ln_f");
    names.head = "lm_head.weight";
    // Buffers of the causal mask that older versions stored.
    names.harmless = {"*.attn.bias", "*.attn.masked_bias"};
    return plan;
}

} // namespace muster::model
