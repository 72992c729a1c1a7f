// SPDX-License-Identifier: Apache-2.0
// What a language-model run reports.
#include "run/lm_job.h"

#include "base/sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace muster::run {

namespace {

report::Metric lossMetric(std::string key, std::string label, std::optional<double> value,
                          std::string method, std::uint64_t n, const std::string& reason)
{
    report::Metric made;
    made.key = std::move(key);
    made.label = std::move(label);
    made.value = value;
    made.decimals = 4;
    made.method = std::move(method);
    made.n = n;
    if (!value)
        made.reason = reason;
    return made;
}

} // namespace

LmLosses LmJob::losses() const
{
    LmLosses all;
    all.documents.resize(m_documents.size());
    for (std::size_t d = 0; d < m_documents.size(); ++d)
        all.documents[d].tokens = m_documents[d].tokens;
    ExactSum squares;
    bool hasLosses = true;
    for (std::size_t i = 0; i < m_windows.size(); ++i) {
        const Window& window = m_windows[i];
        const Scored scored = decode(SampleIndex(i));
        all.errors += scored.error.empty() ? 0U : 1U;
        if (!scored.isComplete) {
            if (!scored.error.empty() && all.failedWindows.size() < 20)
                all.failedWindows.emplace_back(i, scored.error);
            continue;
        }
        ++all.complete;
        all.greedyHits += scored.output.greedyHits;
        all.rows.push_back({.index = i,
                            .document = window.document,
                            .nllNats = scored.output.lossSum,
                            .tokens = scored.output.scored,
                            .hfDocWeight = window.weight});
        metrics::TextCounts& counts = all.documents[window.document];
        counts.words += window.words;
        counts.bytes += window.endByte - window.beginByte;
        counts.characters += window.characters;
        hasLosses = hasLosses && scored.output.losses.size() == scored.output.scored;
        for (const float loss : scored.output.losses)
            squares.add(static_cast<double>(loss) * static_cast<double>(loss));
    }
    if (hasLosses && !all.rows.empty())
        all.sumOfSquares = squares.result();
    return all;
}

metrics::LedgerOptions LmJob::ledgerOptions() const
{
    metrics::LedgerOptions options;
    options.batchSizes = {m_config.lm.batch};
    options.ranks = {2, 4, 8};
    if (m_config.cluster.ranks > 1 && std::find(options.ranks.begin(), options.ranks.end(),
                                                m_config.cluster.ranks) == options.ranks.end())
        options.ranks.push_back(m_config.cluster.ranks);
    return options;
}

Result<std::vector<metrics::LedgerMatch>> LmJob::explain(double seen, double tolerance) const
{
    const LmLosses all = losses();
    if (all.rows.empty())
        return fail(Error::Kind::Incomplete, "E-RUN-008",
                    "no window of the run has come back; there is nothing to explain.");
    return metrics::explainSeen(seen, tolerance, all.rows,
                                m_hasTexts ? std::span<const metrics::TextCounts>(all.documents)
                                           : std::span<const metrics::TextCounts>(),
                                ledgerOptions());
}

std::vector<MetricSoFar> LmJob::soFar() const
{
    MetricSoFar made{.key = "perplexity", .label = "PPL", .unit = "", .decimals = 3};
    if (m_tokensSoFar > 0)
        made.value = std::exp(m_lossSoFar / static_cast<double>(m_tokensSoFar));
    return {std::move(made)};
}

