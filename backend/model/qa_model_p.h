// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/encoder_p.h"
#include "model/model.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::model {

/// Which inner loops are used. Automatic is the rule of a run and a pure function of the processor;
/// the others are for tests and benchmarks.
enum class Engine : std::uint8_t {
    Automatic,
    Plain, ///< the portable kernels
    Own,   ///< the best of Muster's own kernels
    Torch, ///< LibTorch with oneDNN's prepacked linear layers
};

/// An encoder with a question answering head.
class QaModel final : public Model {
public:
    /// `encoders`: one for each thread, over the same weights.
    QaModel(const EncoderShape& shape, ModelIdentity identity,
            std::vector<std::unique_ptr<Encoder>> encoders, std::uint32_t nBest, Ties ties);

    Result<std::vector<wire::Output>> compute(const wire::Unit& unit) override;
    const ModelIdentity& identity() const override { return m_identity; }

    /// Start and end logits of every token of the unit, [T, 2]; zeros for items that cannot be
    /// computed.
    [[nodiscard]] Result<std::vector<float>> logits(const wire::Unit& unit);

private:
    [[nodiscard]] std::optional<std::string> problem(const wire::Unit& unit,
                                                     std::size_t place) const;
    Status run(const PackedTokens& packed, float* logits);

    EncoderShape m_shape;
    ModelIdentity m_identity;
    std::vector<std::unique_ptr<Encoder>> m_encoders;
    std::uint32_t m_nBest;
    Ties m_ties;
    Buffer m_logits;
};

/// The `count` largest of the start and end logits [tokens, 2] in descending order, equal ones by
/// the tie rule (semantics.md 3.2, T-35), and those of position 0.
[[nodiscard]] wire::QaOutput largestLogits(std::span<const float> logits, std::uint32_t count,
                                           Ties ties);

/// As loadModel(), with a choice of the inner loops.
[[nodiscard]] Result<std::unique_ptr<QaModel>> loadQaModel(const ModelOptions& options,
                                                           Engine engine);

/// A model without weights for runs that measure the controller: outputs are looked up in a table
/// of 256 rows by the item's hash.
[[nodiscard]] std::unique_ptr<Model> makeSyntheticModel(const ModelOptions& options);

} // namespace muster::model
