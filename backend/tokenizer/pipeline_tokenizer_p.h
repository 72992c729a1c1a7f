// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/splitting_p.h"
#include "tokenizer/staged_tokenizer_p.h"
#include "tokenizer/word_model_p.h"

#include <variant>

namespace muster::tokenizer {

/// The pre-tokenizer Metaspace: spaces become a mark, a mark is put in front, and words begin at
/// marks.
struct MetaspaceStep {
    enum class Prefix : std::uint8_t { always, first, never };
    std::string mark = "\u2581";
    Prefix prefix = Prefix::always;
    bool splits = true;
};

using PreTokenizerStep = std::variant<SplitStep, MetaspaceStep>;

/// Everything that a tokenizer whose model sees characters is made of.
struct PipelineParts {
    Description description;
    TextNormalizer normalizer;
    bool replacesSpaces = false; ///< the normalizer turns each space into U+2581
    std::vector<PreTokenizerStep> steps;
    std::unique_ptr<const WordModel> model;
};

/// A tokenizer without byte-level alphabet: steps that cut the text, then BPE or Unigram for each
/// word. Llama 2, T5 and SentencePiece models.
class PipelineTokenizer final : public StagedTokenizer {
public:
    explicit PipelineTokenizer(PipelineParts parts);

    [[nodiscard]] std::string kind() const override { return m_model->kind(); }
    [[nodiscard]] std::optional<std::int32_t> idOf(std::string_view token) const override;

protected:
    void encodePart(const Part& part, EncodeSpace& space, TokenSink& sink) const override;

private:
    using Range = SplitStep::Range;
    void apply(const MetaspaceStep& step, bool opensText, NormalizedText& text,
               std::vector<Range>& pieces) const;

    std::vector<PreTokenizerStep> m_steps;
    std::unique_ptr<const WordModel> m_model;
    CharClasses m_classes;
};

} // namespace muster::tokenizer
