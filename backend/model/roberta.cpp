// SPDX-License-Identifier: Apache-2.0
#include "model/config_reader_p.h"

namespace muster::model {

/// RoBERTa, XLM-RoBERTa and CamemBERT: BERT's blocks; positions begin after the pad token's id
/// (transformers, create_position_ids_from_input_ids).
EncoderPlan planRoberta(ConfigReader& config)
{
    EncoderPlan plan;
    plan.shape = bertShape(config);
    plan.shape.counting = Positions::AfterPadding;
    plan.shape.padToken = static_cast<std::int32_t>(config.count("pad_token_id", 1, 0));
    checkShape(config, plan.shape);
    plan.names = bertNames("roberta", plan.shape.layers);
    return plan;
}

} // namespace muster::model
