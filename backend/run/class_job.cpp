// SPDX-License-Identifier: Apache-2.0
#include "run/class_job.h"

#include "base/clock.h"
#include "base/file.h"
#include "run/input_builder.h"
#include "tokenizer/tokenizer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

namespace muster::run {

namespace {

constexpr std::uint32_t longestAutomatic = 512;
constexpr std::size_t mostClasses = 65536;

std::optional<std::uint64_t> wholeNumber(std::string_view text)
{
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
        return std::nullopt;
    return value;
}

Result<nlohmann::json> configJson(const std::filesystem::path& model)
{
    const auto text = readFile(model / "config.json", std::size_t{1} << 20U);
    if (!text)
        return fail(text.error());
    auto json = nlohmann::json::parse(*text, nullptr, false);
    if (!json.is_object())
        return fail(Error::Kind::Invalid, "E-RUN-060",
                    fmt::format("{} is no JSON object.", (model / "config.json").string()));
    return json;
}

data::TableFormat formatOf(const std::string& name)
{
    if (name == "csv" || name == "tsv")
        return data::TableFormat::Delimited;
    if (name == "jsonl")
        return data::TableFormat::Jsonl;
    return data::TableFormat::Auto;
}

data::HeaderRule headerOf(config::Switch header)
{
    return header == config::Switch::On    ? data::HeaderRule::Present
           : header == config::Switch::Off ? data::HeaderRule::Absent
                                           : data::HeaderRule::Auto;
}

} // namespace

Result<ModelLabels> readModelLabels(const std::filesystem::path& model)
{
    auto read = configJson(model);
    if (!read)
        return fail(read.error());
    const nlohmann::json& json = *read;
    const auto wrong = [&](const std::string& what) {
        return fail(
            Error::Kind::Invalid, "E-RUN-060",
            fmt::format("{}: {}. Nothing was started.", (model / "config.json").string(), what));
    };
    ModelLabels labels;
    if (json.contains("id2label") && !json["id2label"].is_null()) {
        const auto& map = json["id2label"];
        if (!map.is_object() || map.empty() || map.size() > mostClasses)
            return wrong("id2label is no map from numbers to names");
        labels.names.resize(map.size());
        std::vector<bool> isSet(map.size(), false);
        for (const auto& [key, name] : map.items()) {
            const auto id = wholeNumber(key);
            if (!id || *id >= map.size() || isSet[static_cast<std::size_t>(*id)] ||
                !name.is_string())
                return wrong(fmt::format("id2label does not number its {} labels from 0 on; '{}' "
                                         "is in the way",
                                         map.size(), key));
            isSet[static_cast<std::size_t>(*id)] = true;
            labels.names[static_cast<std::size_t>(*id)] = name.get<std::string>();
        }
    } else {
        std::uint64_t count = 2;
        if (json.contains("num_labels") && json["num_labels"].is_number_unsigned())
            count = json["num_labels"].get<std::uint64_t>();
        if (count == 0 || count > mostClasses)
            return wrong(fmt::format("num_labels is {}", count));
        for (std::uint64_t c = 0; c < count; ++c)
            labels.names.push_back(fmt::format("LABEL_{}", c));
    }
    if (json.contains("problem_type") && json["problem_type"].is_string()) {
        const auto type = json["problem_type"].get<std::string>();
        if (type == "multi_label_classification")
            labels.isMultiLabel = true;
        else if (type != "single_label_classification")
            return wrong(fmt::format("problem_type is '{}', which is no classification", type));
    }
    if (labels.names.size() == 1 && !labels.isMultiLabel)
        return wrong("the model has one output, which is a regression");
    return labels;
}

Result<std::vector<std::vector<std::uint32_t>>>
classesOf(const data::Table& table, const ModelLabels& labels, std::uint64_t offset)
{
    std::unordered_map<std::string, std::uint32_t> byName;
    for (std::size_t c = 0; c < labels.names.size(); ++c)
        byName.emplace(labels.names[c], static_cast<std::uint32_t>(c));
    const bool areNames =
        std::all_of(table.labelNames.begin(), table.labelNames.end(),
                    [&](const std::string& name) { return byName.contains(name); });
    const bool areNumbers =
        std::all_of(table.labelNames.begin(), table.labelNames.end(),
                    [](const std::string& name) { return wholeNumber(name).has_value(); });
    std::vector<std::vector<std::uint32_t>> classes(table.rows.size());
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
        const data::TableRow& row = table.rows[i];
        for (const std::string& label : row.labels) {
            std::optional<std::uint32_t> found;
            if (areNumbers && !areNames) {
                const std::uint64_t number = *wholeNumber(label);
                if (number >= offset && number - offset < labels.names.size())
                    found = static_cast<std::uint32_t>(number - offset);
            } else if (const auto known = byName.find(label); known != byName.end()) {
                found = known->second;
            }
            if (!found) {
                std::vector<std::string> shown(
                    labels.names.begin(),
                    labels.names.begin() + static_cast<std::ptrdiff_t>(
                                               std::min<std::size_t>(labels.names.size(), 10)));
                return fail(Error::Kind::Invalid, "E-RUN-061",
                            fmt::format("row {} (id {}): the label '{}' is none of the model's {} "
                                        "classes ({}{}){}. Nothing was started.",
                                        row.original.value + 1, row.id, label, labels.names.size(),
                                        fmt::join(shown, ", "),
                                        shown.size() < labels.names.size() ? ", …" : "",
                                        areNumbers && !areNames
                                            ? fmt::format("; numbers are taken from {} on, which "
                                                          "classification.label_offset changes",
                                                          offset)
                                            : ""));
            }
            classes[i].push_back(*found);
        }
        std::sort(classes[i].begin(), classes[i].end());
        classes[i].erase(std::unique(classes[i].begin(), classes[i].end()), classes[i].end());
        if (!labels.isMultiLabel && classes[i].size() != 1)
            return fail(Error::Kind::Invalid, "E-RUN-062",
                        fmt::format("row {} (id {}) has {} labels and the model predicts one. Its "
                                    "config.json says so by problem_type. Nothing was started.",
                                    row.original.value + 1, row.id, classes[i].size()));
    }
    return classes;
}

