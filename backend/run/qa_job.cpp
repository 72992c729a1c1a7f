// SPDX-License-Identifier: Apache-2.0
#include "run/qa_job.h"

#include "base/clock.h"
#include "base/file.h"
#include "config/digest.h"
#include "config/settings.h"
#include "data/squad_reader.h"
#include "task/qa_windows.h"
#include "tokenizer/tokenizer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

namespace muster::run {

namespace {

constexpr std::string_view syntheticPrefix = "synthetic:";

/// Number of samples when the data are `synthetic:N`.
std::optional<std::uint64_t> syntheticSamples(const config::DataConfig& data)
{
    if (data.files.size() != 1)
        return std::nullopt;
    const std::string name = data.files.front().filename().string();
    if (!name.starts_with(syntheticPrefix))
        return std::nullopt;
    std::uint64_t samples = 0;
    const char* end = name.data() + name.size();
    const auto [at, error] = std::from_chars(name.data() + syntheticPrefix.size(), end, samples);
    if (error != std::errc() || at != end)
        return std::nullopt;
    return samples;
}

/// `hidden_size` of the model's config.json, for the cost model alone; 384 when it cannot be read.
std::uint32_t hiddenSize(const std::filesystem::path& model)
{
    constexpr std::uint32_t usual = 384;
    const auto text = readFile(model / "config.json", std::size_t{1} << 20U);
    if (!text)
        return usual;
    const auto json = nlohmann::json::parse(*text, nullptr, false);
    for (const char* key : {"hidden_size", "dim", "n_embd"})
        if (json.is_object() && json.contains(key) && json[key].is_number_unsigned()) {
            const auto value = json[key].get<std::uint64_t>();
            if (value > 0 && value <= (std::uint64_t{1} << 20U))
                return static_cast<std::uint32_t>(value);
        }
    return usual;
}

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

double millisecondsSince(std::int64_t startNs)
{
    return static_cast<double>(monotonicNs() - startNs) / 1e6;
}

} // namespace

QaJob::QaJob(const config::RunConfig& config) : m_config(config)
{
    m_digests.evaluation = config::evaluationDigest(config);
}

Result<std::unique_ptr<QaJob>> QaJob::prepare(const config::RunConfig& config)
{
    std::unique_ptr<QaJob> job(new QaJob(config));
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
    std::vector<std::int32_t> ids;
    std::vector<std::uint8_t> segments;
    const auto put = [&](std::span<const std::int32_t> tokens, std::int32_t segment) {
        ids.insert(ids.end(), tokens.begin(), tokens.end());
        segments.resize(ids.size(), static_cast<std::uint8_t>(segment));
    };
    const auto putSpecial = [&](const std::vector<std::int32_t>& tokens,
                                const std::vector<std::int32_t>& segment) {
        for (std::size_t i = 0; i < tokens.size(); ++i)
            put(std::span(&tokens[i], 1), segment[i]);
    };
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
            ids.clear();
            segments.clear();
            putSpecial(pair.prefix, pair.prefixSegments);
            put(encoding.ids, pair.questionSegment);
            putSpecial(pair.middle, pair.middleSegments);
            QaItem item;
            item.sample = sample.index.value;
            item.firstContextToken = window.start;
            item.contextTokens = window.count;
            item.contextAt = static_cast<std::uint32_t>(ids.size());
            put(std::span(context).subspan(window.start, window.count), pair.contextSegment);
            putSpecial(pair.suffix, pair.suffixSegments);
            item.tokens = static_cast<std::uint32_t>(ids.size());
            m_items->append(sample.index, ids,
                            pair.usesSegments ? std::span<const std::uint8_t>(segments)
                                              : std::span<const std::uint8_t>());
            m_qaItems.push_back(item);
        }
    }
    return {};
}

Status QaJob::finishPreparation()
{
    plan::PackRules rules;
    rules.unitTokens = m_config.plan.unitTokens;
    rules.unitItems = m_config.plan.unitItems;
    rules.cost = plan::CostModel::transformer(hiddenSize(m_config.model.path));
    m_units = std::make_shared<const plan::UnitTable>(plan::UnitTable::pack(*m_items, rules));
    m_digests.data = m_dataset.digest;
    m_digests.plan = plan::planDigest(*m_items, *m_units);
    const auto hashes = m_items->hashes();
    m_itemHashes.assign(hashes.begin(), hashes.end());
    indexItems();
    return makeScorer();
}

