// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "base/result.h"
#include "wire/output.h"
#include "wire/unit.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace muster::model {

/// How weights are kept and multiplied. Norms, soft-max, losses and sums are float32 or wider in
/// all of them. QA models take Float32 and Bfloat16; Float16 is for devices.
enum class Precision {
    Float32,
    Bfloat16, ///< weights and inputs of matrix products rounded to bfloat16, float32 sums
    Float16,
    Int8, ///< LM: weights in 8 bits, one scale for each output row; float32 arithmetic
    Int4, ///< LM: weights in 4 bits, scale and offset for each group of inputs; float32 arithmetic
    Int8Dynamic, ///< LM: as Int8, and inputs of matrix products in 8 bits, one scale for each row
};
/// Order of equal logits among the k largest (semantics.md 3.2, T-35).
enum class Ties { Hf, Bert };

/// How the ranks of one node may share the read-only weights.
struct SharedWeights {
    std::uint32_t localRank = 0; ///< 0 prepares, the others wait and map
    std::uint32_t localRanks = 1;
    std::string key; ///< names the shared segment; unique per run, launch and node
};

struct ModelOptions {
    std::filesystem::path path{}; ///< Hugging Face directory, or `synthetic`
    wire::UnitKind kind = wire::UnitKind::Qa;
    Precision precision = Precision::Float32;
    std::uint32_t threads = 1;
    std::uint32_t nBest = 20; ///< QA: how many start and end logits are returned
    Ties ties = Ties::Hf;
    bool tokenLosses = false;      ///< LM: outputs carry the loss of each target
    std::uint32_t groupSize = 128; ///< Int4: inputs that share a scale: 32, 64, 128 or 256
    SharedWeights shared{};
};

/// What identifies the numbers that a model gives; part of the run's fingerprint.
struct ModelIdentity {
    std::string architecture; ///< such as `BertForQuestionAnswering`
    Hash128
        digest; ///< over config.json's mathematics and every tensor's name, type, shape and bytes
    std::string kernels; ///< CPU capability, threads, dtype, library versions, in one line
    std::uint64_t parameters = 0;
    std::uint64_t weightBytes = 0;
    std::uint32_t maxPositions = 0;
    std::uint32_t vocabulary = 0;
};

/// A unit in, outputs out. Lives on one thread. The outputs of a unit depend on the unit, the
/// weights and the kernel set only: never on what was computed before.
class Model {
public:
    virtual ~Model() = default;
    Model() = default;
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;

    /// One output for each item, in the unit's order, hashes formed from the tokens computed on.
    /// An item that cannot be computed (token id outside the vocabulary, longer than the model's
    /// positions, non-finite logits) has errorFlag and a text as payload. Error: Internal when the
    /// device or library fails as a whole.
    [[nodiscard]] virtual Result<std::vector<wire::Output>> compute(const wire::Unit& unit) = 0;
    [[nodiscard]] virtual const ModelIdentity& identity() const = 0;
};

/// Reads a Hugging Face directory (or makes the synthetic look-up model) ready to compute.
/// Errors: NotFound, Invalid (`E-MODEL-…`) naming file, tensor and key.
[[nodiscard]] Result<std::unique_ptr<Model>> loadModel(const ModelOptions& options);

} // namespace muster::model
