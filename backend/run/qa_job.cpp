// SPDX-License-Identifier: Apache-2.0
#include "run/qa_job.h"

#include "base/clock.h"
#include "data/squad_reader.h"
#include "run/input_builder.h"
#include "task/qa_windows.h"
#include "tokenizer/tokenizer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::run {

namespace {

std::string answersJson(const data::Sample& sample)
{
    nlohmann::ordered_json answers = nlohmann::ordered_json::array();
    for (const data::Answer& answer : sample.answers)
        answers.push_back({{"text", answer.text}, {"answer_start", answer.start}});
    return answers.dump();
}

Result<std::vector<data::Answer>> answersFromJson(const std::string& text)
{
    const auto damaged = [] {
        return fail(Error::Kind::Integrity, "E-RUN-002",
                    "the reference answers of a sample in the run file cannot be read.");
    };
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_array())
        return damaged();
    std::vector<data::Answer> answers;
    for (const auto& entry : json) {
        if (!entry.is_object() || !entry.contains("text") || !entry["text"].is_string() ||
            !entry.contains("answer_start") || !entry["answer_start"].is_number_integer())
            return damaged();
        answers.push_back(
            {entry["text"].get<std::string>(), entry["answer_start"].get<std::int64_t>()});
    }
    return answers;
}

std::string_view withoutLeadingSpace(std::string_view text)
{
    // Python's str.lstrip(); beyond ASCII no tokenizer of this task keeps white space anyway.
    const std::size_t from = text.find_first_not_of(" \t\n\r\v\f");
    return from == std::string_view::npos ? std::string_view() : text.substr(from);
}

} // namespace

Result<std::unique_ptr<Job>> QaJob::prepared(const config::RunConfig& config)
{
    auto job = std::make_unique<QaJob>(config);
    const std::int64_t start = monotonicNs();
    if (const auto samples = syntheticSamples(config.data)) {
        if (const Status read = job->readSynthetic(*samples); !read)
            return fail(read.error());
    } else {
        data::ReadOptions options;
        options.limit = config.data.limit;
        options.subset = config.data.subset;
        auto dataset = data::readSquad(config.data.files, options);
        if (!dataset)
            return fail(dataset.error());
        job->m_dataset = std::move(*dataset);
        job->m_times.readMs = millisecondsSince(start);
        const std::int64_t tokenizing = monotonicNs();
        if (const Status tokens = job->tokenize(); !tokens)
            return fail(tokens.error());
        job->m_times.tokenizeMs = millisecondsSince(tokenizing);
    }
    const std::int64_t planning = monotonicNs();
    if (const Status finished = job->finishPreparation(); !finished)
        return fail(finished.error());
    job->m_times.planMs = millisecondsSince(planning);
    return job;
}

Status QaJob::readSynthetic(std::uint64_t samples)
{
    // Ten words of context, one question token that differs; no tokenizer is involved.
    constexpr std::uint32_t words = 8;
    std::string context;
    ContextTokens tokens;
    for (std::uint32_t w = 0; w < words; ++w) {
        if (w > 0)
            context += ' ';
        tokens.begin.push_back(static_cast<std::uint32_t>(context.size()));
        context += fmt::format("w{}", w);
        tokens.end.push_back(static_cast<std::uint32_t>(context.size()));
    }
    m_dataset.contexts = {context};
    m_dataset.titles = {"synthetic"};
    m_contextTokens = {std::move(tokens)};
    const std::uint64_t kept = std::min(samples, m_config.data.limit.value_or(samples));
    m_dataset.originalCount = samples;
    m_dataset.samples.resize(static_cast<std::size_t>(kept));
    m_items = std::make_shared<plan::ItemTable>(wire::UnitKind::Qa);
    m_items->reserve(static_cast<std::size_t>(kept), static_cast<std::size_t>(kept) * (words + 4));
    UnorderedDigest digest;
    std::vector<std::int32_t> ids(words + 4);
    for (std::uint64_t i = 0; i < kept; ++i) {
        data::Sample& sample = m_dataset.samples[static_cast<std::size_t>(i)];
        sample.index = SampleIndex(i);
        sample.original = SampleIndex(i);
        sample.id = fmt::format("s{}", i);
        sample.question = fmt::format("q{}", i % 1000);
        sample.answers = {{fmt::format("w{}", i % words), -1}};
        sample.hash = data::sampleHash(sample, context);
        digest.add(i, sample.hash);
        ids[0] = 101;
        ids[1] = static_cast<std::int32_t>(1000 + i % 20000);
        ids[2] = 102;
        for (std::uint32_t w = 0; w < words; ++w)
            ids[3 + w] = static_cast<std::int32_t>(2000 + (i + w) % 20000);
        ids[3 + words] = 102;
        m_items->append(SampleIndex(i), ids, {});
        m_qaItems.push_back({i, 0, words, 3, words + 4});
    }
    m_dataset.digest = digest.result();
    m_vocabulary = 30000;
    m_digests.tokenizer = hash128(std::string_view("synthetic"));
    return {};
}

