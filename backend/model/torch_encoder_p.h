// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/encoder_p.h"

#include <memory>
#include <string>

namespace muster::model {

/// The encoder in LibTorch operators with oneDNN's prepacked linear layers: the choice on
/// processors with AVX-512, where oneDNN reaches the arithmetic limit. Attention runs over groups
/// of equally long neighbours, so the bits of an item may depend on its unit, which the plan fixes.
/// Error: Internal (`E-MODEL-090`).
[[nodiscard]] Result<std::unique_ptr<Encoder>> makeTorchEncoder(const EncoderShape& shape,
                                                                const EncoderTensors& tensors,
                                                                Rounding rounding,
                                                                std::uint32_t threads);

/// Version, CPU capability and set-up of LibTorch, in a few words.
[[nodiscard]] std::string torchVersion();

/// Whether the automatic rule takes LibTorch: AVX-512 (F, BW, DQ, VL) is there.
[[nodiscard]] bool prefersTorch();

} // namespace muster::model
