// SPDX-License-Identifier: Apache-2.0
#include "foreign/result_file.h"

#include "base/file.h"
#include "foreign/number_array.h"
#include "foreign/rows_p.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <system_error>

namespace muster::foreign {

namespace {

constexpr std::size_t largestFile = std::size_t{1} << 34U;

std::string lowered(std::string text)
{
    std::ranges::transform(text, text.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return text;
}

/// Name with its numbers filled with zeros, so that texts compare as people count.
std::string naturalKey(const std::string& name)
{
    constexpr std::size_t digits = 20;
    std::string key;
    for (std::size_t at = 0; at < name.size();) {
        std::size_t end = at;
        while (end < name.size() && name[end] >= '0' && name[end] <= '9')
            ++end;
        if (end == at) {
            key += name[at++];
            continue;
        }
        key += std::string(digits - std::min(digits, end - at), '0') + name.substr(at, end - at);
        at = end;
    }
    return key;
}

/// The last number in the stem of a name.
std::optional<std::int64_t> lastNumber(const std::string& stem)
{
    std::size_t end = stem.size();
    while (end > 0 && (stem[end - 1] < '0' || stem[end - 1] > '9'))
        --end;
    std::size_t first = end;
    while (first > 0 && stem[first - 1] >= '0' && stem[first - 1] <= '9')
        --first;
    return integerOf(std::string_view(stem).substr(first, end - first));
}

std::string textAt(const NumberArray& array, std::uint64_t at)
{
    switch (array.type) {
    case NumberArray::Type::Integer:
        return fmt::format("{}", array.integers[at]);
    case NumberArray::Type::Real: {
        const double value = array.reals[at];
        if (std::floor(value) == value && std::abs(value) < 9e15)
            return fmt::format("{}", static_cast<std::int64_t>(value));
        return fmt::format("{}", value);
    }
    case NumberArray::Type::Text:
        return array.texts[at];
    }
    return {};
}

/// Named arrays as columns of one file.
class ArrayRows final {
public:
    explicit ArrayRows(std::string_view name) { m_file.name = std::string(name); }

    enum class Column { Index, Prediction, Label, Unknown };
    static Column columnOf(const std::string& name)
    {
        const std::string text = lowered(name);
        const auto has = [&text](std::string_view part) {
            return text.find(part) != std::string::npos;
        };
        if (has("ind") || has("idx"))
            return Column::Index;
        if (has("pred") || has("logit") || has("output") || has("prob") || has("answer"))
            return Column::Prediction;
        if (has("label") || has("target") || has("ref") || has("gold"))
            return Column::Label;
        return Column::Unknown;
    }

    Status add(const std::string& name, NumberArray array, Column column)
    {
        std::uint64_t rows = array.shape.empty() ? array.size() : array.shape.front();
        std::uint64_t width = rows == 0 ? 1 : array.size() / rows;
        if (column == Column::Prediction && array.shape.size() == 2 && width > 1 &&
            array.type == NumberArray::Type::Real) {
            m_file.notes.push_back(fmt::format(
                "{}: {} values a row: the place of the largest is the prediction", name, width));
        } else {
            if (array.shape.size() > 1)
                m_file.notes.push_back(fmt::format(
                    "{}: {} dimensions, taken one rank after the other", name, array.shape.size()));
            rows = array.size();
            width = 1;
        }
        if (m_isSet && rows != m_file.rows.size())
            return fail(Error::Kind::Invalid, "E-FOREIGN-012",
                        fmt::format("{}: {} has {} rows, another array {}", m_file.name, name, rows,
                                    m_file.rows.size()));
        m_file.rows.resize(rows);
        for (std::uint64_t i = 0; i < rows; ++i) {
            Row& row = m_file.rows[i];
            switch (column) {
            case Column::Index:
                row.index = integerOf(textAt(array, i));
                break;
            case Column::Label:
                row.label = textAt(array, i);
                row.hasLabel = true;
                break;
            default:
                row.text =
                    width == 1 ? textAt(array, i) : fmt::format("{}", largest(array, i, width));
                m_hasPrediction = true;
                break;
            }
        }
        if (!m_isSet || column == Column::Prediction) {
            for (Row& row : m_file.rows)
                row.hasAnswer = m_hasPrediction;
        }
        m_isSet = true;
        std::string& field = column == Column::Index        ? m_file.indexField
                             : column == Column::Prediction ? m_file.predictionField
                                                            : m_ignored;
        field = name;
        return {};
    }

    Result<ResultFile> take(std::string_view format)
    {
        if (m_file.rows.empty())
            return fail(Error::Kind::Invalid, "E-FOREIGN-006",
                        fmt::format("{} has no rows", m_file.name));
        if (!m_hasPrediction)
            return fail(Error::Kind::Invalid, "E-FOREIGN-003",
                        fmt::format("{}: no array looks like predictions; name it "
                                    "predictions.npy, or with --pred-field",
                                    m_file.name));
        m_file.format = std::string(format);
        return std::move(m_file);
    }
    void note(std::string text) { m_file.notes.push_back(std::move(text)); }

private:
    static std::uint64_t largest(const NumberArray& array, std::uint64_t row, std::uint64_t width)
    {
        const auto first = array.reals.begin() + static_cast<std::ptrdiff_t>(row * width);
        return static_cast<std::uint64_t>(
            std::max_element(first, first + static_cast<std::ptrdiff_t>(width)) - first);
    }
    ResultFile m_file;
    std::string m_ignored;
    bool m_isSet = false;
    bool m_hasPrediction = false;
};

Result<ResultFile> arraysToRows(std::string_view name, std::string_view format,
                                std::vector<std::pair<std::string, NumberArray>> arrays,
                                const FieldNames& fields)
{
    ArrayRows rows(name);
    const bool isAlone = arrays.size() == 1;
    for (auto& [key, array] : arrays) {
        auto column = ArrayRows::columnOf(key);
        if (!fields.prediction.empty() && key == fields.prediction)
            column = ArrayRows::Column::Prediction;
        else if (!fields.index.empty() && key == fields.index)
            column = ArrayRows::Column::Index;
        else if (!fields.label.empty() && key == fields.label)
            column = ArrayRows::Column::Label;
        if (isAlone)
            column = ArrayRows::Column::Prediction;
        if (column == ArrayRows::Column::Unknown) {
            rows.note(fmt::format("{}: neither indices, predictions nor labels by its name; "
                                  "left out",
                                  key));
            continue;
        }
        if (auto added = rows.add(key, std::move(array), column); !added)
            return fail(added.error());
    }
    return rows.take(format);
}

std::string_view withoutMark(std::string_view text)
{
    return text.starts_with("\xEF\xBB\xBF") ? text.substr(3) : text;
}

/// Whether the text is one JSON value and not one on each line.
bool isWholeJson(std::string_view text)
{
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view first = text.substr(0, end);
    const bool isClosed = first.find_last_not_of(" \t\r") != std::string_view::npos &&
                          first[first.find_last_not_of(" \t\r")] == (text[0] == '{' ? '}' : ']');
    const bool hasMore = text.find_first_not_of(" \t\r\n", end) != std::string_view::npos;
    return !isClosed || !hasMore;
}

/// Joins parts of the same format, in order.
Result<ResultFile> joined(std::string name, std::vector<ResultFile> parts)
{
    ResultFile made = std::move(parts.front());
    made.name = std::move(name);
    const std::string first = made.format;
    std::vector<std::size_t> sizes{made.rows.size()};
    for (Row& row : made.rows)
        row.rank = row.rank < 0 ? 0 : row.rank;
    // Parts whose indices begin at 0 again count inside the part only.
    bool isRestarted = false;
    for (std::size_t i = 1; i < parts.size(); ++i) {
        if (parts[i].format != first)
            return fail(Error::Kind::Invalid, "E-FOREIGN-001",
                        fmt::format("{}: parts of different formats, {} and {}", made.name, first,
                                    parts[i].format));
        isRestarted =
            isRestarted || (!parts[i].rows.empty() && !made.indexField.empty() &&
                            parts[i].rows.front().index == std::optional<std::int64_t>(0) &&
                            made.rows.front().index == std::optional<std::int64_t>(0));
        sizes.push_back(parts[i].rows.size());
        for (Row& row : parts[i].rows) {
            row.rank = row.rank < 0 ? static_cast<std::int32_t>(i) : row.rank;
            made.rows.push_back(std::move(row));
        }
        if (made.stated.empty())
            made.stated = std::move(parts[i].stated);
    }
    made.format = fmt::format("{} in {} parts", first, parts.size());
    if (isRestarted) {
        made.notes.push_back("indices begin at 0 in each part: they count inside the part, and the "
                             "parts are taken one after the other");
        made.indexField.clear();
        for (Row& row : made.rows)
            row.index.reset();
    }
    return made;
}

Result<ResultFile> readParts(const std::string& name, std::vector<std::filesystem::path> paths,
                             const FieldNames& fields)
{
    std::ranges::sort(paths, {}, [](const std::filesystem::path& path) {
        return naturalKey(path.filename().string());
    });
    if (paths.empty())
        return fail(Error::Kind::NotFound, "E-FOREIGN-006",
                    fmt::format("{} has no result files", name));
    if (std::ranges::all_of(
            paths, [](const std::filesystem::path& path) { return path.extension() == ".npy"; })) {
        std::vector<std::pair<std::string, NumberArray>> arrays;
        for (const auto& path : paths) {
            auto bytes = readFile(path, largestFile);
            if (!bytes)
                return fail(bytes.error());
            auto array = readNpy(path.string(), *bytes);
            if (!array)
                return fail(array.error());
            arrays.emplace_back(path.stem().string(), std::move(*array));
        }
        return arraysToRows(name, "NumPy arrays", std::move(arrays), fields);
    }
    std::vector<ResultFile> parts;
    std::vector<std::string> names;
    std::vector<std::int64_t> numbers;
    for (const auto& path : paths) {
        auto part = readResultFile(path, fields);
        if (!part)
            return part;
        names.push_back(path.filename().string());
        if (const auto number = lastNumber(path.stem().string()))
            numbers.push_back(*number);
        parts.push_back(std::move(*part));
    }
    if (numbers.size() == paths.size() && numbers.size() > 1) {
        for (std::size_t i = 1; i < numbers.size(); ++i) {
            if (numbers[i] != numbers[i - 1] + 1)
                return fail(Error::Kind::Invalid, "E-FOREIGN-013",
                            fmt::format("{}: part {} is missing between {} and {}", name,
                                        numbers[i - 1] + 1, names[i - 1], names[i]));
        }
        if (numbers.front() != 0 && numbers.front() != 1)
            return fail(Error::Kind::Invalid, "E-FOREIGN-013",
                        fmt::format("{}: parts before {} are missing", name, names.front()));
    }
    if (parts.size() == 1)
        return std::move(parts.front());
    auto made = joined(name, std::move(parts));
    if (made)
        made->parts = std::move(names);
    return made;
}

} // namespace

Result<ResultFile> readResultText(std::string_view name, std::string_view bytes,
                                  const FieldNames& fields)
{
    const std::string extension = lowered(std::filesystem::path(name).extension().string());
    if (bytes.starts_with("\x93NUMPY")) {
        auto array = readNpy(name, bytes);
        if (!array)
            return fail(array.error());
        std::vector<std::pair<std::string, NumberArray>> arrays;
        arrays.emplace_back(std::filesystem::path(name).stem().string(), std::move(*array));
        return arraysToRows(name, "NumPy array", std::move(arrays), fields);
    }
    if (bytes.starts_with("PK\x03\x04") || extension == ".pt" || extension == ".pth" ||
        extension == ".pkl" || extension == ".pickle" || bytes.starts_with("\x80\x02")) {
        auto arrays = readTorch(name, bytes);
        if (!arrays)
            return fail(arrays.error());
        return arraysToRows(name, "torch tensors", std::move(*arrays), fields);
    }
    const std::string_view text = withoutMark(bytes);
    const std::size_t start = text.find_first_not_of(" \t\r\n");
    if (start == std::string_view::npos)
        return fail(Error::Kind::Invalid, "E-FOREIGN-006", fmt::format("{} is empty", name));
    if (extension == ".csv")
        return readDelimited(name, text, ',', fields);
    if (extension == ".tsv")
        return readDelimited(name, text, '\t', fields);
    const std::string_view body = text.substr(start);
    if (body.front() == '{' || body.front() == '[')
        return extension != ".jsonl" && isWholeJson(body) ? readJson(name, body, fields)
                                                          : readJsonl(name, text, fields);
    if (body.front() == '"')
        return extension == ".json" ? readJson(name, body, fields) : readJsonl(name, text, fields);
    if (text.find('\0') != std::string_view::npos)
        return fail(Error::Kind::Invalid, "E-FOREIGN-001",
                    fmt::format("{}: not a format that is known (JSONL, JSON, CSV, TSV, NumPy, "
                                "torch)",
                                name));
    // Plain lines: one prediction each, or columns parted by tabs.
    const std::string_view line = body.substr(0, std::min(body.find('\n'), body.size()));
    return readDelimited(name, text, line.find('\t') != std::string_view::npos ? '\t' : '\0',
                         fields);
}

Result<ResultFile> readResultFile(const std::filesystem::path& target, const FieldNames& fields)
{
    std::error_code error;
    const std::string last = target.filename().string();
    const bool isPattern = last.find_first_of("*?") != std::string::npos;
    if (isPattern || std::filesystem::is_directory(target, error)) {
        const std::filesystem::path folder = isPattern ? target.parent_path() : target;
        constexpr std::array<std::string_view, 7> usual{".jsonl", ".json", ".csv", ".tsv",
                                                        ".npy",   ".pt",   ".pth"};
        std::vector<std::filesystem::path> paths;
        for (const auto& entry : std::filesystem::directory_iterator(
                 folder.empty() ? std::filesystem::path(".") : folder, error)) {
            const std::string file = entry.path().filename().string();
            const bool isMeant =
                isPattern ? fnmatch(last.c_str(), file.c_str(), 0) == 0
                          : std::ranges::find(usual, lowered(entry.path().extension().string())) !=
                                usual.end();
            if (isMeant && entry.is_regular_file(error))
                paths.push_back(entry.path());
        }
        return readParts(target.string(), std::move(paths), fields);
    }
    auto bytes = readFile(target, largestFile);
    if (!bytes)
        return fail(bytes.error());
    return readResultText(target.string(), *bytes, fields);
}

} // namespace muster::foreign
