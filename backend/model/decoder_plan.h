// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "base/result.h"
#include "model/encoder_plan.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace muster::model {

/// How rotary positions are stretched (transformers' modeling_rope_utils).
enum class RopeKind : std::uint8_t {
    None,   ///< learned positions instead
    Plain,  ///< θ^(−2i/d)
    Linear, ///< divided by `factor`
    Llama3, ///< long waves divided by `factor`, short ones kept, a ramp between
};

struct RopeShape {
    RopeKind kind = RopeKind::None;
    double theta = 10000.0;
    double factor = 1.0;
    double lowFrequency = 1.0;
    double highFrequency = 4.0;
    double originalPositions = 8192.0;

    bool operator==(const RopeShape&) const = default;
};

enum class NormKind : std::uint8_t { Layer, Rms };

/// The mathematics of a causal language model whose blocks normalise before they compute, free of
/// names and files.
struct DecoderShape {
    std::uint32_t vocabulary = 0;
    std::uint32_t positions = 0; ///< tokens that may be fed; rows of the table when it is learned
    std::uint32_t width = 0;
    std::uint32_t inner = 0;
    std::uint32_t layers = 0;
    std::uint32_t heads = 0;
    std::uint32_t keyHeads = 0; ///< divides heads
    std::uint32_t headSize = 0;
    double epsilon = 1e-5;
    NormKind norm = NormKind::Rms;
    Activation activation = Activation::Silu;
    bool isGated = true; ///< down(f(gate) · up), else down(f(up))
    bool isTied = false; ///< the head is the embedding table
    RopeShape rope;
    std::vector<std::uint32_t> windows; ///< of each layer: keys that a query sees, 0: all

    bool operator==(const DecoderShape&) const = default;

    [[nodiscard]] std::uint32_t queryWidth() const { return heads * headSize; }
    [[nodiscard]] std::uint32_t keyWidth() const { return keyHeads * headSize; }
    [[nodiscard]] Hash128 digest() const;
};

/// Names of one block; an empty name: the architecture has no such parameter.
struct DecoderLayerNames {
    LinearNames inputNorm{};
    LinearNames query{}, key{}, value{}; ///< with isFused all three in `query`
    LinearNames queryNorm{}, keyNorm{};
    LinearNames attentionOutput{};
    LinearNames middleNorm{};
    LinearNames gate{}, up{}, down{};
};

struct DecoderNames {
    std::string words, positions;
    std::vector<DecoderLayerNames> layers;
    LinearNames finalNorm;
    std::string head;
    bool isFused = false;
    bool isTransposed = false;  ///< linear weights are [in, out]
    std::string optionalPrefix; ///< that a checkpoint may leave out
    std::vector<std::string> harmless;
};

struct DecoderPlan {
    std::string architecture; ///< such as `LlamaForCausalLM`
    DecoderShape shape;
    DecoderNames names;
};

/// Reads config.json of a Hugging Face directory with a causal language model (GPT-2, Llama,
/// Mistral, Qwen2, Qwen3). Errors: as readEncoderPlan().
[[nodiscard]] Result<DecoderPlan> readDecoderPlan(const std::filesystem::path& directory);

/// Inverse frequencies of the rotary positions [headSize / 2], in float32 as transformers forms
/// them.
[[nodiscard]] std::vector<float> ropeFrequencies(const RopeShape& rope, std::uint32_t headSize);

} // namespace muster::model
