// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "data/table_reader.h"
#include "run/job.h"
#include "wire/output.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace muster::run {

/// The classes of a model as its config.json names them.
struct ModelLabels {
    std::vector<std::string> names; ///< [classes]
    bool isMultiLabel = false;      ///< problem_type multi_label_classification
};

/// Reads id2label, num_labels and problem_type. Without names they are LABEL_0, LABEL_1, …, two of
/// them, as transformers has it. Errors: NotFound, Invalid `E-RUN-060` (labels that are no
/// numbering from 0, or a regression head).
[[nodiscard]] Result<ModelLabels> readModelLabels(const std::filesystem::path& model);

/// Class of each label as the data write it: its name in the model, or its number (from `offset`
/// on) when all labels of the data are whole numbers. Error: Invalid `E-RUN-061` with the row of
/// the first label that the model does not have.
[[nodiscard]] Result<std::vector<std::vector<std::uint32_t>>>
classesOf(const data::Table& table, const ModelLabels& labels, std::uint64_t offset);

/// How many tokens of two texts stay when both together may have `most`: Hugging Face's
/// "longest_first", which takes from the longer one.
[[nodiscard]] std::pair<std::size_t, std::size_t>
longestFirst(std::size_t first, std::size_t second, std::size_t most);

/// A classification run: texts (or pairs), one item each, logits of the classes.
class ClassJob final : public Job {
public:
    /// An empty one, for load(); see prepared().
    explicit ClassJob(const config::RunConfig& config) : Job(config) {}
    /// Reads, tokenises and plans. Errors as Job::prepare(), readModelLabels(), classesOf().
    [[nodiscard]] static Result<std::unique_ptr<Job>> prepared(const config::RunConfig& config);

    [[nodiscard]] wire::UnitKind kind() const override { return wire::UnitKind::Classification; }
    [[nodiscard]] std::vector<MetricSoFar> soFar() const override;
    [[nodiscard]] std::string_view sampleNoun() const override { return "rows"; }
    [[nodiscard]] Status summarize(report::RunResult& result,
                                   const std::function<void(SampleIndex)>& visit) const override;
    [[nodiscard]] Status
    forEachSample(const std::function<void(const report::SampleRow&)>& visit) const override;
    [[nodiscard]] Status forEachPrediction(
        const std::function<void(SampleIndex, store::PredictionRecord&&)>& visit) const override;

private:
    struct Scored {
        report::ClassFields fields;
        bool isComplete = false;
        std::string error;
    };

    [[nodiscard]] Status savePlan(store::PlanWriter& writer) const override;
    void describePlan(nlohmann::ordered_json& detail) const override;
    [[nodiscard]] Status loadPlan(store::RunFile& file, const nlohmann::json& detail) override;
    void sampleCompleted(SampleIndex sample) override;
    [[nodiscard]] Status read();
    [[nodiscard]] Status tokenize();
    [[nodiscard]] Status finishPreparation();
    [[nodiscard]] Scored decode(SampleIndex sample) const;
    [[nodiscard]] Result<std::optional<std::uint32_t>> positiveClass() const;
    [[nodiscard]] Status addSingleLabel(report::RunResult& result) const;
    [[nodiscard]] Status addMultiLabel(report::RunResult& result) const;
    [[nodiscard]] std::string namesOf(const std::vector<std::uint32_t>& classes) const;

    data::Table m_table;
    ModelLabels m_labels;
    std::vector<std::vector<std::uint32_t>> m_references; ///< [N] right classes of each row
    std::vector<std::uint32_t> m_itemTokens;              ///< [N]
    std::uint64_t m_truncated = 0;                        ///< rows that were cut
    std::uint64_t m_rightSoFar = 0;
    std::uint64_t m_scoredSoFar = 0;
};

} // namespace muster::run