Status QaJob::tokenize()
{
    auto loaded = tokenizer::loadTokenizer(m_config.model.path);
    if (!loaded)
        return fail(loaded.error());
    const tokenizer::Tokenizer& tok = **loaded;
    m_digests.tokenizer = tok.digest();
    m_vocabulary = static_cast<std::uint32_t>(tok.vocabularySize());
    const tokenizer::PairTemplate& pair = tok.pairTemplate();

    std::vector<std::vector<std::int32_t>> contextIds(m_dataset.contexts.size());
    m_contextTokens.resize(m_dataset.contexts.size());
    tokenizer::Encoding encoding;
    std::size_t contextTokenCount = 0;
    for (std::size_t c = 0; c < m_dataset.contexts.size(); ++c) {
        tok.encode(m_dataset.contexts[c], encoding);
        contextIds[c] = encoding.ids;
        m_contextTokens[c] = {encoding.begin, encoding.end};
        contextTokenCount += encoding.size();
    }

    m_items = std::make_shared<plan::ItemTable>(wire::UnitKind::Qa);
    m_items->reserve(m_dataset.samples.size(),
                     m_dataset.contexts.empty()
                         ? 0
                         : m_dataset.samples.size() *
                               (contextTokenCount / m_dataset.contexts.size() + 24));
    InputBuilder input;
    for (const data::Sample& sample : m_dataset.samples) {
        tok.encode(withoutLeadingSpace(sample.question), encoding);
        const std::vector<std::int32_t>& context = contextIds[sample.context];
        const auto windows = task::planWindows(
            static_cast<std::uint32_t>(encoding.size()), static_cast<std::uint32_t>(context.size()),
            task::WindowRules{.maxSeqLength = m_config.qa.maxSeqLength,
                              .stride = m_config.qa.docStride,
                              .specialTokens = static_cast<std::uint32_t>(pair.addedTokens())});
        if (!windows)
            return fail(windows.error().during(fmt::format("question {}", sample.id)));
        for (const task::Window& window : *windows) {
            input.clear();
            input.put(pair.prefix, pair.prefixSegments);
            input.put(encoding.ids, pair.questionSegment);
            input.put(pair.middle, pair.middleSegments);
            QaItem item;
            item.sample = sample.index.value;
            item.firstContextToken = window.start;
            item.contextTokens = window.count;
            item.contextAt = static_cast<std::uint32_t>(input.ids.size());
            input.put(std::span(context).subspan(window.start, window.count), pair.contextSegment);
            input.put(pair.suffix, pair.suffixSegments);
            item.tokens = static_cast<std::uint32_t>(input.ids.size());
            m_items->append(sample.index, input.ids,
                            pair.usesSegments ? std::span<const std::uint8_t>(input.segments)
                                              : std::span<const std::uint8_t>());
            m_qaItems.push_back(item);
        }
    }
    return {};
}

Status QaJob::finishPreparation()
{
    m_digests.data = m_dataset.digest;
    finishPlan();
    indexWindows();
    return makeScorer();
}

void QaJob::indexWindows()
{
    m_itemSamples.clear();
    m_itemSamples.reserve(m_qaItems.size());
    m_longestItem = 0;
    for (const QaItem& item : m_qaItems) {
        m_itemSamples.push_back(item.sample);
        m_longestItem = std::max(m_longestItem, item.tokens);
    }
    m_warnings = m_dataset.warnings;
    indexItems(m_dataset.samples.size());
}

Status QaJob::makeScorer()
{
    switch (m_config.qa.rules) {
    case config::SquadRules::V1:
        m_version = metrics::SquadVersion::V1;
        break;
    case config::SquadRules::V2:
        m_version = metrics::SquadVersion::V2;
        break;
    case config::SquadRules::Auto:
        m_version =
            m_dataset.hasUnanswerable ? metrics::SquadVersion::V2 : metrics::SquadVersion::V1;
        break;
    }
    const auto normalizer = metrics::normalizerByName(m_config.qa.normalizer);
    if (!normalizer)
        return fail(normalizer.error());
    m_scorer =
        std::make_unique<metrics::AnswerScorer>(m_version, *normalizer, m_config.qa.abstentions);
    std::vector<std::string_view> golds;
    for (const data::Sample& sample : m_dataset.samples) {
        golds.clear();
        if (!sample.isImpossible)
            for (const data::Answer& answer : sample.answers)
                golds.push_back(answer.text);
        if (const Status added = m_scorer->addQuestion(sample.id, golds); !added)
            return fail(added.error());
    }
    return {};
}

