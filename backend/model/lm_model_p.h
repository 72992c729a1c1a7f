// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/decoder_p.h"
#include "model/model.h"
#include "model/qa_model_p.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::model {

/// A causal language model that gives the losses of windows.
class LmModel final : public Model {
public:
    /// `decoders`: one for each thread, over the same weights.
    LmModel(const DecoderShape& shape, ModelIdentity identity,
            std::vector<std::unique_ptr<Decoder>> decoders, bool tokenLosses);

    Result<std::vector<wire::Output>> compute(const wire::Unit& unit) override;
    const ModelIdentity& identity() const override { return m_identity; }

private:
    [[nodiscard]] std::optional<std::string> problem(const wire::Unit& unit,
                                                     std::size_t place) const;
    Status run(std::span<const ScoredTokens> items, std::vector<TokenLoss>& losses);

    DecoderShape m_shape;
    ModelIdentity m_identity;
    std::vector<std::unique_ptr<Decoder>> m_decoders;
    bool m_tokenLosses;
};

/// As loadModel() for UnitKind::Lm, with a choice of the inner loops.
[[nodiscard]] Result<std::unique_ptr<LmModel>> loadLmModel(const ModelOptions& options,
                                                           Engine engine);

/// As runs and messages spell it, such as `int8-dynamic`.
[[nodiscard]] const char* nameOf(Precision precision);

} // namespace muster::model