void QaJob::indexItems()
{
    m_firstItem.assign(m_dataset.samples.size() + 1, 0);
    for (const QaItem& item : m_qaItems)
        ++m_firstItem[static_cast<std::size_t>(item.sample) + 1];
    for (std::size_t i = 1; i < m_firstItem.size(); ++i)
        m_firstItem[i] += m_firstItem[i - 1];
    m_missingItems.resize(m_dataset.samples.size());
    for (std::size_t i = 0; i < m_missingItems.size(); ++i)
        m_missingItems[i] = static_cast<std::uint32_t>(m_firstItem[i + 1] - m_firstItem[i]);
    m_payloads = Payloads(m_qaItems.size());
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

std::uint32_t QaJob::longestItem() const
{
    std::uint32_t longest = 0;
    for (const QaItem& item : m_qaItems)
        longest = std::max(longest, item.tokens);
    return longest;
}

std::pair<std::uint64_t, std::uint64_t> QaJob::itemsOf(SampleIndex sample) const
{
    const auto i = static_cast<std::size_t>(sample.value);
    return {m_firstItem[i], m_firstItem[i + 1]};
}

Status QaJob::save(store::RunFile& file, const std::vector<RankId>& owners) const
{
    auto writer = file.planWriter();
    if (!writer)
        return fail(writer.error());
    for (std::size_t c = 0; c < m_dataset.contexts.size(); ++c) {
        store::ContextRecord record;
        record.id = m_dataset.titles.size() > c ? m_dataset.titles[c] : std::string();
        record.text = m_dataset.contexts[c];
        record.tokenBegin.assign(m_contextTokens[c].begin.begin(), m_contextTokens[c].begin.end());
        record.tokenEnd.assign(m_contextTokens[c].end.begin(), m_contextTokens[c].end.end());
        if (const Status added = writer->addContext(record); !added)
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
        if (const Status added = writer->addSample(record); !added)
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
        if (const Status added = writer->addItem(record); !added)
            return added;
    }
    for (std::uint64_t u = 0; u < m_units->size(); ++u) {
        const auto items = m_units->items(UnitId(u));
        store::UnitRecord record;
        record.items.assign(items.begin(), items.end());
        record.cost = m_units->cost(UnitId(u));
        record.tokens = m_units->tokens(UnitId(u));
        if (const Status added = writer->addUnit(record); !added)
            return added;
    }
    store::PlanRecord record;
    record.digest = m_digests.plan;
    if (const config::Setting* schedule = config::findSetting("plan.schedule"))
        if (const auto value = schedule->get(m_config);
            const auto* name = std::get_if<std::string>(&value))
            record.schedule = *name;
    for (const RankId owner : owners)
        record.owners.push_back(owner.value);
    nlohmann::ordered_json detail;
    detail["data_digest"] = m_digests.data.hex();
    detail["tokenizer_digest"] = m_digests.tokenizer.hex();
    detail["evaluation_digest"] = m_digests.evaluation.hex();
    detail["has_unanswerable"] = m_dataset.hasUnanswerable;
    detail["data_version"] = m_dataset.version;
    detail["samples_in_files"] = m_dataset.originalCount;
    detail["read_ms"] = m_times.readMs;
    detail["tokenize_ms"] = m_times.tokenizeMs;
    detail["plan_ms"] = m_times.planMs;
    for (const data::Warning& warning : m_dataset.warnings) {
        nlohmann::ordered_json entry;
        entry["code"] = warning.code;
        entry["sentence"] = warning.sentence;
        entry["count"] = warning.count;
        entry["first"] = nlohmann::ordered_json::array();
        for (const SampleIndex index : warning.first20)
            entry["first"].push_back(index.value);
        detail["data_warnings"].push_back(std::move(entry));
    }
    record.detailJson = detail.dump();
    return writer->finish(std::move(record));
}

Result<std::unique_ptr<QaJob>> QaJob::load(const config::RunConfig& config, store::RunFile& file)
{
    const auto damage = [&](const std::string& what) {
        return Error{
            Error::Kind::Integrity, "E-RUN-002",
            fmt::format("{}: {}. The run file cannot be used.", file.path().string(), what)};
    };
    const auto damaged = [&](const std::string& what) { return fail(damage(what)); };
    std::unique_ptr<QaJob> job(new QaJob(config));
    auto plan = file.plan();
    if (!plan)
        return fail(plan.error());
    if (!*plan)
        return fail(Error::Kind::Incomplete, "E-RUN-003",
                    fmt::format("{} has no plan: the run ended before it was made. Start it again.",
                                file.path().string()));
    const auto detail = nlohmann::json::parse((*plan)->detailJson, nullptr, false);
    if (!detail.is_object())
        return damaged("the plan's details are not JSON");
    const auto hash = [&](const char* key, Hash128& into) {
        return detail.contains(key) && detail[key].is_string() &&
               Hash128::parse(detail[key].get<std::string>(), into);
    };
    Hash128 evaluation;
    if (!hash("data_digest", job->m_digests.data) ||
        !hash("tokenizer_digest", job->m_digests.tokenizer) ||
        !hash("evaluation_digest", evaluation))
        return damaged("a digest of the plan is missing");
    job->m_digests.plan = (*plan)->digest;
    job->m_dataset.digest = job->m_digests.data;
    job->m_dataset.hasUnanswerable = detail.value("has_unanswerable", false);
    job->m_dataset.version = detail.value("data_version", std::string());
    job->m_dataset.originalCount = detail.value("samples_in_files", std::uint64_t{0});
    job->m_times = {detail.value("read_ms", 0.0), detail.value("tokenize_ms", 0.0),
                    detail.value("plan_ms", 0.0)};
    if (detail.contains("data_warnings") && detail["data_warnings"].is_array())
        for (const auto& entry : detail["data_warnings"]) {
            if (!entry.is_object())
                return damaged("a data warning is damaged");
            data::Warning warning;
            warning.code = entry.value("code", std::string());
            warning.sentence = entry.value("sentence", std::string());
            warning.count = entry.value("count", std::uint64_t{0});
            for (const auto& index : entry.value("first", nlohmann::json::array()))
                if (index.is_number_unsigned())
                    warning.first20.emplace_back(index.get<std::uint64_t>());
            job->m_dataset.warnings.push_back(std::move(warning));
        }

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
                return giveUp(damage("a token lies outside its context"));
            tokens.begin.push_back(static_cast<std::uint32_t>(record.tokenBegin[t]));
            tokens.end.push_back(static_cast<std::uint32_t>(record.tokenEnd[t]));
        }
        job->m_contextTokens.push_back(std::move(tokens));
        job->m_dataset.contexts.push_back(std::move(record.text));
        job->m_dataset.titles.push_back(std::move(record.id));
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
        if (record.context >= job->m_dataset.contexts.size())
            return giveUp(damage("a sample names a context that is not there"));
        sample.context = static_cast<std::uint32_t>(record.context);
        auto answers = answersFromJson(record.answersJson);
        if (!answers)
            return giveUp(answers.error());
        sample.answers = std::move(*answers);
        if (data::sampleHash(sample, job->m_dataset.contexts[sample.context]) != sample.hash)
            return giveUp(damage("a sample does not have the hash that it was stored with"));
        digest.add(index.value, sample.hash);
        job->m_dataset.samples.push_back(std::move(sample));
        return true;
    });
    if (!visited)
        return fail(visited.error());
    if (failure)
        return fail(*failure);
    if (digest.result() != job->m_digests.data)
        return damaged("the samples do not have the data digest of the plan");
    visited = file.forEachItem([&](ItemIndex, const store::ItemRecord& record) {
        QaItem item;
        item.sample = record.sample.value;
        item.firstContextToken = record.firstContextToken;
        item.contextTokens = record.contextTokens;
        item.contextAt = record.contextAt;
        item.tokens = record.tokens;
        const bool isOrdered =
            job->m_qaItems.empty() || job->m_qaItems.back().sample <= item.sample;
        if (!isOrdered || item.sample >= job->m_dataset.samples.size())
            return giveUp(damage("an item names a sample that is not there"));
        const auto context = job->m_dataset.samples[static_cast<std::size_t>(item.sample)].context;
        const std::size_t tokens = job->m_contextTokens[context].begin.size();
        if (item.firstContextToken > tokens ||
            item.contextTokens > tokens - item.firstContextToken || item.contextAt > item.tokens ||
            item.contextTokens > item.tokens - item.contextAt)
            return giveUp(damage("the window of an item lies outside its context"));
        job->m_qaItems.push_back(item);
        job->m_itemHashes.push_back(record.hash);
        return true;
    });
    if (!visited)
        return fail(visited.error());
    if (failure)
        return fail(*failure);
    job->indexItems();
    if (const Status scorer = job->makeScorer(); !scorer)
        return fail(scorer.error());
    return job;
}

void QaJob::accept(const wire::OutputBlock& block)
{
    for (const wire::Output& output : block.outputs) {
        if ((output.flags & wire::padFlag) != 0 || output.item.value >= m_qaItems.size())
            continue;
        if ((output.flags & wire::errorFlag) != 0) {
            const auto* text =
                static_cast<const char*>(static_cast<const void*>(output.payload.data()));
            m_itemErrors.emplace(output.item.value, std::string(text, output.payload.size()));
        }
        if (!m_payloads.put(output.item, output.payload))
            continue;
        const std::uint64_t sample = m_qaItems[static_cast<std::size_t>(output.item.value)].sample;
        if (--m_missingItems[static_cast<std::size_t>(sample)] == 0) {
            ++m_complete;
            m_running.add(decode(SampleIndex(sample)).score);
        }
    }
}

metrics::ScoreSoFar QaJob::soFar() const
{
    return m_running.soFar(m_config.metrics.confidence);
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
        if (const auto error = m_itemErrors.find(i); error != m_itemErrors.end()) {
            result.error = error->second;
            break;
        }
        if (!m_payloads.has(ItemIndex(i)))
            break;
        auto output = wire::decodeQa(m_payloads.get(ItemIndex(i)), item.tokens);
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
