// SPDX-License-Identifier: Apache-2.0
#include "model/config_reader_p.h"

namespace muster::model {

/// ELECTRA's discriminator: BERT's blocks with embeddings of their own width, projected to the
/// model's when the two differ.
EncoderPlan planElectra(ConfigReader& config)
{
    EncoderPlan plan;
    plan.shape = bertShape(config);
    plan.shape.embedding = config.count("embedding_size", plan.shape.width);
    checkShape(config, plan.shape);
    plan.names = bertNames("electra", plan.shape.layers);
    if (plan.shape.embedding != plan.shape.width)
        plan.names.projection = {"electra.embeddings_project.weight",
                                 "electra.embeddings_project.bias"};
    plan.names.harmless.insert(
        plan.names.harmless.end(),
        {"discriminator_predictions.", "generator_predictions.", "generator_lm_head."});
    return plan;
}

} // namespace muster::model
