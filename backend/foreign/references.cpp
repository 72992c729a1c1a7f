// SPDX-License-Identifier: Apache-2.0
#include "foreign/references.h"

#include "data/format.h"
#include "data/squad_reader.h"
#include "data/table_reader.h"
#include "foreign/rows_p.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <set>

namespace muster::foreign {

namespace {

constexpr std::uint64_t mostReferences = std::uint64_t{1} << 31U;

/// Orders by length, as programs sort to save padding (stable).
void addLengthOrders(References& references, const std::string& what,
                     const std::vector<std::size_t>& lengths)
{
    for (const bool isLongFirst : {true, false}) {
        align::NamedOrder order;
        order.name =
            fmt::format("length of the {}, {} first", what, isLongFirst ? "longest" : "shortest");
        order.order.resize(lengths.size());
        std::iota(order.order.begin(), order.order.end(), std::uint64_t{0});
        std::ranges::stable_sort(order.order, [&](std::uint64_t a, std::uint64_t b) {
            return isLongFirst ? lengths[a] > lengths[b] : lengths[a] < lengths[b];
        });
        references.orders.push_back(std::move(order));
    }
}

void addIdOrder(References& references)
{
    if (std::ranges::is_sorted(references.ids))
        return;
    align::NamedOrder order;
    order.name = "id";
    order.order.resize(references.ids.size());
    std::iota(order.order.begin(), order.order.end(), std::uint64_t{0});
    std::ranges::stable_sort(order.order, [&](std::uint64_t a, std::uint64_t b) {
        return references.ids[a] < references.ids[b];
    });
    references.orders.push_back(std::move(order));
}

References ofDataset(data::Dataset dataset)
{
    References made;
    made.description = fmt::format("SQuAD JSON, {} questions", dataset.samples.size());
    made.hasUnanswerable = dataset.hasUnanswerable;
    made.digest = dataset.digest;
    std::vector<std::size_t> questions;
    std::vector<std::size_t> whole;
    for (data::Sample& sample : dataset.samples) {
        questions.push_back(sample.question.size());
        whole.push_back(sample.question.size() + dataset.contexts[sample.context].size());
        made.ids.push_back(std::move(sample.id));
        std::vector<std::string> answers;
        for (data::Answer& answer : sample.answers)
            answers.push_back(std::move(answer.text));
        made.answers.push_back(std::move(answers));
        made.hashes.push_back(sample.hash);
    }
    addLengthOrders(made, "question", questions);
    addLengthOrders(made, "question and context", whole);
    addIdOrder(made);
    for (const data::Warning& warning : dataset.warnings)
        made.notes.push_back(warning.code + ": " + warning.sentence);
    return made;
}

References ofTable(data::Table table)
{
    References made;
    made.kind = References::Kind::Labels;
    made.description =
        fmt::format("table, {} rows, {} labels", table.rows.size(), table.labelNames.size());
    made.digest = table.digest;
    std::vector<std::size_t> lengths;
    for (data::TableRow& row : table.rows) {
        lengths.push_back(row.text.size());
        made.ids.push_back(std::move(row.id));
        std::vector<std::string> labels;
        for (const std::string& label : row.labels)
            labels.push_back(plainLabel(label));
        made.answers.push_back(std::move(labels));
        made.hashes.push_back(row.hash);
    }
    addLengthOrders(made, "text", lengths);
    made.notes = table.notes;
    return made;
}

/// Many different answers are texts to be normalised, few are classes.
void decideKind(References& made)
{
    std::set<std::string_view> different;
    for (const auto& one : made.answers) {
        for (const std::string& text : one)
            different.insert(text);
    }
    const bool isText = different.size() > std::max<std::size_t>(100, made.answers.size() / 4);
    made.kind = isText ? References::Kind::Answers : References::Kind::Labels;
    if (isText)
        return;
    for (auto& one : made.answers) {
        for (std::string& text : one)
            text = plainLabel(text);
    }
}

} // namespace

std::string plainLabel(std::string_view text)
{
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos)
        return {};
    text = text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
    double value = 0.0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && std::floor(value) == value &&
        std::abs(value) < 9e15)
        return fmt::format("{}", static_cast<std::int64_t>(value));
    return std::string(text);
}

Result<References> referencesOf(const ResultFile& file)
{
    const auto none = [&file](std::string_view why) {
        return fail(Error::Kind::Invalid, "E-FOREIGN-011",
                    fmt::format("{}: {}; give the data set with --data", file.name, why));
    };
    References made;
    const bool isPlaced = !file.indexField.empty();
    std::uint64_t size = isPlaced ? 0 : file.rows.size();
    for (const Row& row : file.rows) {
        if (!row.hasLabel && !row.isPad)
            return none("not every row carries a label");
        if (isPlaced && row.index && *row.index >= 0)
            size = std::max(size, static_cast<std::uint64_t>(*row.index) + 1);
    }
    if (size > mostReferences || size > 2 * file.rows.size() + 1000)
        return none("the indices leave large gaps");
    made.ids.resize(size);
    made.answers.resize(size);
    std::vector<bool> isSet(size, false);
    for (std::size_t i = 0; i < file.rows.size(); ++i) {
        const Row& row = file.rows[i];
        if (isPlaced && (!row.index || *row.index < 0))
            continue;
        const std::uint64_t at = isPlaced ? static_cast<std::uint64_t>(*row.index) : i;
        if (isSet[at] || !row.hasLabel)
            continue;
        isSet[at] = true;
        made.answers[at] = {row.label};
        made.ids[at] = row.id.empty() ? fmt::format("{}", at) : row.id;
    }
    made.description = fmt::format("labels of the rows themselves, {}", size);
    decideKind(made);
    return made;
}

Result<References> readReferences(std::span<const std::filesystem::path> files,
                                  const ReferenceOptions& options)
{
    if (files.empty())
        return fail(Error::Kind::Usage, "E-FOREIGN-011",
                    "results of other programs are checked against their data: give --data");
    std::error_code ignored;
    if (std::filesystem::is_regular_file(files.front(), ignored)) {
        auto format = data::detectFormat(files.front());
        if (!format)
            return fail(format.error());
        if (format->format == data::Format::Squad) {
            auto dataset = data::readSquad(files);
            if (!dataset)
                return fail(dataset.error());
            return ofDataset(std::move(*dataset));
        }
    }
    data::TableOptions table;
    table.textField = options.textField;
    table.labelField = options.labelField;
    auto read = data::readTable(files, table);
    if (read)
        return ofTable(std::move(*read));
    if (!options.textField.empty() || files.size() != 1)
        return fail(read.error());
    FieldNames fields;
    fields.label = options.labelField;
    auto file = readResultFile(files.front(), fields);
    if (!file)
        return fail(read.error());
    // A file of labels alone has them where others have predictions.
    if (std::ranges::none_of(file->rows, &Row::hasLabel)) {
        for (Row& row : file->rows) {
            row.label = std::move(row.text);
            row.hasLabel = row.hasAnswer;
        }
    }
    auto made = referencesOf(*file);
    if (!made)
        return fail(read.error());
    made->description = fmt::format("{}, {} labels", file->format, made->size());
    return made;
}

} // namespace muster::foreign