std::pair<std::size_t, std::size_t> longestFirst(std::size_t first, std::size_t second,
                                                 std::size_t most)
{
    if (first + second <= most)
        return {first, second};
    const bool isSwapped = first > second;
    std::size_t shorter = std::min(first, second);
    std::size_t longer = shorter > most ? shorter : std::max(shorter, most - shorter);
    if (shorter + longer > most) {
        shorter = most / 2;
        longer = shorter + most % 2;
    }
    return isSwapped ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

Result<std::unique_ptr<Job>> ClassJob::prepared(const config::RunConfig& config)
{
    auto job = std::make_unique<ClassJob>(config);
    if (const Status read = job->read(); !read)
        return fail(read.error());
    if (const Status tokens = job->tokenize(); !tokens)
        return fail(tokens.error());
    const std::int64_t planning = monotonicNs();
    if (auto positive = job->positiveClass(); !positive)
        return fail(positive.error());
    if (const Status finished = job->finishPreparation(); !finished)
        return fail(finished.error());
    job->m_times.planMs = millisecondsSince(planning);
    return job;
}

Status ClassJob::read()
{
    const std::int64_t start = monotonicNs();
    auto labels = readModelLabels(m_config.model.path);
    if (!labels)
        return fail(labels.error());
    m_labels = std::move(*labels);
    const config::ClassificationConfig& own = m_config.classification;
    data::TableOptions options;
    options.format = formatOf(m_config.data.format);
    options.textField = own.textField;
    options.pairField = own.pairField;
    options.labelField = own.labelField;
    options.idField = own.idField;
    options.groupField = own.groupField;
    options.header = headerOf(own.header);
    options.quotes = static_cast<data::QuoteRule>(own.quotes);
    options.delimiter = own.delimiter == "\\t" ? "\t" : own.delimiter;
    if (options.delimiter.empty() && m_config.data.format == "tsv")
        options.delimiter = "\t";
    options.labelSeparator = own.labelSeparator;
    options.read.limit = m_config.data.limit;
    options.read.subset = m_config.data.subset;
    auto table = data::readTable(m_config.data.files, options);
    if (!table)
        return fail(table.error());
    m_table = std::move(*table);
    std::uint64_t offset = 0;
    if (!own.labelOffset.empty()) {
        const auto given = wholeNumber(own.labelOffset);
        if (!given)
            return fail(Error::Kind::Invalid, "E-RUN-063",
                        fmt::format("classification.label_offset is '{}', which is no whole "
                                    "number. Nothing was started.",
                                    own.labelOffset));
        offset = *given;
    }
    auto references = classesOf(m_table, m_labels, offset);
    if (!references)
        return fail(references.error());
    m_references = std::move(*references);
    m_digests.data = m_table.digest;
    m_warnings = m_table.warnings;
    m_times.readMs = millisecondsSince(start);
    return {};
}

Status ClassJob::tokenize()
{
    const std::int64_t start = monotonicNs();
    auto loaded = tokenizer::loadTokenizer(m_config.model.path);
    if (!loaded)
        return fail(loaded.error());
    const tokenizer::Tokenizer& tok = **loaded;
    m_digests.tokenizer = tok.digest();
    m_vocabulary = static_cast<std::uint32_t>(tok.vocabularySize());
    const tokenizer::SingleTemplate& single = tok.singleTemplate();
    const tokenizer::PairTemplate& pair = tok.pairTemplate();
    const auto limit = static_cast<std::size_t>(
        m_config.classification.maxLength != 0
            ? m_config.classification.maxLength
            : std::min<std::int64_t>(tok.modelMaxLength().value_or(longestAutomatic),
                                     longestAutomatic));
    const std::size_t added = single.prefix.size() + single.suffix.size();
    if (limit <= std::max(added, pair.addedTokens()))
        return fail(Error::Kind::Invalid, "E-RUN-064",
                    fmt::format("classification.max_length {} leaves no room beside the {} special "
                                "tokens. Nothing was started.",
                                limit, std::max(added, pair.addedTokens())));
    m_items = std::make_shared<plan::ItemTable>(wire::UnitKind::Classification);
    m_items->reserve(m_table.rows.size(), m_table.rows.size() * 40);
    tokenizer::Encoding first;
    tokenizer::Encoding second;
    InputBuilder input;
    for (const data::TableRow& row : m_table.rows) {
        input.clear();
        tok.encode(row.text, first);
        if (row.pair) {
            tok.encode(*row.pair, second);
            const auto [a, b] =
                longestFirst(first.size(), second.size(), limit - pair.addedTokens());
            m_truncated += a < first.size() || b < second.size() ? 1U : 0U;
            input.put(pair.prefix, pair.prefixSegments);
            input.put(std::span(first.ids).first(a), pair.questionSegment);
            input.put(pair.middle, pair.middleSegments);
            input.put(std::span(second.ids).first(b), pair.contextSegment);
            input.put(pair.suffix, pair.suffixSegments);
        } else {
            const std::size_t kept = std::min(first.size(), limit - added);
            m_truncated += kept < first.size() ? 1U : 0U;
            input.put(single.prefix, 0);
            input.put(std::span(first.ids).first(kept), 0);
            input.put(single.suffix, 0);
        }
        m_itemTokens.push_back(static_cast<std::uint32_t>(input.ids.size()));
        m_items->append(row.index, input.ids,
                        row.pair && pair.usesSegments
                            ? std::span<const std::uint8_t>(input.segments)
                            : std::span<const std::uint8_t>());
    }
    m_times.tokenizeMs = millisecondsSince(start);
    return {};
}

Status ClassJob::finishPreparation()
{
    finishPlan();
    m_longestItem = 0;
    for (const std::uint32_t tokens : m_itemTokens)
        m_longestItem = std::max(m_longestItem, tokens);
    indexItems(m_table.rows.size());
    return {};
}

Status ClassJob::savePlan(store::PlanWriter& writer) const
{
    if (const Status added = writer.addContext({}); !added)
        return added;
    for (std::size_t i = 0; i < m_table.rows.size(); ++i) {
        const data::TableRow& row = m_table.rows[i];
        store::SampleRecord record;
        record.id = row.id;
        record.hash = row.hash;
        record.question = row.text;
        nlohmann::ordered_json json;
        json["labels"] = row.labels;
        json["classes"] = m_references[i];
        if (row.pair)
            json["pair"] = *row.pair;
        if (!row.group.empty())
            json["group"] = row.group;
        record.answersJson =
            json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
        record.source = row.original.value;
        if (const Status added = writer.addSample(record); !added)
            return added;
    }
    for (std::size_t i = 0; i < m_itemTokens.size(); ++i) {
        store::ItemRecord record;
        record.sample = SampleIndex(i);
        record.tokens = m_itemTokens[i];
        record.hash = m_itemHashes[i];
        if (const Status added = writer.addItem(record); !added)
            return added;
    }
    return {};
}

void ClassJob::describePlan(nlohmann::ordered_json& detail) const
{
    detail["classes"] = m_labels.names;
    detail["multi_label"] = m_labels.isMultiLabel;
    detail["truncated"] = m_truncated;
    detail["samples_in_files"] = m_table.originalCount;
    detail["notes"] = m_table.notes;
}

Status ClassJob::loadPlan(store::RunFile& file, const nlohmann::json& detail)
{
    m_labels.names = detail.at("classes").get<std::vector<std::string>>();
    m_labels.isMultiLabel = detail.at("multi_label").get<bool>();
    m_truncated = detail.at("truncated").get<std::uint64_t>();
    m_table.originalCount = detail.at("samples_in_files").get<std::uint64_t>();
    m_table.notes = detail.at("notes").get<std::vector<std::string>>();
    m_table.digest = m_digests.data;
    std::optional<Error> failure;
    const auto giveUp = [&](Error error) {
        failure = std::move(error);
        return false;
    };
    UnorderedDigest digest;
    auto visited = file.forEachSample([&](SampleIndex index, store::SampleRecord&& record) {
        const auto json = nlohmann::json::parse(record.answersJson, nullptr, false);
        if (!json.is_object())
            return giveUp(damage(file, "the labels of a row cannot be read"));
        data::TableRow row;
        row.index = index;
        row.original = SampleIndex(record.source);
        row.id = std::move(record.id);
        row.text = std::move(record.question);
        row.labels = json.at("labels").get<std::vector<std::string>>();
        if (json.contains("pair"))
            row.pair = json.at("pair").get<std::string>();
        row.group = json.value("group", std::string());
        row.hash = record.hash;
        auto classes = json.at("classes").get<std::vector<std::uint32_t>>();
        const bool isKnown = std::all_of(classes.begin(), classes.end(), [&](std::uint32_t one) {
            return one < m_labels.names.size();
        });
        if (!isKnown || (!m_labels.isMultiLabel && classes.size() != 1))
            return giveUp(damage(file, "a row has a class that the model does not have"));
        if (data::rowHash(row) != row.hash)
            return giveUp(damage(file, "a row does not have the hash that it was stored with"));
        digest.add(index.value, row.hash);
        m_references.push_back(std::move(classes));
        m_table.rows.push_back(std::move(row));
        return true;
    });
    if (!visited)
        return fail(visited.error());
    if (failure)
        return fail(*failure);
    if (digest.result() != m_digests.data)
        return fail(damage(file, "the rows do not have the data digest of the plan"));
    visited = file.forEachItem([&](ItemIndex index, const store::ItemRecord& record) {
        if (record.sample.value != index.value || index.value >= m_table.rows.size())
            return giveUp(damage(file, "an item is not that of its row"));
        m_itemSamples.push_back(index.value);
        m_itemTokens.push_back(record.tokens);
        m_itemHashes.push_back(record.hash);
        m_longestItem = std::max(m_longestItem, record.tokens);
        return true;
    });
    if (!visited)
        return fail(visited.error());
    if (failure)
        return fail(*failure);
    if (m_itemSamples.size() != m_table.rows.size())
        return fail(damage(file, "there are not as many items as rows"));
    indexItems(m_table.rows.size());
    return {};
}

ClassJob::Scored ClassJob::decode(SampleIndex sample) const
{
    const auto i = static_cast<std::size_t>(sample.value);
    Scored scored;
    scored.fields.references = m_references[i];
    if (m_table.rows[i].pair) {
        scored.fields.pair = *m_table.rows[i].pair;
        scored.fields.hasPair = true;
    }
    if (const std::string* error = itemError(sample.value)) {
        scored.error = *error;
        return scored;
    }
    if (!has(ItemIndex(sample.value)))
        return scored;
    const auto classes = static_cast<std::uint32_t>(m_labels.names.size());
    auto output = wire::decodeClass(payload(ItemIndex(sample.value)), classes);
    if (!output) {
        scored.error = output.error().text();
        return scored;
    }
    report::ClassFields& fields = scored.fields;
    fields.logits = std::move(output->logits);
    fields.probabilities.resize(classes);
    if (m_labels.isMultiLabel) {
        for (std::uint32_t c = 0; c < classes; ++c) {
            fields.probabilities[c] =
                1.0 / (1.0 + std::exp(-static_cast<double>(fields.logits[c])));
            if (fields.probabilities[c] >= m_config.classification.threshold)
                fields.predicted.push_back(c);
        }
    } else {
        // The first of equal logits wins, as arg-max does everywhere.
        const auto largest = std::max_element(fields.logits.begin(), fields.logits.end());
        double sum = 0.0;
        for (std::uint32_t c = 0; c < classes; ++c) {
            fields.probabilities[c] =
                std::exp(static_cast<double>(fields.logits[c]) - static_cast<double>(*largest));
            sum += fields.probabilities[c];
        }
        for (double& probability : fields.probabilities)
            probability /= sum;
        fields.predicted = {static_cast<std::uint32_t>(largest - fields.logits.begin())};
        const auto right = fields.references.front();
        fields.loss = std::log(sum) -
                      (static_cast<double>(fields.logits[right]) - static_cast<double>(*largest));
    }
    fields.isRight = fields.predicted == fields.references;
    scored.isComplete = true;
    return scored;
}

void ClassJob::sampleCompleted(SampleIndex sample)
{
    const Scored scored = decode(sample);
    if (!scored.isComplete)
        return;
    ++m_scoredSoFar;
    m_rightSoFar += scored.fields.isRight ? 1U : 0U;
}

std::string ClassJob::namesOf(const std::vector<std::uint32_t>& classes) const
{
    std::string text;
    for (const std::uint32_t one : classes)
        text += (text.empty() ? "" : ", ") + m_labels.names[one];
    return text;
}

Status ClassJob::forEachSample(const std::function<void(const report::SampleRow&)>& visit) const
{
    for (std::size_t i = 0; i < m_table.rows.size(); ++i) {
        const data::TableRow& from = m_table.rows[i];
        Scored scored = decode(SampleIndex(i));
        report::SampleRow row;
        row.index = from.index;
        row.original = from.original;
        row.id = from.id;
        row.context = from.text;
        row.group = from.group;
        for (const std::uint32_t one : m_references[i])
            row.targets.push_back(m_labels.names[one]);
        row.hash = from.hash;
        row.isComplete = scored.isComplete;
        row.error = scored.error;
        row.prediction = namesOf(scored.fields.predicted);
        row.em = scored.isComplete && scored.fields.isRight ? 1.0 : 0.0;
        row.classes = std::move(scored.fields);
        visit(row);
    }
    return {};
}

Status ClassJob::forEachPrediction(
    const std::function<void(SampleIndex, store::PredictionRecord&&)>& visit) const
{
    for (std::size_t i = 0; i < m_table.rows.size(); ++i) {
        const Scored scored = decode(SampleIndex(i));
        store::PredictionRecord record;
        if (scored.isComplete) {
            record.text = namesOf(scored.fields.predicted);
            record.score = scored.fields.isRight ? 1.0 : 0.0;
            if (!m_labels.isMultiLabel)
                record.second = scored.fields.loss;
        }
        visit(SampleIndex(i), std::move(record));
    }
    return {};
}

} // namespace muster::run
