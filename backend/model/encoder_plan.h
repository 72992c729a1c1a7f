// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "base/result.h"
#include "model/kernels_p.h"
#include "wire/unit.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace muster::model {

/// How the position of a token is counted.
enum class Positions : std::uint8_t {
    FromZero,     ///< 0, 1, 2, …
    AfterPadding, ///< RoBERTa: pad + 1, pad + 2, …; a token that is the pad itself gets `pad`
};

/// What stands behind the layers.
enum class Head : std::uint8_t {
    Answers,     ///< start and end logit of every token
    TanhClasses, ///< classes of the first token, through a layer with tanh (BERT, RoBERTa)
    ReluClasses, ///< the same with ReLU (DistilBERT)
    GeluClasses, ///< the same with GELU (ELECTRA)
};

/// The mathematics of an encoder with its head, free of names and files.
struct EncoderShape {
    std::uint32_t vocabulary = 0;
    std::uint32_t positions = 0; ///< rows of the position table
    std::uint32_t segments = 0;  ///< rows of the token type table; 0: the model has none
    std::uint32_t embedding = 0; ///< width of the embeddings; differs from `width` in ELECTRA
    std::uint32_t width = 0;
    std::uint32_t inner = 0; ///< width of the feed-forward block
    std::uint32_t layers = 0;
    std::uint32_t heads = 0;
    double epsilon = 1e-12; ///< of the layer norms
    Activation activation = Activation::GeluErf;
    Positions counting = Positions::FromZero;
    std::int32_t padToken = 0;
    Head head = Head::Answers;
    std::uint32_t outputs = 2; ///< columns of the head: 2, or the number of classes

    bool operator==(const EncoderShape&) const = default;

    /// Tokens that an item may have.
    [[nodiscard]] std::uint32_t maxTokens() const
    {
        const auto used =
            counting == Positions::AfterPadding ? static_cast<std::uint32_t>(padToken) + 1 : 0U;
        return positions > used ? positions - used : 0;
    }
    /// Whether the head gives one row an item, and not one a token.
    [[nodiscard]] bool isClassifier() const { return head != Head::Answers; }
    [[nodiscard]] Hash128 digest() const;
};

/// Weight and bias of one linear layer, by their names in a checkpoint.
struct LinearNames {
    std::string weight;
    std::string bias;
};

struct LayerNames {
    LinearNames query, key, value, attentionOutput, attentionNorm, up, down, outputNorm;
};

/// Where a checkpoint keeps the parameters. An empty name: the architecture has no such parameter.
struct EncoderNames {
    std::string words, positions, segments;
    LinearNames embeddingNorm, projection;
    std::vector<LayerNames> layers;
    LinearNames pooler; ///< classification: the layer in front of the head
    LinearNames head;
    /// Beginnings of names that may stand in a checkpoint and take no part.
    std::vector<std::string> harmless;
};

/// A model as its config.json describes it.
struct EncoderPlan {
    std::string architecture; ///< such as `BertForQuestionAnswering`
    EncoderShape shape;
    EncoderNames names;
};

/// Reads config.json of a Hugging Face directory with a head for this kind of unit: question
/// answering or classification (BERT, RoBERTa and its namesakes, DistilBERT, ELECTRA).
///
/// Errors: NotFound (`E-MODEL-010`) no directory or no config.json; Invalid: `E-MODEL-020` no JSON
/// object; `E-MODEL-021` a key has a value outside its range; `E-MODEL-022` a key that changes the
/// mathematics has a value that Muster does not compute, or is not known at all; `E-MODEL-023` an
/// architecture that Muster does not compute.
[[nodiscard]] Result<EncoderPlan> readEncoderPlan(const std::filesystem::path& directory,
                                                  wire::UnitKind kind = wire::UnitKind::Qa);

} // namespace muster::model
