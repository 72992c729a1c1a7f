// SPDX-License-Identifier: Apache-2.0
#include "data/table_reader.h"

#include "base/file.h"
#include "data/csv_p.h"
#include "data/source_check_p.h"
#include "data/subset.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace muster::data {

namespace {

const OddityText emptyText = {"W-DATA-014", "1 row has an empty text", "{} rows have an empty text",
                              "They are classified like any other."};
const OddityText strayQuote = {
    "W-DATA-015", "1 field has a quotation mark inside but does not start with one",
    "{} fields have quotation marks inside but do not start with one", "The marks are kept."};

/// What a row's parts are called when nobody says; the order is the preference.
constexpr std::array<std::string_view, 10> textNames = {
    "text", "sentence", "sentence1", "content",  "review",
    "body", "premise",  "question1", "question", "title"};
constexpr std::array<std::string_view, 3> pairTexts = {"sentence1", "premise", "question1"};
constexpr std::array<std::string_view, 3> pairNames = {"sentence2", "hypothesis", "question2"};
constexpr std::array<std::string_view, 8> labelNames = {
    "label", "labels", "class", "category", "sentiment", "target", "gold_label", "class index"};

enum Part : std::size_t { TextPart, PairPart, LabelPart, IdPart, GroupPart, PartCount };

std::string lowered(std::string_view text)
{
    std::string low(text);
    std::transform(low.begin(), low.end(), low.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return low;
}

/// Column number from 1, nothing for another word.
std::optional<std::size_t> columnNumber(std::string_view field)
{
    if (field.empty() || field.size() > 6)
        return std::nullopt;
    std::size_t number = 0;
    for (const char c : field) {
        if (c < '0' || c > '9')
            return std::nullopt;
        number = number * 10 + static_cast<std::size_t>(c - '0');
    }
    return number;
}

template <typename Names>
std::optional<std::size_t> columnByName(const std::vector<std::string>& header, const Names& names)
{
    for (const std::string_view name : names)
        for (std::size_t i = 0; i < header.size(); ++i)
            if (lowered(stripped(header[i])) == name)
                return i;
    return std::nullopt;
}

/// One row before it is added.
struct RawRow {
    std::size_t offset = 0;
    std::string text;
    std::optional<std::string> pair;
    std::vector<std::string> labels;
    bool hasLabelList = false;
    std::optional<std::string> id;
    std::string group;
};

/// Collects the rows of all files.
class TableBuilder final {
public:
    TableBuilder(const TableOptions& options, Subset subset)
        : m_options(options), m_subset(std::move(subset))
    {
    }

    [[nodiscard]] const TableOptions& options() const { return m_options; }
    Table& table() { return m_table; }
    OddityCounter& oddities() { return m_oddities; }
    [[nodiscard]] std::uint64_t nextRow() const { return m_table.originalCount + 1; }
    void note(std::string sentence) { m_table.notes.push_back(std::move(sentence)); }

    [[nodiscard]] Status add(const JsonSource& source, RawRow&& raw)
    {
        TableRow row;
        row.original = SampleIndex(m_table.originalCount++);
        row.id = raw.id ? std::move(*raw.id) : std::to_string(row.original.value);
        if (raw.id && !m_ids.insert(row.id).second)
            return fail(Error::Kind::Invalid, "E-DATA-008",
                        fmt::format("{}: row {}: the id `{}` was used before. Ids must be unique "
                                    "over all files of a data set.",
                                    source.place(raw.offset), m_table.originalCount, row.id));
        if (m_subset.namesId(row.id))
            m_idsSeen.insert(row.id);
        if (auto divided = divideLabels(source, raw); !divided)
            return divided;
        if (!m_subset.contains(row.original, row.id) ||
            (m_options.read.limit && m_table.rows.size() >= *m_options.read.limit))
            return {};
        row.index = SampleIndex(m_table.rows.size());
        row.text = std::move(raw.text);
        row.pair = std::move(raw.pair);
        row.labels = std::move(raw.labels);
        row.group = std::move(raw.group);
        if (isBlank(row.text))
            m_oddities.note(emptyText, row.index);
        for (const std::string& label : row.labels)
            if (m_labels.insert(label).second)
                m_table.labelNames.push_back(label);
        row.hash = rowHash(row);
        m_digest.add(row.index.value, row.hash);
        m_table.rows.push_back(std::move(row));
        return {};
    }

    [[nodiscard]] Result<Table> finish()
    {
        if (m_table.originalCount == 0)
            return fail(Error::Kind::Invalid, "E-DATA-010",
                        "The files hold no rows. Nothing can be evaluated.");
        if (auto met = m_subset.checkAgainst(m_table.originalCount, m_idsSeen); !met)
            return fail(std::move(met).error());
        if (m_table.rows.empty())
            return fail(Error::Kind::Invalid, "E-DATA-010",
                        fmt::format("Of {} rows the limit leaves none. Nothing can be evaluated.",
                                    m_table.originalCount));
        m_table.warnings = m_oddities.warnings();
        m_table.digest = m_digest.result();
        return std::move(m_table);
    }

private:
    [[nodiscard]] Status divideLabels(const JsonSource& source, RawRow& raw)
    {
        if (!m_options.labelSeparator.empty() && !raw.hasLabelList && raw.labels.size() == 1) {
            const std::string all = std::move(raw.labels.front());
            raw.labels.clear();
            raw.hasLabelList = true;
            std::size_t begin = 0;
            while (begin <= all.size()) {
                const std::size_t end =
                    std::min(all.find(m_options.labelSeparator, begin), all.size());
                const std::string_view label =
                    stripped(std::string_view(all).substr(begin, end - begin));
                if (!label.empty())
                    raw.labels.emplace_back(label);
                begin = end + m_options.labelSeparator.size();
            }
        }
        m_table.isMultiLabel = m_table.isMultiLabel || raw.hasLabelList;
        if (!raw.hasLabelList && (raw.labels.empty() || isBlank(raw.labels.front())))
            return fail(Error::Kind::Invalid, "E-DATA-024",
                        fmt::format("{}: row {} has no label.", source.place(raw.offset),
                                    m_table.originalCount));
        return {};
    }

    const TableOptions& m_options;
    Subset m_subset;
    Table m_table;
    OddityCounter m_oddities;
    UnorderedDigest m_digest;
    std::set<std::string> m_idsSeen;
    std::unordered_set<std::string> m_ids;
    std::unordered_set<std::string> m_labels;
};

tl::unexpected<Error> blankLine(const JsonSource& source, std::size_t offset)
{
    return fail(Error::Kind::Invalid, "E-DATA-018",
                fmt::format("{}: a blank line stands between two lines of data. Remove it.",
                            source.place(offset)));
}

/// Calls `use` with begin and end of each line that is not blank, without its line end; a blank
/// line between two others is an error.
template <typename Use>
Status eachDataLine(const JsonSource& source, std::size_t begin, Use use)
{
    const std::string_view text = source.text;
    std::optional<std::size_t> blank;
    while (begin < text.size()) {
        const std::size_t newline = std::min(text.find('\n', begin), text.size());
        std::size_t end = newline;
        if (end > begin && newline < text.size() && text[end - 1] == '\r')
            --end;
        if (isBlank(text.substr(begin, end - begin))) {
            blank = blank ? blank : begin;
        } else {
            if (blank)
                return blankLine(source, *blank);
            if (auto checked = checkUtf8(source, begin, end); !checked)
                return checked;
            if (auto used = use(begin, end); !used)
                return used;
        }
        begin = newline + 1;
    }
    return {};
}

/// `label text`: what stands before the first blank is the label.
Status readLabelText(const JsonSource& source, std::size_t start, TableBuilder& builder)
{
    return eachDataLine(source, start, [&](std::size_t begin, std::size_t end) -> Status {
        const std::string_view line = source.text.substr(begin, end - begin);
        const std::size_t blank = std::min(line.find_first_of(" \t"), line.size());
        RawRow row;
        row.offset = begin;
        row.labels.emplace_back(line.substr(0, blank));
        row.text.assign(line.substr(std::min(blank + 1, line.size())));
        return builder.add(source, std::move(row));
    });
}

class JsonTableReader final {
public:
    JsonTableReader(const JsonSource& source, TableBuilder& builder)
        : m_source(source), m_builder(builder), m_options(builder.options())
    {
    }

    [[nodiscard]] Status read(std::size_t start)
    {
        bool isFirst = true;
        return eachDataLine(m_source, start, [&](std::size_t begin, std::size_t end) -> Status {
            if (isFirst) {
                isFirst = false;
                if (auto found = findKeys(begin, end); !found)
                    return found;
            }
            auto fields = readJsonLine(m_source, begin, end, m_keys);
            if (!fields)
                return fail(std::move(fields).error());
            return addRow(begin, *fields);
        });
    }

private:
    /// Decides which keys hold what, by the first line.
    [[nodiscard]] Status findKeys(std::size_t begin, std::size_t end)
    {
        const std::array<std::string, PartCount> wanted = {m_options.textField, m_options.pairField,
                                                           m_options.labelField, m_options.idField,
                                                           m_options.groupField};
        m_keys.assign(wanted.begin(), wanted.end());
        const auto find = [&](Part part, std::span<const std::string_view> names) -> Status {
            if (!m_keys[part].empty())
                return {};
            const std::vector<std::string> candidates(names.begin(), names.end());
            auto fields = readJsonLine(m_source, begin, end, candidates);
            if (!fields)
                return fail(std::move(fields).error());
            for (std::size_t i = 0; i < candidates.size() && m_keys[part].empty(); ++i)
                if ((*fields)[i].kind != JsonField::Kind::Absent)
                    m_keys[part] = candidates[i];
            return {};
        };
        const bool findsText = m_keys[TextPart].empty();
        if (auto found = find(TextPart, textNames); !found)
            return found;
        if (auto found = find(LabelPart, labelNames); !found)
            return found;
        for (std::size_t i = 0; findsText && i < pairTexts.size(); ++i)
            if (m_keys[TextPart] == pairTexts[i])
                if (auto found = find(PairPart, std::span(&pairNames[i], 1)); !found)
                    return found;
        for (const Part part : {TextPart, LabelPart})
            if (m_keys[part].empty())
                return fail(Error::Kind::Invalid, "E-DATA-020",
                            fmt::format("{}: no field of the first line has a name that is known "
                                        "for {}. Name it with classification.{}.",
                                        m_source.place(begin),
                                        part == TextPart ? "a text" : "a label",
                                        part == TextPart ? "text_field" : "label_field"));
        if (m_builder.nextRow() == 1 && (findsText || m_options.labelField.empty()))
            m_builder.note(fmt::format(
                "The text is the field `{}`{}, the label is the field `{}`.", m_keys[TextPart],
                m_keys[PairPart].empty() ? std::string()
                                         : fmt::format(" with `{}`", m_keys[PairPart]),
                m_keys[LabelPart]));
        return {};
    }

    [[nodiscard]] Status addRow(std::size_t begin, std::vector<JsonField>& fields)
    {
        RawRow row;
        row.offset = begin;
        constexpr std::array<Part, PartCount> parts = {TextPart, PairPart, LabelPart, IdPart,
                                                       GroupPart};
        for (const Part part : parts) {
            if (m_keys[part].empty())
                continue;
            JsonField& field = fields[part];
            if (field.kind == JsonField::Kind::Absent)
                return refuse("E-DATA-007", begin,
                              fmt::format("{}: the field is missing", m_keys[part]));
            if (part == LabelPart && field.kind == JsonField::Kind::List) {
                row.labels = std::move(field.list);
                row.hasLabelList = true;
                continue;
            }
            if (part == LabelPart && field.kind == JsonField::Kind::Null)
                continue;
            if (!field.isScalar() || (part <= PairPart && field.kind != JsonField::Kind::Text))
                return refuse("E-DATA-006", field.offset,
                              fmt::format("{}: a text{} was expected", m_keys[part],
                                          part <= PairPart ? "" : " or a number"));
            put(row, part, std::move(field.text));
        }
        return m_builder.add(m_source, std::move(row));
    }

    static void put(RawRow& row, Part part, std::string text)
    {
        switch (part) {
        case TextPart:
            row.text = std::move(text);
            break;
        case PairPart:
            row.pair = std::move(text);
            break;
        case LabelPart:
            row.labels.push_back(std::move(text));
            break;
        case IdPart:
            row.id = std::move(text);
            break;
        default:
            row.group = std::move(text);
        }
    }

    tl::unexpected<Error> refuse(const char* code, std::size_t offset, std::string_view what) const
    {
        return fail(
            Error::Kind::Invalid, code,
            fmt::format("{}: row {}: {}.", m_source.place(offset), m_builder.nextRow(), what));
    }

    const JsonSource& m_source;
    TableBuilder& m_builder;
    const TableOptions& m_options;
    std::vector<std::string> m_keys;
};

/// How a delimited file is written; the same for all files of a table.
struct Dialect {
    char delimiter = ',';
    CsvQuotes quotes = CsvQuotes::Rfc4180;
    bool hasHeader = false;
    std::size_t columns = 0;
    std::array<std::optional<std::size_t>, PartCount> column;
};

class DelimitedReader final {
public:
    DelimitedReader(TableBuilder& builder, Dialect& dialect)
        : m_builder(builder), m_options(builder.options()), m_dialect(dialect)
    {
    }

    [[nodiscard]] Status read(const JsonSource& source, std::size_t start, bool isFirst)
    {
        m_source = &source;
        if (auto checked = checkUtf8(source, start, source.text.size()); !checked)
            return checked;
        CsvScanner scan(source.text, start, m_dialect.delimiter, m_dialect.quotes);
        std::vector<CsvField> fields;
        if (isFirst) {
            if (auto read = readRecord(scan, fields); !read)
                return read;
            if (auto decided = decide(fields); !decided)
                return decided;
            if (!m_dialect.hasHeader)
                scan = CsvScanner(source.text, start, m_dialect.delimiter, m_dialect.quotes);
        } else if (m_dialect.hasHeader) {
            if (auto read = readRecord(scan, fields); !read)
                return read;
            if (names(fields) != m_builder.table().header)
                return fail(Error::Kind::Invalid, "E-DATA-025",
                            fmt::format("{}: the header differs from that of the first file.",
                                        source.name));
        }
        std::optional<std::size_t> blank;
        while (!scan.atEnd()) {
            const std::size_t offset = scan.at();
            if (auto read = readRecord(scan, fields); !read)
                return read;
            if (fields.size() == 1 && isBlank(source.text.substr(offset, scan.at() - offset))) {
                blank = blank ? blank : offset;
                continue;
            }
            if (blank)
                return blankLine(source, *blank);
            if (auto added = addRow(offset, fields); !added)
                return added;
        }
        for (std::uint64_t i = 0; i < scan.strayQuotes(); ++i)
            m_builder.oddities().note(strayQuote);
        return {};
    }

private:
    static std::vector<std::string> names(const std::vector<CsvField>& fields)
    {
        std::vector<std::string> names;
        for (const CsvField& field : fields)
            names.emplace_back(stripped(field.text));
        return names;
    }

    [[nodiscard]] Status readRecord(CsvScanner& scan, std::vector<CsvField>& fields) const
    {
        switch (scan.readRecord(fields)) {
        case CsvScanner::Fault::OpenQuote:
            return refuse("E-DATA-022", scan.at(),
                          "the quotation mark that opens this field is never closed. If marks are "
                          "mere characters in this file, set classification.quotes = \"literal\"");
        case CsvScanner::Fault::BehindQuote:
            return refuse("E-DATA-023", scan.at(),
                          "something stands behind the closing quotation mark of a field; a mark "
                          "inside of a field is written twice. If marks are mere characters in "
                          "this file, set classification.quotes = \"literal\"");
        case CsvScanner::Fault::None:
            break;
        }
        return {};
    }

    tl::unexpected<Error> refuse(const char* code, std::size_t offset, std::string_view what) const
    {
        return fail(
            Error::Kind::Invalid, code,
            fmt::format("{}: row {}: {}.", m_source->place(offset), m_builder.nextRow(), what));
    }

    [[nodiscard]] Status decide(const std::vector<CsvField>& fields)
    {
        const std::vector<std::string> first = names(fields);
        m_dialect.columns = first.size();
        m_dialect.hasHeader = m_options.header == HeaderRule::Present ||
                              (m_options.header == HeaderRule::Auto && looksLikeHeader(first));
        if (m_options.header == HeaderRule::Auto)
            m_builder.note(m_dialect.hasHeader
                               ? fmt::format("The first record was taken for a header: {}.",
                                             fmt::join(first, ", "))
                               : std::string("The first record was taken for data, as it has no "
                                             "known column names."));
        if (m_dialect.hasHeader)
            m_builder.table().header = first;
        return findColumns(first);
    }

    /// A header has a name that was asked for, or names that are known, and no name twice.
    [[nodiscard]] bool looksLikeHeader(const std::vector<std::string>& first) const
    {
        const std::set<std::string> distinct(first.begin(), first.end());
        if (distinct.size() != first.size() || distinct.count("") != 0)
            return false;
        for (const std::string* field :
             {&m_options.textField, &m_options.pairField, &m_options.labelField, &m_options.idField,
              &m_options.groupField})
            if (!field->empty() && !columnNumber(*field))
                return true;
        return columnByName(first, labelNames) ||
               (first.size() > 1 && columnByName(first, textNames));
    }

    [[nodiscard]] Status findColumns(const std::vector<std::string>& first)
    {
        const std::array<const std::string*, PartCount> wanted = {
            &m_options.textField, &m_options.pairField, &m_options.labelField, &m_options.idField,
            &m_options.groupField};
        const std::vector<std::string> header =
            m_dialect.hasHeader ? first : std::vector<std::string>{};
        auto& column = m_dialect.column;
        for (std::size_t part = 0; part < PartCount; ++part) {
            const std::string& name = *wanted[part];
            if (name.empty())
                continue;
            const auto at = std::find(header.begin(), header.end(), name);
            if (at != header.end())
                column[part] = static_cast<std::size_t>(at - header.begin());
            else if (const auto number = columnNumber(name);
                     number && *number >= 1 && *number <= m_dialect.columns)
                column[part] = *number - 1;
            else
                return noColumn(fmt::format("there is no field `{}`", name), first);
        }
        const bool findsText = !column[TextPart];
        const bool findsLabel = !column[LabelPart];
        if (findsText)
            column[TextPart] = columnByName(header, textNames);
        if (findsLabel)
            column[LabelPart] = columnByName(header, labelNames);
        if (!column[TextPart])
            return noColumn(
                "which field is the text is not known; say it with classification.text_field",
                first);
        if (!column[LabelPart])
            return noColumn(
                "which field is the label is not known; say it with classification.label_field",
                first);
        if (findsText && !column[PairPart]) {
            const std::string text = lowered(header[*column[TextPart]]);
            for (std::size_t i = 0; i < pairTexts.size(); ++i)
                if (text == pairTexts[i])
                    column[PairPart] = columnByName(header, std::span(&pairNames[i], 1));
        }
        if (findsText || findsLabel)
            m_builder.note(fmt::format("The text is the field `{}`{}, the label is the field `{}`.",
                                       first[*column[TextPart]],
                                       column[PairPart]
                                           ? fmt::format(" with `{}`", first[*column[PairPart]])
                                           : std::string(),
                                       first[*column[LabelPart]]));
        return {};
    }

    tl::unexpected<Error> noColumn(std::string_view what,
                                   const std::vector<std::string>& first) const
    {
        std::string columns;
        for (std::size_t i = 0; i < first.size(); ++i) {
            constexpr std::size_t shown = 40;
            std::string cell = first[i];
            if (cell.size() > shown) {
                // Cut between characters.
                std::size_t end = shown;
                while ((static_cast<unsigned char>(cell[end]) & 0xC0U) == 0x80U)
                    --end;
                cell = cell.substr(0, end) + "…";
            }
            columns += fmt::format("{}{} `{}`", i == 0 ? "" : ", ", i + 1, cell);
        }
        return fail(Error::Kind::Invalid, "E-DATA-020",
                    fmt::format("{}: {}. The fields of the first record are: {}.", m_source->name,
                                what, columns));
    }

    [[nodiscard]] Status addRow(std::size_t offset, std::vector<CsvField>& fields)
    {
        if (fields.size() != m_dialect.columns)
            return refuse("E-DATA-021", offset,
                          fmt::format("{} field{} instead of {}", fields.size(),
                                      fields.size() == 1 ? "" : "s", m_dialect.columns));
        // Two parts may be the same column, so texts are copied.
        const auto& column = m_dialect.column;
        RawRow row;
        row.offset = offset;
        row.text = fields[*column[TextPart]].text;
        if (column[PairPart])
            row.pair = fields[*column[PairPart]].text;
        row.labels.emplace_back(stripped(fields[*column[LabelPart]].text));
        if (column[IdPart])
            row.id = fields[*column[IdPart]].text;
        if (column[GroupPart])
            row.group = fields[*column[GroupPart]].text;
        return m_builder.add(*m_source, std::move(row));
    }

    TableBuilder& m_builder;
    const TableOptions& m_options;
    Dialect& m_dialect;
    const JsonSource* m_source = nullptr;
};

/// Every one of the first lines is a whole number, one blank, and a text.
bool looksLikeLabelText(std::string_view text)
{
    constexpr int looked = 20;
    int seen = 0;
    while (!text.empty() && seen < looked) {
        const std::size_t newline = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, newline);
        text.remove_prefix(std::min(newline + 1, text.size()));
        if (isBlank(line))
            continue;
        std::size_t digits = line.front() == '-' ? 1 : 0;
        const std::size_t start = digits;
        while (digits < line.size() && line[digits] >= '0' && line[digits] <= '9')
            ++digits;
        if (digits == start || digits >= line.size() || line[digits] != ' ')
            return false;
        ++seen;
    }
    return seen > 0;
}

TableFormat formatOf(const JsonSource& source, std::size_t start)
{
    const std::string name = lowered(source.name);
    std::string_view head = source.text.substr(start);
    const std::size_t first = std::min(head.find_first_not_of(" \t\r\n"), head.size());
    const std::string_view line = head.substr(0, std::min(head.find('\n'), head.size()));
    if (name.ends_with(".jsonl") || name.ends_with(".ndjson") ||
        (first < head.size() && head[first] == '{' && !name.ends_with(".csv") &&
         !name.ends_with(".tsv")))
        return TableFormat::Jsonl;
    if (!name.ends_with(".csv") && !name.ends_with(".tsv") &&
        line.find('\t') == std::string_view::npos && looksLikeLabelText(head))
        return TableFormat::LabelText;
    return TableFormat::Delimited;
}

Result<Table> readSources(std::span<const JsonSource> sources, const TableOptions& options)
{
    auto subset = Subset::parse(options.read.subset);
    if (!subset)
        return fail(std::move(subset).error());
    TableBuilder builder(options, std::move(*subset));
    Dialect dialect;
    TableFormat format = options.format;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        const JsonSource& source = sources[i];
        const std::size_t start = byteOrderMarkSize(source.text);
        if (start > 0)
            builder.oddities().note(markOddity);
        if (isBlank(source.text.substr(start)))
            return fail(
                Error::Kind::Invalid, "E-DATA-001",
                fmt::format("{}: the file is empty. Nothing can be evaluated.", source.name));
        if (format == TableFormat::Auto) {
            // A file in UTF-16 would look like anything.
            constexpr std::size_t looked = 4;
            if (auto checked = checkUtf8(source, 0, std::min(looked, source.text.size()));
                !checked && source.text.substr(0, 1).find_first_of("\xFE\xFF") == 0)
                return fail(std::move(checked).error());
            format = formatOf(source, start);
            if (format == TableFormat::LabelText &&
                !(options.textField + options.labelField).empty())
                format = TableFormat::Delimited;
            builder.note(format == TableFormat::Jsonl ? "The file was taken for JSON lines."
                         : format == TableFormat::LabelText
                             ? "Each line was taken for a label, a blank and a text."
                             : "The file was taken for delimited text.");
        }
        builder.table().format = format;
        Status read;
        if (format == TableFormat::Jsonl) {
            read = JsonTableReader(source, builder).read(start);
        } else if (format == TableFormat::LabelText) {
            read = readLabelText(source, start, builder);
        } else {
            if (i == 0) {
                dialect.quotes =
                    options.quotes == QuoteRule::Literal ? CsvQuotes::Literal : CsvQuotes::Rfc4180;
                if (options.delimiter.empty()) {
                    const DelimiterGuess guess = guessDelimiter(source.text.substr(start));
                    dialect.delimiter = guess.delimiter;
                    builder.note(fmt::format("The delimiter was taken to be {}: {}.",
                                             guess.delimiter == '\t'
                                                 ? std::string("a tab")
                                                 : fmt::format("`{}`", guess.delimiter),
                                             guess.reason));
                } else {
                    dialect.delimiter = options.delimiter.front();
                }
            }
            read = DelimitedReader(builder, dialect).read(source, start, i == 0);
        }
        if (!read)
            return fail(std::move(read).error());
    }
    return builder.finish();
}

