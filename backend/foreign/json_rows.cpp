// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"
#include "foreign/rows_p.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <unordered_set>

namespace muster::foreign {

namespace {

namespace dom = simdjson::dom;

constexpr std::array<std::string_view, 6> indexUsual{"index",        "idx", "doc_id",
                                                     "sample_index", "row", "example_index"};
constexpr std::array<std::string_view, 8> idUsual{"id",  "qid",       "question_id", "example_id",
                                                  "uid", "sample_id", "guid",        "qas_id"};
constexpr std::array<std::string_view, 17> predictionUsual{"prediction",
                                                           "pred",
                                                           "predicted",
                                                           "prediction_text",
                                                           "predicted_answer",
                                                           "predicted_label",
                                                           "pred_label",
                                                           "predictions",
                                                           "filtered_resps",
                                                           "model_output",
                                                           "output",
                                                           "response",
                                                           "generated_text",
                                                           "generation",
                                                           "completion",
                                                           "text",
                                                           "answer"};
constexpr std::array<std::string_view, 9> labelUsual{
    "label", "target", "gold", "reference", "references", "labels", "answers", "answer", "targets"};

std::string numberText(double value)
{
    if (std::floor(value) == value && std::abs(value) < 9e15)
        return fmt::format("{}", static_cast<std::int64_t>(value));
    return fmt::format("{}", value);
}

/// Place of the largest first number in a list of [number, …] lists, as lm-eval logs choices.
std::optional<std::size_t> largestChoice(const dom::array& list)
{
    std::optional<std::size_t> best;
    double most = 0.0;
    std::size_t at = 0;
    for (const dom::element one : list) {
        dom::array inner;
        double value = 0.0;
        if (one.get(inner) != simdjson::SUCCESS || inner.begin() == inner.end() ||
            (*inner.begin()).get(value) != simdjson::SUCCESS)
            return std::nullopt;
        if (!best || value > most) {
            most = value;
            best = at;
        }
        ++at;
    }
    return at > 1 ? best : std::nullopt;
}

/// The text that a value stands for: texts, numbers and truth values as they are; of lists the
/// first entry, of objects `text`. Nothing for null and for what stands for no text.
std::optional<std::string> textOf(const dom::element& value, int depth = 0)
{
    if (depth > 4)
        return std::nullopt;
    switch (value.type()) {
    case dom::element_type::STRING:
        return std::string(value.get_string().value_unsafe());
    case dom::element_type::INT64:
        return fmt::format("{}", value.get_int64().value_unsafe());
    case dom::element_type::UINT64:
        return fmt::format("{}", value.get_uint64().value_unsafe());
    case dom::element_type::DOUBLE:
        return numberText(value.get_double().value_unsafe());
    case dom::element_type::BOOL:
        return value.get_bool().value_unsafe() ? "true" : "false";
    case dom::element_type::ARRAY: {
        const dom::array list = value.get_array().value_unsafe();
        if (const auto choice = largestChoice(list))
            return fmt::format("{}", *choice);
        if (list.begin() == list.end())
            return std::nullopt;
        return textOf(*list.begin(), depth + 1);
    }
    case dom::element_type::OBJECT:
        for (const char* key : {"text", "prediction", "prediction_text", "answer"}) {
            dom::element inner;
            if (value[key].get(inner) == simdjson::SUCCESS)
                return textOf(inner, depth + 1);
        }
        return std::nullopt;
    case dom::element_type::NULL_VALUE:
        return std::nullopt;
    }
    return std::nullopt;
}

std::optional<std::int64_t> indexOf(const dom::element& value)
{
    std::int64_t number = 0;
    if (value.get(number) == simdjson::SUCCESS)
        return number;
    double real = 0.0;
    if (value.is_double() && value.get(real) == simdjson::SUCCESS && std::floor(real) == real &&
        std::abs(real) < 9e15)
        return static_cast<std::int64_t>(real);
    std::string_view text;
    if (value.get(text) == simdjson::SUCCESS)
        return integerOf(text);
    return std::nullopt;
}

/// Columns chosen for a file of objects.
struct Columns {
    std::string index;
    std::string id;
    std::string prediction;
    std::string label;
};

Result<Columns> chooseColumns(const dom::object& first, const FieldNames& fields,
                              std::string_view name)
{
    std::vector<std::string> present;
    for (const auto field : first)
        present.emplace_back(field.key);
    Columns made;
    auto index = chosenField("index", fields.index, indexNames(), present, name);
    auto id = chosenField("id", fields.id, idNames(), present, name);
    auto label = chosenField("label", fields.label, labelNames(), present, name);
    std::vector<std::string> rest;
    for (const std::string& one : present) {
        if (fields.prediction.empty() && label && one == *label &&
            std::ranges::any_of(present, [](const std::string& p) {
                return p == "prediction" || p == "filtered_resps" || p == "resps" || p == "pred";
            }))
            continue;
        rest.push_back(one);
    }
    auto prediction = chosenField("prediction", fields.prediction, predictionNames(), rest, name);
    for (auto* one : {&index, &id, &label, &prediction}) {
        if (!*one)
            return fail(one->error());
    }
    if (prediction->empty() && std::ranges::find(present, "resps") != present.end())
        *prediction = "resps";
    made = {*index, *id, *prediction, *label};
    if (made.label == made.prediction)
        made.label.clear();
    return made;
}

Row rowOf(const dom::object& object, const Columns& columns)
{
    Row row;
    row.hasAnswer = false;
    for (const auto field : object) {
        if (!columns.prediction.empty() && field.key == columns.prediction) {
            if (auto text = textOf(field.value)) {
                row.text = std::move(*text);
                row.hasAnswer = true;
            }
        } else if (!columns.index.empty() && field.key == columns.index) {
            row.index = indexOf(field.value);
        } else if (!columns.id.empty() && field.key == columns.id) {
            row.id = textOf(field.value).value_or("");
        } else if (!columns.label.empty() && field.key == columns.label) {
            if (auto text = textOf(field.value)) {
                row.label = std::move(*text);
                row.hasLabel = true;
            }
        } else if (field.key == "rank") {
            if (const auto rank = indexOf(field.value); rank && *rank >= 0 && *rank < 1 << 24)
                row.rank = static_cast<std::int32_t>(*rank);
        } else if (field.key == "pad" || field.key == "is_pad") {
            bool isPad = false;
            row.isPad = field.value.get(isPad) == simdjson::SUCCESS && isPad;
        } else if (field.key == "sample_hash" || field.key == "doc_hash") {
            row.hash = textOf(field.value).value_or("");
        }
    }
    return row;
}

bool isLmEval(const dom::object& first)
{
    dom::element ignored;
    return first["doc_id"].get(ignored) == simdjson::SUCCESS &&
           (first["filtered_resps"].get(ignored) == simdjson::SUCCESS ||
            first["resps"].get(ignored) == simdjson::SUCCESS);
}

auto broken(std::string_view name, std::string_view place, std::string_view what)
{
    return fail(Error::Kind::Invalid, "E-FOREIGN-002", fmt::format("{}{}: {}", name, place, what));
}

void sayColumns(ResultFile& file, const Columns& columns, const FieldNames& asked)
{
    file.indexField = columns.index;
    file.idField = columns.id;
    file.predictionField = columns.prediction;
    std::vector<std::string> guessed;
    if (asked.prediction.empty())
        guessed.push_back(fmt::format("predictions in \"{}\"", columns.prediction));
    if (asked.index.empty() && !columns.index.empty())
        guessed.push_back(fmt::format("indices in \"{}\"", columns.index));
    if (asked.id.empty() && !columns.id.empty())
        guessed.push_back(fmt::format("ids in \"{}\"", columns.id));
    if (!guessed.empty())
        file.notes.push_back(fmt::format("columns guessed: {}", fmt::join(guessed, ", ")));
}

Status needPrediction(const Columns& columns, const dom::object& first, std::string_view name)
{
    if (!columns.prediction.empty() || !columns.label.empty())
        return {};
    std::vector<std::string> present;
    for (const auto field : first)
        present.emplace_back(field.key);
    return fail(Error::Kind::Invalid, "E-FOREIGN-003",
                fmt::format("{}: no column looks like predictions among {}; name it with "
                            "--pred-field",
                            name, fmt::join(present, ", ")));
}

/// Rows of a list of objects or plain values.
class ObjectRows final {
public:
    ObjectRows(std::string_view name, const FieldNames& fields) : m_fields(fields)
    {
        m_file.name = std::string(name);
    }
    Status add(const dom::element& value, std::string_view place)
    {
        dom::object object;
        if (value.get(object) != simdjson::SUCCESS) {
            if (m_isObjects && *m_isObjects)
                return broken(m_file.name, place, "a JSON object is wanted");
            m_isObjects = false;
            Row row;
            auto text = textOf(value);
            row.hasAnswer = text.has_value();
            row.text = text.value_or("");
            m_file.rows.push_back(std::move(row));
            return {};
        }
        if (m_isObjects && !*m_isObjects)
            return broken(m_file.name, place, "an object among plain values");
        if (!m_isObjects) {
            m_isObjects = true;
            auto columns = chooseColumns(object, m_fields, m_file.name);
            if (!columns)
                return fail(columns.error());
            m_columns = std::move(*columns);
            if (auto has = needPrediction(m_columns, object, m_file.name); !has)
                return has;
            m_isLmEval = isLmEval(object);
            sayColumns(m_file, m_columns, m_fields);
        }
        m_file.rows.push_back(rowOf(object, m_columns));
        return {};
    }
    Result<ResultFile> take(std::string_view format)
    {
        if (m_file.rows.empty())
            return fail(Error::Kind::Invalid, "E-FOREIGN-006",
                        fmt::format("{} has no rows", m_file.name));
        m_file.format = m_isLmEval ? "lm-eval samples" : std::string(format);
        return std::move(m_file);
    }

private:
    const FieldNames& m_fields;
    ResultFile m_file;
    Columns m_columns;
    std::optional<bool> m_isObjects;
    bool m_isLmEval = false;
};

/// `{"0": {…}, "1": {…}}` with all keys whole numbers.
bool hasNumberedKeys(const dom::object& object)
{
    std::size_t count = 0;
    for (const auto field : object) {
        if (!integerOf(field.key) || field.value.type() != dom::element_type::OBJECT)
            return false;
        ++count;
    }
    return count > 0;
}

Result<ResultFile> readNumbered(std::string_view name, const dom::object& object,
                                const FieldNames& fields)
{
    ObjectRows rows(name, fields);
    std::vector<std::int64_t> keys;
    for (const auto field : object) {
        if (auto added = rows.add(field.value, fmt::format(" [{}]", field.key)); !added)
            return fail(added.error());
        keys.push_back(*integerOf(field.key));
    }
    auto file = rows.take("OpenCompass predictions");
    if (!file)
        return file;
    file->indexField = "key";
    for (std::size_t i = 0; i < keys.size(); ++i)
        file->rows[i].index = keys[i];
    return file;
}

void addStated(ResultFile& file, const dom::object& results)
{
    for (const auto task : results) {
        dom::object metrics;
        if (task.value.get(metrics) != simdjson::SUCCESS)
            continue;
        for (const auto metric : metrics) {
            double value = 0.0;
            if (metric.value.is_number() && metric.value.get(value) == simdjson::SUCCESS)
                file.stated.emplace_back(fmt::format("{}: {}", task.key, metric.key), value);
        }
    }
}

Result<ResultFile> readLmEvalResults(std::string_view name, const dom::object& root,
                                     const dom::object& results, const FieldNames& fields)
{
    dom::object tasks;
    if (root["samples"].get(tasks) == simdjson::SUCCESS && tasks.size() == 1) {
        dom::array samples;
        if ((*tasks.begin()).value.get(samples) == simdjson::SUCCESS) {
            ObjectRows rows(name, fields);
            std::size_t at = 0;
            for (const dom::element one : samples) {
                if (auto added = rows.add(one, fmt::format(" [{}]", at++)); !added)
                    return fail(added.error());
            }
            auto file = rows.take("lm-eval results");
            if (file)
                addStated(*file, results);
            return file;
        }
    }
    ResultFile file;
    addStated(file, results);
    std::vector<std::string> said;
    for (const auto& [key, value] : file.stated) {
        if (said.size() < 4 && key.find("stderr") == std::string::npos)
            said.push_back(fmt::format("{} {}", key, value));
    }
    return fail(Error::Kind::Invalid, "E-FOREIGN-009",
                fmt::format("{} holds results without samples ({}); give the samples_*.jsonl that "
                            "lm-eval writes with --log_samples",
                            name, fmt::join(said, ", ")));
}

Result<ResultFile> readById(std::string_view name, const dom::object& object)
{
    ResultFile file;
    file.name = std::string(name);
    file.format = "SQuAD predictions";
    file.idField = "key";
    std::unordered_set<std::string_view> seen;
    for (const auto field : object) {
        if (!seen.insert(field.key).second)
            return fail(Error::Kind::Invalid, "E-FOREIGN-010",
                        fmt::format("{}: the id {} stands twice", name, field.key));
        Row row;
        row.id = std::string(field.key);
        auto text = textOf(field.value);
        if (!text && !field.value.is_null() &&
            !(field.value.is_array() && field.value.get_array().value_unsafe().size() == 0))
            return fail(Error::Kind::Invalid, "E-FOREIGN-005",
                        fmt::format("{}: the prediction of {} is no text", name, field.key));
        if (field.value.is_array())
            file.format = "SQuAD n-best";
        row.hasAnswer = text.has_value();
        row.text = text.value_or("");
        file.rows.push_back(std::move(row));
    }
    if (file.rows.empty())
        return fail(Error::Kind::Invalid, "E-FOREIGN-006", fmt::format("{} has no rows", name));
    return file;
}

} // namespace

std::span<const std::string_view> indexNames()
{
    return indexUsual;
}
std::span<const std::string_view> idNames()
{
    return idUsual;
}
std::span<const std::string_view> predictionNames()
{
    return predictionUsual;
}
std::span<const std::string_view> labelNames()
{
    return labelUsual;
}

Result<std::string> chosenField(std::string_view what, const std::string& asked,
                                std::span<const std::string_view> usual,
                                std::span<const std::string> present, std::string_view file)
{
    if (!asked.empty()) {
        if (std::ranges::find(present, asked) == present.end())
            return fail(Error::Kind::Usage, "E-FOREIGN-004",
                        fmt::format("{} has no column {} for the {}; there are {}", file, asked,
                                    what, fmt::join(present, ", ")));
        return asked;
    }
    for (const std::string_view name : usual) {
        if (std::ranges::find(present, name) != present.end())
            return std::string(name);
    }
    return std::string();
}

std::optional<std::int64_t> integerOf(std::string_view text)
{
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || text.empty())
        return std::nullopt;
    return value;
}

