// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/kernels_p.h"

#include <cstddef>
#include <cstdint>

namespace muster::model {

/// How the elements of packed weights are kept. All of them are turned into float32 in the
/// first-level cache, panel by panel, before they are multiplied.
enum class PanelType : std::uint8_t {
    Float32,
    Bfloat16,
    Int8, ///< weight = q · scale, one float32 scale for each output column
    /// As Int8, and the inputs are rounded to 8 bits too, one scale for each row: products and sums
    /// are exact integers. [columns / panel][⌈depth / 2⌉][panel][2] elements.
    Int8Pairs,
    Int4, ///< weight = q · scale + least, q from 0 to 15, both bfloat16, for each group of inputs
};

/// Packed weights: [columns / panel][depth][panel] elements.
///
/// Int4 keeps columns c and c + panel/2 of a panel in the low and high half of a byte, and its
/// scales as [columns / panel][groups][2][panel] bfloat16: the scales, then the least values.
struct Panels {
    PanelType type = PanelType::Float32;
    const std::byte* elements = nullptr;
    const std::byte* scales = nullptr;
    std::size_t depth = 0;
    std::size_t group = 0; ///< Int4: inputs that share a scale
};

/// What follows a product.
enum class Gate : std::uint8_t {
    None,
    /// A panel holds panel/2 columns of the gate and then the same panel/2 of the up layer; the
    /// output has half as many columns: f(gate) · up.
    Pairs,
};

/// output[r, c] = f(Σₖ input[r, k] · weight[c, k] + bias[c]) + residual[r, c], k in rising order
/// for every element whatever the number of rows: the bits of a row depend on that row only.
struct ProductCall {
    const float* input = nullptr; ///< [rows, depth], rows `inputStride` floats apart
    std::size_t inputStride = 0;
    std::size_t rows = 0;
    Panels weights{};
    std::size_t firstPanel = 0;
    std::size_t panels = 0;          ///< how many panels are multiplied
    const float* bias = nullptr;     ///< [panels · panel], or null
    const float* residual = nullptr; ///< as output (may be it), or null
    float* output = nullptr;         ///< [rows, columns]; not the input
    std::size_t outputStride = 0;
    std::size_t columns = 0; ///< of the output; columns of the last panel beyond it are left out
    Activation activation = Activation::None;
    Gate gate = Gate::None;
    Rounding rounding = Rounding::None; ///< of the output
    float* scratch = nullptr;           ///< productScratch() floats
};

/// Causal self-attention of one sequence: for each head softmax(q kᵀ · scale) v over the keys
/// max(0, i − window + 1) … i of query i. Query heads h · heads / keyHeads … share a key head.
struct CausalAttentionCall {
    const float* queries = nullptr; ///< [tokens, heads · headSize], rows `stride` floats apart
    const float* keys = nullptr;    ///< [tokens, keyHeads · headSize]
    const float* values = nullptr;  ///< as keys
    std::size_t stride = 0;
    std::size_t tokens = 0;
    std::size_t heads = 0;
    std::size_t keyHeads = 0;
    std::size_t headSize = 0;
    std::size_t window = 0; ///< keys that a query sees, itself included; 0: all before it
    float scale = 1.0F;
    float* output = nullptr; ///< [tokens, heads · headSize]
    std::size_t outputStride = 0;
    float* scratch = nullptr; ///< causalScratch() floats
    Rounding rounding = Rounding::None;
};

/// y = gain · x / √(mean(x²) + epsilon), row by row (Zhang, Sennrich 2019).
struct RmsNormCall {
    const float* input = nullptr; ///< [rows, width], rows `inputStride` floats apart
    std::size_t inputStride = 0;
    std::size_t rows = 0;
    std::size_t width = 0;
    const float* gain = nullptr;
    float epsilon = 0.0F;
    float* output = nullptr; ///< may be the input
    std::size_t outputStride = 0;
    Rounding rounding = Rounding::None;
};

/// The inner loops of decoders for one instruction set.
struct DecoderKernels {
    std::size_t sums = 0;          ///< floats of ProductCall::scratch that do not depend on depth
    std::size_t rows = 0;          ///< of a block that product() computes together
    std::size_t attentionRows = 0; ///< queries that are computed together
    void (*product)(const ProductCall&) = nullptr;
    void (*attention)(const CausalAttentionCall&) = nullptr;
    void (*rmsNorm)(const RmsNormCall&) = nullptr;
    /// Rotary positions of one token: (x₁, x₂) ← (x₁ cos − x₂ sin, x₂ cos + x₁ sin), where x₁ and
    /// x₂ are the halves of each head (Su et al. 2021, in the order of transformers).
    void (*rotate)(float* values, std::size_t heads, std::size_t headSize, const float* cosine,
                   const float* sine) = nullptr;
    /// The largest of `count` numbers and Σ exp(x − largest).
    void (*expSum)(const float* values, std::size_t count, float& largest, float& sum) = nullptr;
};

/// Floats that ProductCall::scratch needs.
inline std::size_t productScratch(const DecoderKernels& decoder, const Panels& weights)
{
    const auto inputs = decoder.rows * ((weights.depth + 1) / 2 + 1);
    return decoder.sums + (weights.type == PanelType::Int8Pairs ? inputs : 0);
}

/// Floats that CausalAttentionCall::scratch needs.
inline std::size_t causalScratch(const KernelSet& kernels, const DecoderKernels& decoder,
                                 std::size_t tokens, std::size_t headSize)
{
    const auto padded = (tokens + kernels.panel - 1) / kernels.panel * kernels.panel;
    const auto width = (headSize + kernels.panel - 1) / kernels.panel * kernels.panel;
    return padded * headSize + padded * width + decoder.attentionRows * (padded + width);
}

} // namespace muster::model
