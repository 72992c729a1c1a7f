// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::model {

/// What follows a matrix product of the feed-forward block, element by element.
enum class Activation : std::uint8_t {
    None,
    GeluErf,  ///< x/2 · (1 + erf(x/√2)); error of erf at most 1.5e-7 (Abramowitz, Stegun 7.1.26)
    GeluTanh, ///< x/2 · (1 + tanh(√(2/π)(x + 0.044715 x³))), called gelu_new
    Relu,
    Silu, ///< x / (1 + e^−x)
};

/// Whether results are rounded to bfloat16 (to nearest, ties to even) before they are stored as
/// float32. A product of two bfloat16 numbers is exact in float32, so float32 arithmetic on rounded
/// operands is what a bfloat16 unit with float32 sums computes.
enum class Rounding : std::uint8_t { None, Bfloat16 };

/// One call of a linear layer: output[r, c] = f(bias[c] + Σₖ input[r, k] · weight[c, k] +
/// residual[r, c]), k in rising order for every element, whatever `rows` is: the bits of a row do
/// not depend on the other rows.
struct LinearCall {
    const float* input = nullptr; ///< [rows, depth], rows `inputStride` floats apart
    std::size_t inputStride = 0;
    std::size_t rows = 0;
    std::size_t depth = 0;
    std::size_t columns = 0;
    const float* panels = nullptr;   ///< weights as packPanels() lays them out
    const float* bias = nullptr;     ///< [columns rounded up to whole panels]
    const float* residual = nullptr; ///< as output, or null
    float* output = nullptr;         ///< [rows, columns]; not the input, not the residual
    std::size_t outputStride = 0;
    Activation activation = Activation::None;
    Rounding rounding = Rounding::None;
};

/// Self-attention of one sequence: for each head softmax(q kᵀ · scale) v.
struct AttentionCall {
    const float* qkv = nullptr; ///< [tokens, 3 · heads · headSize]: all q, then all k, then all v
    std::size_t tokens = 0;
    std::size_t heads = 0;
    std::size_t headSize = 0;
    float scale = 1.0F;
    float* output = nullptr;  ///< [tokens, heads · headSize]
    float* scratch = nullptr; ///< attentionScratch() floats
    Rounding rounding = Rounding::None;
};

/// Normalises rows to mean 0 and variance 1 (biased), then scales and shifts.
struct LayerNormCall {
    const float* input = nullptr; ///< [rows, width]
    std::size_t rows = 0;
    std::size_t width = 0;
    const float* gain = nullptr;
    const float* shift = nullptr;
    float epsilon = 0.0F;
    float* output = nullptr; ///< [rows, width]; may be the input
    Rounding rounding = Rounding::None;
};

struct DecoderKernels;

/// The inner loops, compiled once for each instruction set. Which set is used is part of the kernel
/// line of the model's identity, because sums may differ in their last bits between them.
struct KernelSet {
    const char* name = nullptr;
    std::size_t panel = 0; ///< columns of a packed panel
    std::size_t tile = 0;  ///< rows computed together
    void (*linear)(const LinearCall&) = nullptr;
    void (*attention)(const AttentionCall&) = nullptr;
    void (*layerNorm)(const LayerNormCall&) = nullptr;
    /// to[i] += from[i]
    void (*add)(float* to, const float* from, std::size_t count) = nullptr;
    void (*round)(float* values, std::size_t count) = nullptr; ///< to bfloat16
    void (*activate)(float* values, std::size_t count, Activation activation) = nullptr;
    void (*fromHalf)(float* to, const std::uint16_t* from, std::size_t count) = nullptr;
    void (*fromBfloat16)(float* to, const std::uint16_t* from, std::size_t count) = nullptr;
    const DecoderKernels* decoder = nullptr; ///< see decoder_kernels_p.h
};

/// Floats that AttentionCall::scratch needs.
inline std::size_t attentionScratch(const KernelSet& kernels, std::size_t tokens,
                                    std::size_t headSize)
{
    const auto padded = (tokens + kernels.panel - 1) / kernels.panel * kernels.panel;
    const auto width = (headSize + kernels.panel - 1) / kernels.panel * kernels.panel;
    return padded * headSize + tokens * width + kernels.tile * padded + kernels.tile * width;
}

/// Floats of packed weights [columns, depth].
inline std::size_t panelFloats(const KernelSet& kernels, std::size_t columns, std::size_t depth)
{
    return (columns + kernels.panel - 1) / kernels.panel * kernels.panel * depth;
}

/// Lays weights [columns, depth] out as panels [columns / panel][depth][panel], filled up with 0.
inline void packPanels(const KernelSet& kernels, const float* weight, std::size_t columns,
                       std::size_t depth, float* panels)
{
    const auto width = kernels.panel;
    for (std::size_t first = 0; first < columns; first += width) {
        float* to = panels + first * depth;
        for (std::size_t lane = 0; lane < width; ++lane) {
            const float* from = first + lane < columns ? weight + (first + lane) * depth : nullptr;
            for (std::size_t k = 0; k < depth; ++k)
                to[k * width + lane] = from != nullptr ? from[k] : 0.0F;
        }
    }
}

/// AVX2 with FMA and F16C; null on other processor families.
const KernelSet* avx2Kernels();
/// Plain C++, for every processor.
const KernelSet* plainKernels();
/// The best set that this processor runs.
const KernelSet& bestKernels();

} // namespace muster::model
