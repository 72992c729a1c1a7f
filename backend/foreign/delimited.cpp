// SPDX-License-Identifier: Apache-2.0
#include "foreign/rows_p.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::foreign {

namespace {

using Record = std::vector<std::string>;

/// Records of RFC 4180: quotes, doubled quotes, line ends in quotes, CR LF or LF.
Result<std::vector<Record>> recordsOf(std::string_view name, std::string_view text, char delimiter)
{
    std::vector<Record> records;
    std::size_t at = 0;
    std::size_t line = 1;
    while (at < text.size()) {
        Record record;
        const std::size_t startLine = line;
        for (bool isMore = true; isMore;) {
            std::string cell;
            if (at < text.size() && text[at] == '"') {
                ++at;
                while (true) {
                    if (at >= text.size())
                        return fail(Error::Kind::Invalid, "E-FOREIGN-002",
                                    fmt::format("{}:{}: a quote is not closed", name, startLine));
                    if (text[at] == '"') {
                        if (at + 1 < text.size() && text[at + 1] == '"') {
                            cell += '"';
                            at += 2;
                            continue;
                        }
                        ++at;
                        break;
                    }
                    line += text[at] == '\n' ? 1U : 0U;
                    cell += text[at++];
                }
            }
            while (at < text.size() && text[at] != delimiter && text[at] != '\n')
                cell += text[at++];
            isMore = at < text.size() && text[at] == delimiter;
            if (!isMore && cell.ends_with('\r'))
                cell.pop_back();
            record.push_back(std::move(cell));
            ++at;
        }
        ++line;
        records.push_back(std::move(record));
    }
    while (!records.empty() && records.back().size() == 1 && records.back().front().empty())
        records.pop_back();
    return records;
}

bool isUsualName(const std::string& cell, const FieldNames& fields)
{
    const auto among = [&cell](std::span<const std::string_view> names) {
        return std::ranges::find(names, std::string_view(cell)) != names.end();
    };
    return among(indexNames()) || among(idNames()) || among(predictionNames()) ||
           among(labelNames()) || cell == "rank" ||
           (!cell.empty() && (cell == fields.index || cell == fields.id ||
                              cell == fields.prediction || cell == fields.label));
}

} // namespace

Result<ResultFile> readDelimited(std::string_view name, std::string_view text, char delimiter,
                                 const FieldNames& fields)
{
    auto records = recordsOf(name, text, delimiter);
    if (!records)
        return fail(records.error());
    ResultFile file;
    file.name = std::string(name);
    file.format = delimiter == '\t' ? "TSV" : "CSV";
    if (records->empty())
        return fail(Error::Kind::Invalid, "E-FOREIGN-006", fmt::format("{} has no rows", name));
    const bool hasHeader = std::ranges::any_of(
        records->front(), [&](const std::string& cell) { return isUsualName(cell, fields); });
    Record header;
    if (hasHeader) {
        header = records->front();
    } else {
        for (std::size_t i = 0; i < records->front().size(); ++i)
            header.push_back(fmt::format("{}", i));
    }
    auto index = chosenField("index", fields.index, indexNames(), header, name);
    auto id = chosenField("id", fields.id, idNames(), header, name);
    auto label = chosenField("label", fields.label, labelNames(), header, name);
    auto prediction = chosenField("prediction", fields.prediction, predictionNames(), header, name);
    for (auto* one : {&index, &id, &label, &prediction}) {
        if (!*one)
            return fail(one->error());
    }
    if (!hasHeader && prediction->empty()) {
        const auto isNumbered = std::ranges::all_of(*records, [](const Record& record) {
            return !record.empty() && integerOf(record.front()).has_value();
        });
        *prediction = header.back();
        if (header.size() == 2 && isNumbered && index->empty() && id->empty())
            *index = header.front();
        else if (header.size() == 2 && id->empty() && index->empty())
            *id = header.front();
    }
    if (prediction->empty() && label->empty())
        return fail(Error::Kind::Invalid, "E-FOREIGN-003",
                    fmt::format("{}: no column looks like predictions among {}; name it with "
                                "--pred-field",
                                name, fmt::join(header, ", ")));
    if (*label == *prediction)
        label->clear();
    const auto columnOf = [&header](const std::string& one) {
        return static_cast<std::size_t>(std::ranges::find(header, one) - header.begin());
    };
    const std::size_t indexAt = index->empty() ? header.size() : columnOf(*index);
    const std::size_t idAt = id->empty() ? header.size() : columnOf(*id);
    const std::size_t labelAt = label->empty() ? header.size() : columnOf(*label);
    const std::size_t predictionAt = prediction->empty() ? header.size() : columnOf(*prediction);
    const std::size_t rankAt = columnOf("rank");
    for (std::size_t i = hasHeader ? 1 : 0; i < records->size(); ++i) {
        Record& record = (*records)[i];
        if (record.size() != header.size())
            return fail(Error::Kind::Invalid, "E-FOREIGN-002",
                        fmt::format("{}: record {} has {} fields, not {}", name, i + 1,
                                    record.size(), header.size()));
        Row row;
        row.hasAnswer = predictionAt < record.size();
        if (indexAt < record.size())
            row.index = integerOf(record[indexAt]);
        if (idAt < record.size())
            row.id = record[idAt];
        if (labelAt < record.size()) {
            row.label = record[labelAt];
            row.hasLabel = true;
        }
        if (rankAt < record.size()) {
            const auto rank = integerOf(record[rankAt]);
            if (rank && *rank >= 0 && *rank < 1 << 24)
                row.rank = static_cast<std::int32_t>(*rank);
        }
        if (row.hasAnswer)
            row.text = std::move(record[predictionAt]);
        file.rows.push_back(std::move(row));
    }
    if (file.rows.empty())
        return fail(Error::Kind::Invalid, "E-FOREIGN-006", fmt::format("{} has no rows", name));
    file.indexField = *index;
    file.idField = *id;
    file.predictionField = *prediction;
    if (delimiter == '\0') {
        file.format = "text";
        file.notes.push_back("one prediction a line");
    } else {
        file.notes.push_back(
            fmt::format("columns parted by {}; {}predictions in column {}{}{}",
                        delimiter == '\t' ? "tabs" : "commas", hasHeader ? "" : "no header; ",
                        *prediction, index->empty() ? "" : fmt::format(", indices in {}", *index),
                        id->empty() ? "" : fmt::format(", ids in {}", *id)));
    }
    return file;
}

} // namespace muster::foreign
