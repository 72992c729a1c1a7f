// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "model/checkpoint.h"
#include "model/decoder_kernels_p.h"
#include "model/decoder_plan.h"
#include "model/encoder_weights_p.h"
#include "model/model.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace muster::model {

/// One matrix of a decoder as the checkpoint holds it: parts with the same input, one after the
/// other. The bias of a part may be empty.
struct MatrixTensors {
    std::vector<LinearTensors> parts;
    std::vector<std::uint32_t> rows; ///< outputs of each part
    std::uint32_t depth = 0;
    bool isTransposed = false; ///< [in, out] instead of [out, in]
    bool isGated = false;      ///< two parts of equal size: gate and up

    [[nodiscard]] bool hasBias() const
    {
        return !parts.empty() && !parts.front().bias.shape.empty();
    }
};

struct DecoderLayerTensors {
    LinearTensors inputNorm, queryNorm, keyNorm, middleNorm;
    MatrixTensors attentionInput, attentionOutput, up, down;
};

/// The tensors of a checkpoint that take part, each with the shape that the plan asks for.
struct DecoderTensors {
    TensorView words, positions;
    std::vector<DecoderLayerTensors> layers;
    LinearTensors finalNorm;
    MatrixTensors head; ///< the words when the plan ties them
    Hash128 digest;
    std::uint64_t parameters = 0;
    std::uint64_t bytes = 0;
};

/// Finds every parameter. Errors: `E-MODEL-030`, `E-MODEL-031`.
[[nodiscard]] Result<DecoderTensors> matchDecoder(const DecoderPlan& plan,
                                                  const Checkpoint& checkpoint);

/// How a precision keeps weights. The head, which is the embedding table too when the two are tied,
/// stays in 8 bits when the other matrices have 4.
struct WeightForm {
    PanelType matrices = PanelType::Float32;
    PanelType head = PanelType::Float32;
    std::uint32_t group = 0;
    Rounding rounding = Rounding::None; ///< of weights, and of the inputs of products
};

[[nodiscard]] WeightForm weightForm(Precision precision, std::uint32_t group);

inline constexpr std::size_t nowhere = std::numeric_limits<std::size_t>::max();

/// Where a packed matrix lies in the image.
struct MatrixPlace {
    PanelType type = PanelType::Float32;
    std::size_t elements = 0;
    std::size_t scales = nowhere;
    std::size_t bias = nowhere;
    std::size_t depth = 0;
    std::size_t panels = 0;
    std::size_t columns = 0; ///< of the output
    std::size_t group = 0;
    bool isGated = false;
};

struct DecoderLayerPlaces {
    NormPlace inputNorm, middleNorm;
    std::size_t queryNorm = nowhere;
    std::size_t keyNorm = nowhere;
    MatrixPlace attentionInput; ///< queries, keys, values
    MatrixPlace attentionOutput;
    MatrixPlace up; ///< gate and up in pairs when gated
    MatrixPlace down;
};

/// All parameters in one block of memory, as the kernels read them, so that the ranks of a node can
/// share it. A pure function of plan, kernels, form and the tensors' types.
struct DecoderLayout {
    DType wordType = DType::F32;
    std::size_t words = nowhere; ///< in the checkpoint's type; nowhere: read from the head
    std::size_t positions = nowhere;
    std::vector<DecoderLayerPlaces> layers;
    NormPlace finalNorm;
    MatrixPlace head;
    std::size_t size = 0;
};

[[nodiscard]] DecoderLayout layOut(const DecoderShape& shape, const DecoderTensors& tensors,
                                   const KernelSet& kernels, const WeightForm& form);

/// Converts, rounds or quantises, and packs the tensors into `image` (layout.size bytes, zeroed,
/// 64-aligned).
void fillImage(const DecoderTensors& tensors, const KernelSet& kernels, const WeightForm& form,
               const DecoderLayout& layout, std::byte* image);

[[nodiscard]] Panels panelsAt(const MatrixPlace& place, const std::byte* image);

/// Row `row` of packed weights, as the kernels multiply it [depth].
void readPanelRow(const Panels& panels, std::size_t panelWidth, std::size_t row, float* to);

} // namespace muster::model