/// Reads again with literal quotation marks when a tab-separated table is no valid RFC 4180.
Result<Table> readWithFallback(std::span<const JsonSource> sources, const TableOptions& options)
{
    if (sources.empty())
        return fail(Error::Kind::Usage, "E-DATA-016", "No data file was given.");
    if (options.delimiter.size() > 1 || options.delimiter == "\n" || options.delimiter == "\"")
        return fail(Error::Kind::Usage, "E-DATA-019",
                    "The delimiter must be one character such as `,` or a tab.");
    auto table = readSources(sources, options);
    if (table || options.quotes != QuoteRule::Auto)
        return table;
    const std::string& code = table.error().code;
    if (code != "E-DATA-021" && code != "E-DATA-022" && code != "E-DATA-023")
        return table;
    const std::string_view text = sources.front().text;
    const char delimiter = options.delimiter.empty()
                               ? guessDelimiter(text.substr(byteOrderMarkSize(text))).delimiter
                               : options.delimiter.front();
    if (delimiter != '\t')
        return table;
    TableOptions literal = options;
    literal.quotes = QuoteRule::Literal;
    auto again = readSources(sources, literal);
    if (!again)
        return table;
    again->notes.emplace_back("Quotation marks were taken for mere characters, as the file does "
                              "not follow RFC 4180.");
    return again;
}

} // namespace

Hash128 rowHash(const TableRow& row)
{
    Hasher hasher;
    hasher.add(std::string_view(row.id)).add(std::string_view(row.text));
    hasher.add(std::uint64_t{row.pair ? 1U : 0U});
    hasher.add(row.pair ? std::string_view(*row.pair) : std::string_view());
    hasher.add(std::uint64_t{row.labels.size()});
    for (const std::string& label : row.labels)
        hasher.add(std::string_view(label));
    return hasher.result();
}

Result<Table> readTable(std::span<const std::filesystem::path> files, const TableOptions& options)
{
    const auto mapped = mapSources(files);
    if (!mapped)
        return fail(mapped.error());
    return readWithFallback(mapped->sources, options);
}

Result<Table> readTableTexts(std::span<const NamedText> texts, const TableOptions& options)
{
    return readWithFallback(sourcesOf(texts), options);
}

} // namespace muster::data