Status LmJob::summarize(report::RunResult& result,
                        const std::function<void(SampleIndex)>& visit) const
{
    for (std::size_t i = 0; i < m_windows.size(); ++i)
        visit(SampleIndex(i));
    const LmLosses all = losses();
    result.task = "lm";
    result.samplesDone = all.complete;
    result.hasTokenLosses = m_config.lm.tokenLosses == config::Switch::On;
    result.procedure = task::lmProtocolSentence(m_rules);

    const std::span<const metrics::TextCounts> counts =
        m_hasTexts ? std::span<const metrics::TextCounts>(all.documents)
                   : std::span<const metrics::TextCounts>();
    metrics::PerplexityOptions options;
    options.confidence = m_config.metrics.confidence;
    options.sumOfSquares = all.sumOfSquares;
    if (m_rules.protocol == task::LmProtocol::HfDoc)
        options.averaging = metrics::LossAveraging::HfDoc;
    const auto found = metrics::corpusPerplexity(all.rows, counts, options);
    const std::string protocol(task::lmProtocolName(m_rules.protocol));
    const std::string reason = found ? std::string() : found.error().message;
    std::optional<metrics::Perplexity> ppl;
    if (found)
        ppl = *found;
    else if (found.error().kind != Error::Kind::Undefined)
        return fail(found.error());
    const auto value = [&ppl](auto member) -> std::optional<double> {
        if (!ppl)
            return std::nullopt;
        return (*ppl).*member;
    };
    const std::uint64_t tokens = ppl ? ppl->tokens : 0;
    report::Metric main =
        lossMetric("perplexity", "PPL", value(&metrics::Perplexity::perplexity),
                   protocol + ", exp(sum of losses / scored tokens)", tokens, reason);
    if (m_rules.protocol == task::LmProtocol::HfDoc)
        main.method = protocol + ", windows weighted as its loop does (T-44)";
    main.isHeadline = true;
    if (ppl && ppl->interval) {
        main.standardError = ppl->interval->standardError;
        main.low = ppl->interval->low;
        main.high = ppl->interval->high;
        main.intervalMethod = ppl->intervalMethod;
    }
    result.metrics.push_back(std::move(main));
    report::Metric loss = lossMetric("loss", "loss", value(&metrics::Perplexity::meanNats),
                                     protocol + ", nats per scored token", tokens, reason);
    loss.decimals = 6;
    result.metrics.push_back(std::move(loss));
    const std::string noTexts =
        m_hasTexts ? reason : "the texts are too large to be kept in the run file";
    const auto add = [&](const char* key, const char* label, std::optional<double> one,
                         const char* method) {
        result.metrics.push_back(
            lossMetric(key, label, one, method, tokens,
                       noTexts.empty() ? "no word or byte was scored" : noTexts));
    };
    const auto optional = [&ppl](auto member) -> std::optional<double> {
        return ppl ? (*ppl).*member : std::optional<double>();
    };
    add("word_perplexity", "word PPL", optional(&metrics::Perplexity::wordPerplexity),
        "exp(sum of losses / words of the scored text), lm-evaluation-harness's words");
    add("byte_perplexity", "byte PPL", optional(&metrics::Perplexity::bytePerplexity),
        "exp(sum of losses / bytes of the scored text)");
    add("bits_per_byte", "bits per byte", optional(&metrics::Perplexity::bitsPerByte),
        "sum of losses / (bytes · ln 2)");
    add("bits_per_character", "bits per character",
        optional(&metrics::Perplexity::bitsPerCharacter), "sum of losses / (code points · ln 2)");
    if (tokens > 0)
        result.metrics.push_back(
            percentMetric("greedy_accuracy", "top-1",
                          100.0 * static_cast<double>(all.greedyHits) / static_cast<double>(tokens),
                          "scored tokens that were the most probable one", tokens));
    if (ppl && ppl->llamaCppError)
        result.metrics.push_back(lossMetric("llama_cpp_error", "llama.cpp's ±", ppl->llamaCppError,
                                            "tokens as if independent, so usually too small",
                                            tokens, {}));

    result.counts.emplace_back("scored_tokens", tokens);
    result.counts.emplace_back("tokens", m_totalTokens);
    result.counts.emplace_back("documents", m_documents.size());
    result.counts.emplace_back("document_bytes", m_documentBytes);
    result.counts.emplace_back("missing", m_windows.size() - all.complete - all.errors);
    result.counts.emplace_back("errors", all.errors);
    for (const auto& [window, text] : all.failedWindows)
        result.hints.push_back(fmt::format("window {} was not averaged in: {}", window, text));
    if (ppl && ppl->scoredFraction && *ppl->scoredFraction < 0.9)
        result.hints.push_back(
            fmt::format("{:.1f} % of the tokens are scored by {}; figures per word, byte and "
                        "character are over the scored text only",
                        100.0 * *ppl->scoredFraction, protocol));
    for (const metrics::LedgerEntry& entry :
         metrics::perplexityLedger(all.rows, counts, ledgerOptions()))
        if (!entry.isRight)
            result.ledger.push_back({entry.name, entry.value, entry.sentence});
    return {};
}

} // namespace muster::run
