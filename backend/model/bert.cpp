// SPDX-License-Identifier: Apache-2.0
#include "model/config_reader_p.h"

#include <fmt/format.h>

namespace muster::model {
namespace {

LinearNames linear(const std::string& name)
{
    return {name + ".weight", name + ".bias"};
}

} // namespace

EncoderNames bertNames(const std::string& prefix, std::uint32_t layers)
{
    EncoderNames names;
    const auto embeddings = prefix + ".embeddings.";
    names.words = embeddings + "word_embeddings.weight";
    names.positions = embeddings + "position_embeddings.weight";
    names.segments = embeddings + "token_type_embeddings.weight";
    names.embeddingNorm = linear(embeddings + "LayerNorm");
    for (std::uint32_t i = 0; i < layers; ++i) {
        const auto layer = fmt::format("{}.encoder.layer.{}.", prefix, i);
        names.layers.push_back({.query = linear(layer + "attention.self.query"),
                                .key = linear(layer + "attention.self.key"),
                                .value = linear(layer + "attention.self.value"),
                                .attentionOutput = linear(layer + "attention.output.dense"),
                                .attentionNorm = linear(layer + "attention.output.LayerNorm"),
                                .up = linear(layer + "intermediate.dense"),
                                .down = linear(layer + "output.dense"),
                                .outputNorm = linear(layer + "output.LayerNorm")});
    }
    names.head = linear("qa_outputs");
    names.harmless = {embeddings + "position_ids", embeddings + "token_type_ids",
                      prefix + ".pooler.", "cls.", "lm_head."};
    return names;
}

EncoderShape bertShape(ConfigReader& config)
{
    EncoderShape shape;
    shape.vocabulary = config.count("vocab_size", {});
    shape.width = config.count("hidden_size", {});
    shape.embedding = shape.width;
    shape.layers = config.count("num_hidden_layers", {}, 1, mostLayers);
    shape.heads = config.count("num_attention_heads", {});
    shape.inner = config.count("intermediate_size", {});
    shape.positions = config.count("max_position_embeddings", {});
    shape.segments = config.count("type_vocab_size", {});
    shape.epsilon = config.positive("layer_norm_eps", 1e-12);
    shape.activation = config.activation("hidden_act");
    checkShape(config, shape);
    return shape;
}

/// BERT (Devlin et al. 2019), as transformers' BertForQuestionAnswering computes it in evaluation.
EncoderPlan planBert(ConfigReader& config)
{
    EncoderPlan plan;
    plan.shape = bertShape(config);
    plan.names = bertNames("bert", plan.shape.layers);
    return plan;
}

} // namespace muster::model