std::string_view QaJob::normalizer() const
{
    return metrics::normalizerName(m_scorer->normalizer());
}

Status QaJob::savePlan(store::PlanWriter& writer) const
{
    for (std::size_t c = 0; c < m_dataset.contexts.size(); ++c) {
        store::ContextRecord record;
        record.id = m_dataset.titles.size() > c ? m_dataset.titles[c] : std::string();
        record.text = m_dataset.contexts[c];
        record.tokenBegin.assign(m_contextTokens[c].begin.begin(), m_contextTokens[c].begin.end());
        record.tokenEnd.assign(m_contextTokens[c].end.begin(), m_contextTokens[c].end.end());
        if (const Status added = writer.addContext(record); !added)
            return added;
    }
    for (const data::Sample& sample : m_dataset.samples) {
        store::SampleRecord record;
        record.id = sample.id;
        record.hash = sample.hash;
        record.context = sample.context;
        record.question = sample.question;
        record.answersJson = answersJson(sample);
        record.isImpossible = sample.isImpossible;
        record.source = sample.original.value;
        if (const Status added = writer.addSample(record); !added)
            return added;
    }
    for (std::size_t i = 0; i < m_qaItems.size(); ++i) {
        const QaItem& item = m_qaItems[i];
        store::ItemRecord record;
        record.sample = SampleIndex(item.sample);
        record.firstContextToken = item.firstContextToken;
        record.contextTokens = item.contextTokens;
        record.contextAt = item.contextAt;
        record.tokens = item.tokens;
        record.hash = m_itemHashes[i];
        if (const Status added = writer.addItem(record); !added)
            return added;
    }
    return {};
}

void QaJob::describePlan(nlohmann::ordered_json& detail) const
{
    detail["has_unanswerable"] = m_dataset.hasUnanswerable;
    detail["data_version"] = m_dataset.version;
    detail["samples_in_files"] = m_dataset.originalCount;
}

Status QaJob::loadPlan(store::RunFile& file, const nlohmann::json& detail)
{
    m_dataset.digest = m_digests.data;
    m_dataset.hasUnanswerable = detail.value("has_unanswerable", false);
    m_dataset.version = detail.value("data_version", std::string());
    m_dataset.originalCount = detail.value("samples_in_files", std::uint64_t{0});
    m_dataset.warnings = m_warnings;

    std::optional<Error> failure;
    const auto giveUp = [&](Error error) {
        failure = std::move(error);
        return false;
    };
    auto visited = file.forEachContext([&](std::uint64_t, store::ContextRecord&& record) {
        ContextTokens tokens;
        for (std::size_t t = 0; t < record.tokenBegin.size(); ++t) {
            if (record.tokenEnd[t] > record.text.size() ||
                record.tokenBegin[t] > record.tokenEnd[t])
                return giveUp(damage(file, "a token lies outside its context"));
            tokens.begin.push_back(static_cast<std::uint32_t>(record.tokenBegin[t]));
            tokens.end.push_back(static_cast<std::uint32_t>(record.tokenEnd[t]));
        }
        m_contextTokens.push_back(std::move(tokens));
        m_dataset.contexts.push_back(std::move(record.text));
        m_dataset.titles.push_back(std::move(record.id));
        return true;
    });
    if (!visited)
        return fail(visited.error());
    if (failure)
        return fail(*failure);
    UnorderedDigest digest;
    visited = file.forEachSample([&](SampleIndex index, store::SampleRecord&& record) {
        data::Sample sample;
        sample.index = index;
        sample.original = SampleIndex(record.source);
        sample.id = std::move(record.id);
        sample.question = std::move(record.question);
        sample.isImpossible = record.isImpossible;
        sample.hash = record.hash;
        if (record.context >= m_dataset.contexts.size())
            return giveUp(damage(file, "a sample names a context that is not there"));
        sample.context = static_cast<std::uint32_t>(record.context);
        auto answers = answersFromJson(record.answersJson);
        if (!answers)
            return giveUp(answers.error());
        sample.answers = std::move(*answers);
        if (data::sampleHash(sample, m_dataset.contexts[sample.context]) != sample.hash)
            return giveUp(damage(file, "a sample does not have the hash that it was stored with"));
        digest.add(index.value, sample.hash);
        m_dataset.samples.push_back(std::move(sample));
        return true;
    });
    if (!visited)
        return fail(visited.error());
    if (failure)
        return fail(*failure);
    if (digest.result() != m_digests.data)
        return fail(damage(file, "the samples do not have the data digest of the plan"));
    visited = file.forEachItem([&](ItemIndex, const store::ItemRecord& record) {
        QaItem item;
        item.sample = record.sample.value;
        item.firstContextToken = record.firstContextToken;
        item.contextTokens = record.contextTokens;
        item.contextAt = record.contextAt;
        item.tokens = record.tokens;
        const bool isOrdered = m_qaItems.empty() || m_qaItems.back().sample <= item.sample;
        if (!isOrdered || item.sample >= m_dataset.samples.size())
            return giveUp(damage(file, "an item names a sample that is not there"));
        const auto context = m_dataset.samples[static_cast<std::size_t>(item.sample)].context;
        const std::size_t tokens = m_contextTokens[context].begin.size();
        if (item.firstContextToken > tokens ||
            item.contextTokens > tokens - item.firstContextToken || item.contextAt > item.tokens ||
            item.contextTokens > item.tokens - item.contextAt)
            return giveUp(damage(file, "the window of an item lies outside its context"));
        m_qaItems.push_back(item);
        m_itemHashes.push_back(record.hash);
        return true;
    });
    if (!visited)
        return fail(visited.error());
    if (failure)
        return fail(*failure);
    indexWindows();
    return makeScorer();
}