Result<ResultFile> readJsonl(std::string_view name, std::string_view text, const FieldNames& fields)
{
    try {
        dom::parser parser;
        ObjectRows rows(name, fields);
        std::size_t line = 0;
        std::size_t blank = 0; // line of the first blank one since the last row
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t end = std::min(text.find('\n', at), text.size());
            const std::string_view part = text.substr(at, end - at);
            at = end + 1;
            ++line;
            if (part.find_first_not_of(" \t\r") == std::string_view::npos) {
                blank = blank == 0 ? line : blank;
                continue;
            }
            const std::string place = fmt::format(":{}", blank != 0 ? blank : line);
            if (blank != 0)
                return broken(name, place, "a blank line between rows");
            dom::element value;
            const auto error = parser.parse(part.data(), part.size(), true).get(value);
            if (error != simdjson::SUCCESS)
                return broken(name, place, simdjson::error_message(error));
            if (auto added = rows.add(value, place); !added)
                return fail(added.error());
        }
        return rows.take("JSONL");
    } catch (const std::exception& error) {
        return broken(name, "", error.what());
    }
}

Result<ResultFile> readJson(std::string_view name, std::string_view text, const FieldNames& fields)
{
    try {
        dom::parser parser;
        dom::element root;
        const auto error = parser.parse(text.data(), text.size(), true).get(root);
        if (error != simdjson::SUCCESS)
            return broken(name, "", simdjson::error_message(error));
        dom::array list;
        if (root.get(list) == simdjson::SUCCESS) {
            ObjectRows rows(name, fields);
            std::size_t at = 0;
            for (const dom::element one : list) {
                if (auto added = rows.add(one, fmt::format(" [{}]", at++)); !added)
                    return fail(added.error());
            }
            return rows.take("JSON array");
        }
        dom::object object;
        if (root.get(object) != simdjson::SUCCESS)
            return broken(name, "", "neither an object nor an array");
        dom::object results;
        if (object["results"].get(results) == simdjson::SUCCESS)
            return readLmEvalResults(name, object, results, fields);
        if (hasNumberedKeys(object))
            return readNumbered(name, object, fields);
        return readById(name, object);
    } catch (const std::exception& error) {
        return broken(name, "", error.what());
    }
}

} // namespace muster::foreign
