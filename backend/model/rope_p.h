// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/config_reader_p.h"
#include "model/safetensors.h"

namespace muster::model {

/// Rotary positions of a configuration; refuses kinds that Muster does not compute. `positions`:
/// max_position_embeddings, the original length where none is given.
[[nodiscard]] RopeShape readRope(ConfigReader& config, std::uint32_t positions);

} // namespace muster::model