void QaJob::sampleCompleted(SampleIndex sample)
{
    m_running.add(decode(sample).score);
}

QaSampleResult QaJob::decode(SampleIndex index) const
{
    const auto s = static_cast<std::size_t>(index.value);
    const data::Sample& sample = m_dataset.samples[s];
    const ContextTokens& tokens = m_contextTokens[sample.context];
    QaSampleResult result;
    const auto [first, last] = itemsOf(index);
    std::vector<wire::QaOutput> outputs;
    std::vector<task::FeatureView> features;
    outputs.reserve(static_cast<std::size_t>(last - first));
    for (std::uint64_t i = first; i < last; ++i) {
        const QaItem& item = m_qaItems[static_cast<std::size_t>(i)];
        if (const std::string* error = itemError(i)) {
            result.error = *error;
            break;
        }
        if (!has(ItemIndex(i)))
            break;
        auto output = wire::decodeQa(payload(ItemIndex(i)), item.tokens);
        if (!output) {
            result.error = output.error().text();
            break;
        }
        outputs.push_back(std::move(*output));
    }
    result.isComplete = outputs.size() == last - first;
    if (!result.isComplete) {
        result.score = m_scorer->score(s, std::nullopt);
        return result;
    }
    for (std::uint64_t i = first; i < last; ++i) {
        const QaItem& item = m_qaItems[static_cast<std::size_t>(i)];
        task::FeatureView view;
        view.output = &outputs[static_cast<std::size_t>(i - first)];
        view.contextStart = item.contextAt;
        view.contextTokens = item.contextTokens;
        view.begin = std::span(tokens.begin).subspan(item.firstContextToken, item.contextTokens);
        view.end = std::span(tokens.end).subspan(item.firstContextToken, item.contextTokens);
        features.push_back(view);
    }
    task::QaRules rules;
    rules.nBest = m_config.qa.nBest;
    rules.maxAnswerLength = m_config.qa.maxAnswerLength;
    rules.ties = m_config.qa.ties;
    rules.noAnswer =
        m_version == metrics::SquadVersion::V2 ? task::NoAnswer::Allowed : task::NoAnswer::Never;
    rules.nullThreshold = m_config.qa.nullThreshold;
    result.prediction = task::decodeAnswer(m_dataset.contexts[sample.context], features, rules);
    result.score = m_scorer->score(s, std::string_view(result.prediction.text));
    return result;
}

Result<QaSummary>
QaJob::score(const std::function<void(const data::Sample&, const QaSampleResult&)>& visit) const
{
    QaSummary summary;
    summary.version = m_version;
    summary.samples = samples();
    m_scores.clear();
    m_scores.reserve(samples());
    std::vector<metrics::NoAnswerScore> noAnswer;
    for (const data::Sample& sample : m_dataset.samples) {
        const QaSampleResult result = decode(sample.index);
        m_scores.push_back(result.score);
        summary.complete += result.isComplete ? 1U : 0U;
        summary.errors += result.error.empty() ? 0U : 1U;
        if (result.isComplete) {
            summary.noValidSpan += result.prediction.noValidSpan ? 1U : 0U;
            if (m_version == metrics::SquadVersion::V2 && result.prediction.nullOdds)
                noAnswer.push_back(
                    {static_cast<std::size_t>(sample.index.value), *result.prediction.nullOdds});
        }
        if (visit)
            visit(sample, result);
    }
    Result<metrics::SquadTotals> totals = m_version == metrics::SquadVersion::V1
                                              ? metrics::squadV1Totals(m_scores)
                                              : metrics::squadV2Totals(m_scores, noAnswer);
    if (!totals)
        return fail(totals.error());
    summary.totals = std::move(*totals);
    return summary;
}

} // namespace muster::run
