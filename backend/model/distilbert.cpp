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

/// DistilBERT: BERT's blocks under other names, without token types. Its configuration has no
/// epsilon: 1e-12 everywhere.
EncoderPlan planDistilbert(ConfigReader& config)
{
    EncoderPlan plan;
    auto& shape = plan.shape;
    shape.vocabulary = config.count("vocab_size", {});
    shape.width = config.count("dim", {});
    shape.embedding = shape.width;
    shape.layers = config.count("n_layers", {}, 1, mostLayers);
    shape.heads = config.count("n_heads", {});
    shape.inner = config.count("hidden_dim", {});
    shape.positions = config.count("max_position_embeddings", {});
    shape.activation = config.activation("activation");
    checkShape(config, shape);
    // The position table stands in the checkpoint, whether it was learned or made of sines.
    constexpr std::array<std::string_view, 6> neutral{"dropout",      "attention_dropout",
                                                      "qa_dropout",   "seq_classif_dropout",
                                                      "tie_weights_", "sinusoidal_pos_embds"};
    config.ignore(neutral);

    auto& names = plan.names;
    names.words = "distilbert.embeddings.word_embeddings.weight";
    names.positions = "distilbert.embeddings.position_embeddings.weight";
    names.embeddingNorm = linear("distilbert.embeddings.LayerNorm");
    for (std::uint32_t i = 0; i < shape.layers; ++i) {
        const auto layer = fmt::format("distilbert.transformer.layer.{}.", i);
        names.layers.push_back({.query = linear(layer + "attention.q_lin"),
                                .key = linear(layer + "attention.k_lin"),
                                .value = linear(layer + "attention.v_lin"),
                                .attentionOutput = linear(layer + "attention.out_lin"),
                                .attentionNorm = linear(layer + "sa_layer_norm"),
                                .up = linear(layer + "ffn.lin1"),
                                .down = linear(layer + "ffn.lin2"),
                                .outputNorm = linear(layer + "output_layer_norm")});
    }
    names.head = linear("qa_outputs");
    names.harmless = {"distilbert.embeddings.position_ids", "vocab_"};
    return plan;
}

} // namespace muster::model
