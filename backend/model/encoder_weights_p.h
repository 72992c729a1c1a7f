// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "base/result.h"
#include "model/checkpoint.h"
#include "model/encoder_plan.h"
#include "model/kernels_p.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::model {

struct LinearTensors {
    TensorView weight;
    TensorView bias;
};

struct LayerTensors {
    LinearTensors query, key, value, attentionOutput, attentionNorm, up, down, outputNorm;
};

/// The tensors of a checkpoint that take part, each with the shape that the plan asks for.
struct EncoderTensors {
    TensorView words, positions, segments;
    LinearTensors embeddingNorm, projection;
    std::vector<LayerTensors> layers;
    LinearTensors pooler, head;
    Hash128 digest; ///< over name, type, shape and bytes of each
    std::uint64_t parameters = 0;
    std::uint64_t bytes = 0;
};

/// Finds every parameter. Errors: `E-MODEL-030` lists missing, unknown and mis-shaped tensors;
/// `E-MODEL-031` an element type other than F32, F16 and BF16.
[[nodiscard]] Result<EncoderTensors> matchTensors(const EncoderPlan& plan,
                                                  const Checkpoint& checkpoint);

/// Elements first .. first + to.size() of the tensor as float32 (exact for F16 and BF16).
void readFloats(const KernelSet& kernels, const TensorView& tensor, std::size_t first,
                std::span<float> to);

/// Where the parameters lie in the image, in bytes; each at a multiple of 64.
struct LinearPlace {
    std::size_t panels = 0;
    std::size_t bias = 0;
};

struct NormPlace {
    std::size_t gain = 0;
    std::size_t shift = 0;
};

struct LayerPlaces {
    LinearPlace attentionInput; ///< query, key and value as one layer of three times the width
    LinearPlace attentionOutput;
    NormPlace attentionNorm;
    LinearPlace up;
    LinearPlace down;
    NormPlace outputNorm;
};

/// All parameters in one block of memory, as the kernels read them, so that the ranks of a node can
/// share it. A pure function of shape, kernels and the element type of the word table.
struct ImageLayout {
    DType wordType = DType::F32;
    std::size_t words = 0;     ///< [vocabulary, embedding] in the checkpoint's type
    std::size_t positions = 0; ///< float32
    std::size_t segments = 0;
    NormPlace embeddingNorm;
    LinearPlace projection;
    std::vector<LayerPlaces> layers;
    LinearPlace pooler;
    LinearPlace head;
    std::size_t size = 0;
};

[[nodiscard]] ImageLayout layOut(const EncoderShape& shape, const KernelSet& kernels,
                                 DType wordType);

/// Converts, rounds and packs the tensors into `image` (layout.size bytes, zeroed, 64-aligned).
void fillImage(const EncoderShape& shape, const KernelSet& kernels, Rounding rounding,
               const EncoderTensors& tensors, const ImageLayout& layout, std::byte* image);

} // namespace muster::model
