// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "metrics/perplexity.h"
#include "run/job.h"
#include "task/lm_windows.h"
#include "wire/output.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace muster::run {

/// The losses of a run as the metrics take them.
struct LmLosses {
    std::vector<metrics::LossRow> rows;         ///< of the windows that are there, in index order
    std::vector<metrics::TextCounts> documents; ///< of the scored texts, by document
    std::uint64_t complete = 0;
    std::uint64_t errors = 0;           ///< windows that the model could not score
    std::uint64_t greedyHits = 0;       ///< targets that were the most probable token
    std::optional<double> sumOfSquares; ///< over the token losses, when they were kept
    std::vector<std::pair<std::uint64_t, std::string>> failedWindows; ///< the first 20
};

/// The perplexity of a language model over documents. A sample of such a run is one window, because
/// windows are what is lost, found and compared; each window is one item.
class LmJob final : public Job {
public:
    /// An empty one, for load(); see prepared().
    explicit LmJob(const config::RunConfig& config) : Job(config) {}
    /// Reads, tokenises and cuts. Errors as Job::prepare(), and Invalid `E-RUN-005` (nothing to
    /// score), `E-RUN-006` (windows longer than the model's positions).
    [[nodiscard]] static Result<std::unique_ptr<Job>> prepared(const config::RunConfig& config);

    /// One window: tokens [begin, begin + tokens) of a document, and the text that its targets
    /// cover.
    struct Window {
        std::uint32_t document = 0;
        std::uint32_t tokens = 0;     ///< of the document, the last target included
        std::uint32_t scoredFrom = 0; ///< first target, from `begin`
        std::uint32_t itemTokens = 0; ///< with a prefix token
        std::uint64_t begin = 0;
        std::uint64_t weight = 0; ///< task::hfDocWeight()
        std::uint64_t beginByte = 0;
        std::uint64_t endByte = 0;
        std::uint32_t words = 0; ///< that begin in the text
        std::uint32_t characters = 0;

        [[nodiscard]] std::uint32_t scored() const { return tokens - scoredFrom; }
        bool operator==(const Window&) const = default;
    };
    [[nodiscard]] const std::vector<Window>& windows() const { return m_windows; }
    [[nodiscard]] LmLosses losses() const;
    /// Which procedures over the losses of this run give the number, the nearest first. Error:
    /// Incomplete `E-RUN-008` when no window has come back.
    [[nodiscard]] Result<std::vector<metrics::LedgerMatch>> explain(double seen,
                                                                    double tolerance) const;

    [[nodiscard]] wire::UnitKind kind() const override { return wire::UnitKind::Lm; }
    [[nodiscard]] std::vector<MetricSoFar> soFar() const override;
    [[nodiscard]] std::string_view sampleNoun() const override { return "windows"; }
    [[nodiscard]] Status summarize(report::RunResult& result,
                                   const std::function<void(SampleIndex)>& visit) const override;
    [[nodiscard]] Status
    forEachSample(const std::function<void(const report::SampleRow&)>& visit) const override;
    [[nodiscard]] Status forEachPrediction(
        const std::function<void(SampleIndex, store::PredictionRecord&&)>& visit) const override;

private:
    struct DocumentInfo {
        std::string name;
        std::string text;                      ///< empty when the texts are too large to be kept
        std::vector<std::uint32_t> tokenBegin; ///< bytes [tokens]; empty without the text
        std::vector<std::uint32_t> tokenEnd;
        Hash128 hash;
        std::uint64_t tokens = 0;
    };
    /// Text and tokens, special ones included; begin and end are bytes of the text [tokens].
    struct Stream {
        std::string text;
        std::vector<std::int32_t> ids;
        std::vector<std::uint32_t> begin;
        std::vector<std::uint32_t> end;
    };
    struct Scored {
        wire::LmOutput output;
        bool isComplete = false;
        std::string error;
    };

    [[nodiscard]] Status savePlan(store::PlanWriter& writer) const override;
    void describePlan(nlohmann::ordered_json& detail) const override;
    [[nodiscard]] Status loadPlan(store::RunFile& file, const nlohmann::json& detail) override;
    void sampleCompleted(SampleIndex sample) override;
    [[nodiscard]] Status readSynthetic(std::uint64_t windows);
    [[nodiscard]] Status read();
    /// Cuts one text into windows, at most so many in all; takes the stream's content.
    [[nodiscard]] Status addWindows(std::string name, const Hash128& hash, Stream& stream,
                                    std::uint64_t most);
    [[nodiscard]] Status finishPreparation();
    [[nodiscard]] Scored decode(SampleIndex sample) const;
    [[nodiscard]] metrics::LedgerOptions ledgerOptions() const;
    [[nodiscard]] std::string windowId(const Window& window) const;
    [[nodiscard]] Hash128 windowHash(const Window& window) const;

    task::LmRules m_rules;
    std::vector<DocumentInfo> m_documents;
    std::vector<Window> m_windows;
    std::uint64_t m_documentBytes = 0;
    std::uint64_t m_totalTokens = 0; ///< of all documents, special ones included
    bool m_hasTexts = true;
    double m_lossSoFar = 0.0;
    std::uint64_t m_tokensSoFar = 0;
};

} // namespace muster::run
