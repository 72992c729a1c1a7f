// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/encoder_runner_p.h"
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
    EncoderRunner m_runner;
    ModelIdentity m_identity;
    std::uint32_t m_nBest;
    Ties m_ties;
};

/// An encoder with a classification head.
class ClassModel final : public Model {
public:
    /// `encoders`: one for each thread, over the same weights.
    ClassModel(const EncoderShape& shape, ModelIdentity identity,
               std::vector<std::unique_ptr<Encoder>> encoders)
        : m_runner(shape, std::move(encoders)), m_identity(std::move(identity))
    {
    }

    Result<std::vector<wire::Output>> compute(const wire::Unit& unit) override;
    const ModelIdentity& identity() const override { return m_identity; }

private:
    EncoderRunner m_runner;
    ModelIdentity m_identity;
};

/// The `count` largest of the start and end logits [tokens, 2] in descending order, equal ones by
/// the tie rule (semantics.md 3.2, T-35), and those of position 0.
[[nodiscard]] wire::QaOutput largestLogits(std::span<const float> logits, std::uint32_t count,
                                           Ties ties);

/// As loadModel(), with a choice of the inner loops.
[[nodiscard]] Result<std::unique_ptr<QaModel>> loadQaModel(const ModelOptions& options,
                                                           Engine engine);

/// As loadModel(), for classification, with a choice of the inner loops.
[[nodiscard]] Result<std::unique_ptr<ClassModel>> loadClassModel(const ModelOptions& options,
                                                                 Engine engine);

/// A model without weights for runs that measure the controller: outputs are looked up in a table
/// of 256 rows by the item's hash.
[[nodiscard]] std::unique_ptr<Model> makeSyntheticModel(const ModelOptions& options);

} // namespace muster::model
