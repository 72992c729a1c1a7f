// SPDX-License-Identifier: Apache-2.0
#include "run/job.h"

#include "base/clock.h"
#include "base/file.h"
#include "config/digest.h"
#include "config/settings.h"
#include "run/class_job.h"
#include "run/lm_job.h"
#include "run/qa_job.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

namespace muster::run {

namespace {

constexpr std::string_view syntheticPrefix = "synthetic:";
/// A bootstrap of more draws than this is left out, with a reason.
constexpr std::uint64_t mostDraws = 200'000'000;

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

std::unique_ptr<Job> makeJob(const config::RunConfig& config)
{
    switch (config.task) {
    case config::Task::Lm:
        return std::make_unique<LmJob>(config);
    case config::Task::Classification:
        return std::make_unique<ClassJob>(config);
    case config::Task::Qa:
        break;
    }
    return std::make_unique<QaJob>(config);
}

std::string percentText(double confidence)
{
    return fmt::format("{:g} %", 100.0 * confidence);
}

} // namespace

double millisecondsSince(std::int64_t startNs)
{
    return static_cast<double>(monotonicNs() - startNs) / 1e6;
}

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

Job::Job(const config::RunConfig& config) : m_config(config)
{
    m_digests.evaluation = config::evaluationDigest(config);
}

Result<std::unique_ptr<Job>> Job::prepare(const config::RunConfig& config)
{
    // Each task makes its own: what it reads differs from the first step on.
    switch (config.task) {
    case config::Task::Lm:
        return LmJob::prepared(config);
    case config::Task::Classification:
        return ClassJob::prepared(config);
    case config::Task::Qa:
        break;
    }
    return QaJob::prepared(config);
}

Result<std::unique_ptr<Job>> Job::load(const config::RunConfig& config, store::RunFile& file)
{
    std::unique_ptr<Job> job = makeJob(config);
    auto plan = file.plan();
    if (!plan)
        return fail(plan.error());
    if (!*plan)
        return fail(Error::Kind::Incomplete, "E-RUN-003",
                    fmt::format("{} has no plan: the run ended before it was made. Start it again.",
                                file.path().string()));
    const auto detail = nlohmann::json::parse((*plan)->detailJson, nullptr, false);
    if (!detail.is_object())
        return fail(damage(file, "the plan's details are not JSON"));
    const auto hash = [&](const char* key, Hash128& into) {
        return detail.contains(key) && detail[key].is_string() &&
               Hash128::parse(detail[key].get<std::string>(), into);
    };
    Hash128 evaluation;
    if (!hash("data_digest", job->m_digests.data) ||
        !hash("tokenizer_digest", job->m_digests.tokenizer) ||
        !hash("evaluation_digest", evaluation))
        return fail(damage(file, "a digest of the plan is missing"));
    job->m_digests.plan = (*plan)->digest;
    try {
        job->m_times = {detail.value("read_ms", 0.0), detail.value("tokenize_ms", 0.0),
                        detail.value("plan_ms", 0.0)};
        if (detail.contains("data_warnings") && detail["data_warnings"].is_array())
            for (const auto& entry : detail["data_warnings"]) {
                if (!entry.is_object())
                    return fail(damage(file, "a data warning is damaged"));
                data::Warning warning;
                warning.code = entry.value("code", std::string());
                warning.sentence = entry.value("sentence", std::string());
                warning.count = entry.value("count", std::uint64_t{0});
                for (const auto& index : entry.value("first", nlohmann::json::array()))
                    if (index.is_number_unsigned())
                        warning.first20.emplace_back(index.get<std::uint64_t>());
                job->m_warnings.push_back(std::move(warning));
            }
        if (const Status loaded = job->loadPlan(file, detail); !loaded)
            return fail(loaded.error());
    } catch (const nlohmann::json::exception&) {
        return fail(damage(file, "the plan's details have another form than this version writes"));
    }
    return job;
}

Status Job::save(store::RunFile& file, const std::vector<RankId>& owners) const
{
    auto writer = file.planWriter();
    if (!writer)
        return fail(writer.error());
    if (const Status saved = savePlan(*writer); !saved)
        return saved;
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
    describePlan(detail);
    detail["read_ms"] = m_times.readMs;
    detail["tokenize_ms"] = m_times.tokenizeMs;
    detail["plan_ms"] = m_times.planMs;
    for (const data::Warning& warning : m_warnings) {
        nlohmann::ordered_json entry;
        entry["code"] = warning.code;
        entry["sentence"] = warning.sentence;
        entry["count"] = warning.count;
        entry["first"] = nlohmann::ordered_json::array();
        for (const SampleIndex index : warning.first20)
            entry["first"].push_back(index.value);
        detail["data_warnings"].push_back(std::move(entry));
    }
    record.detailJson =
        detail.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    return writer->finish(std::move(record));
}

void Job::finishPlan()
{
    plan::PackRules rules;
    rules.unitTokens = m_config.plan.unitTokens;
    rules.unitItems = m_config.plan.unitItems;
    rules.cost = plan::CostModel::transformer(hiddenSize(m_config.model.path));
    m_units = std::make_shared<const plan::UnitTable>(plan::UnitTable::pack(*m_items, rules));
    m_digests.plan = plan::planDigest(*m_items, *m_units);
    const auto hashes = m_items->hashes();
    m_itemHashes.assign(hashes.begin(), hashes.end());
    const auto samples = m_items->samples();
    m_itemSamples.assign(samples.begin(), samples.end());
}

void Job::indexItems(std::size_t samples)
{
    m_firstItem.assign(samples + 1, 0);
    for (const std::uint64_t sample : m_itemSamples)
        ++m_firstItem[static_cast<std::size_t>(sample) + 1];
    for (std::size_t i = 1; i < m_firstItem.size(); ++i)
        m_firstItem[i] += m_firstItem[i - 1];
    m_missingItems.resize(samples);
    for (std::size_t i = 0; i < m_missingItems.size(); ++i)
        m_missingItems[i] = static_cast<std::uint32_t>(m_firstItem[i + 1] - m_firstItem[i]);
    m_payloads = Payloads(m_itemSamples.size());
}

std::pair<std::uint64_t, std::uint64_t> Job::itemsOf(SampleIndex sample) const
{
    const auto i = static_cast<std::size_t>(sample.value);
    return {m_firstItem[i], m_firstItem[i + 1]};
}

const std::string* Job::itemError(std::uint64_t item) const
{
    const auto found = m_itemErrors.find(item);
    return found == m_itemErrors.end() ? nullptr : &found->second;
}

Error Job::damage(const store::RunFile& file, const std::string& what)
{
    return {Error::Kind::Integrity, "E-RUN-002",
            fmt::format("{}: {}. The run file cannot be used.", file.path().string(), what)};
}

void Job::accept(const wire::OutputBlock& block)
{
    for (const wire::Output& output : block.outputs) {
        if ((output.flags & wire::padFlag) != 0 || output.item.value >= m_itemSamples.size())
            continue;
        if ((output.flags & wire::errorFlag) != 0) {
            const auto* text =
                static_cast<const char*>(static_cast<const void*>(output.payload.data()));
            m_itemErrors.emplace(output.item.value, std::string(text, output.payload.size()));
        }
        if (!m_payloads.put(output.item, output.payload))
            continue;
        const std::uint64_t sample = m_itemSamples[static_cast<std::size_t>(output.item.value)];
        if (--m_missingItems[static_cast<std::size_t>(sample)] == 0) {
            ++m_complete;
            sampleCompleted(SampleIndex(sample));
        }
    }
}

void addMeanIntervals(report::Metric& metric, const std::vector<double>& values,
                      const config::MetricConfig& config)
{
    const auto normal = metrics::normalInterval(values, config.confidence);
    if (normal) {
        metric.standardError = normal->standardError;
        metric.low = normal->low;
        metric.high = normal->high;
        metric.intervalMethod = "normal, " + percentText(config.confidence);
    } else {
        metric.reason = normal.error().message;
    }
    if (config.bootstrap == 0)
        return;
    if (values.size() * std::uint64_t{config.bootstrap} > mostDraws) {
        metric.bootstrapMethod = fmt::format("left out: {} values × {} replicates are too many",
                                             values.size(), config.bootstrap);
        return;
    }
    metrics::BootstrapOptions options;
    options.replicates = config.bootstrap;
    options.seed = config.seed;
    options.confidence = config.confidence;
    if (const auto sampled = metrics::bootstrapMean(values, options)) {
        metric.bootstrapError = sampled->standardError;
        metric.bootstrapLow = sampled->low;
        metric.bootstrapHigh = sampled->high;
        metric.bootstrapMethod =
            fmt::format("bootstrap, {} replicates, seed {}, {}", config.bootstrap, config.seed,
                        percentText(config.confidence));
    }
}

report::Metric percentMetric(std::string key, std::string label, std::optional<double> value,
                             std::string method, std::uint64_t n)
{
    report::Metric made;
    made.key = std::move(key);
    made.label = std::move(label);
    made.value = value;
    made.unit = "%";
    made.method = std::move(method);
    made.n = n;
    if (!value)
        made.reason = n == 0 ? "no sample of this kind" : "not defined";
    return made;
}

} // namespace muster::run
