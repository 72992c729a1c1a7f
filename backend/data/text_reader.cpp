// SPDX-License-Identifier: Apache-2.0
#include "data/text_reader.h"

#include "base/file.h"
#include "data/source_check_p.h"
#include "data/subset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

namespace muster::data {

namespace {

const OddityText blankDocument = {"W-DATA-010", "1 document is empty or holds only blanks",
                                  "{} documents are empty or hold only blanks",
                                  "They stay in the data set and score nothing."};
const OddityText nulCharacter = {"W-DATA-011", "1 document has U+0000 in its text",
                                 "{} documents have U+0000 in their texts",
                                 "The character is kept."};
const OddityText windowsLineEnds = {
    "W-DATA-012", "1 document has line ends CR LF", "{} documents have line ends CR LF",
    "They are kept and tokenised as they are; lm.line_ends = \"lf\" changes them."};
const OddityText unfinishedDocument = {"W-DATA-013", "1 document is not ended by the separator",
                                       "{} documents are not ended by the separator",
                                       "It was treated as the settings say."};

/// Hands out the documents of one file after the other.
class DocumentReader final {
public:
    DocumentReader(const TextOptions& options, Subset subset, const DocumentSink& sink)
        : m_options(options), m_subset(std::move(subset)),
          m_sink(sink), m_names{options.field, options.idField}
    {
        if (options.idField.empty())
            m_names.pop_back();
    }

    [[nodiscard]] Status read(const JsonSource& source)
    {
        m_source = &source;
        m_fileNames.push_back(source.name);
        m_start = byteOrderMarkSize(source.text);
        m_counted = 0;
        m_line = 1;
        if (m_start > 0)
            m_oddities.note(markOddity);
        if (m_start == source.text.size())
            return fail(
                Error::Kind::Invalid, "E-DATA-001",
                fmt::format("{}: the file is empty. Nothing can be evaluated.", source.name));
        auto read = readFile();
        ++m_file;
        return read;
    }

    [[nodiscard]] Result<TextSummary> finish()
    {
        if (m_summary.originalCount == 0)
            return fail(Error::Kind::Invalid, "E-DATA-010",
                        "The files hold no documents. Nothing can be evaluated.");
        if (auto met = m_subset.checkAgainst(m_summary.originalCount, m_idsSeen); !met)
            return fail(std::move(met).error());
        if (m_summary.documents == 0)
            return fail(
                Error::Kind::Invalid, "E-DATA-010",
                fmt::format("Of {} documents the limit leaves none. Nothing can be evaluated.",
                            m_summary.originalCount));
        m_summary.warnings = m_oddities.warnings();
        m_summary.digest = m_digest.result();
        return std::move(m_summary);
    }

private:
    /// Where an id stands.
    struct Place {
        std::size_t file = 0;
        std::uint64_t line = 0;
    };

    [[nodiscard]] std::string_view text() const { return m_source->text; }

    [[nodiscard]] Status readFile()
    {
        switch (m_options.documents) {
        case DocumentRule::WholeFile:
            return hand(m_start, text().size());
        case DocumentRule::HfJoin:
            return readJoined();
        case DocumentRule::Separator:
            return readSeparated();
        case DocumentRule::BlankLines:
            return readParagraphs();
        case DocumentRule::Lines:
            return eachLine(
                [&](std::size_t begin, std::size_t end, std::size_t) { return hand(begin, end); });
        case DocumentRule::Jsonl:
            return readJsonLines();
        }
        return {};
    }

    /// Calls `use` with begin and end of each line without its line end, and the end with it.
    template <typename Use>
    [[nodiscard]] Status eachLine(Use use) const
    {
        std::size_t begin = m_start;
        while (begin < text().size()) {
            const std::size_t newline = text().find('\n', begin);
            const std::size_t next =
                newline == std::string_view::npos ? text().size() : newline + 1;
            std::size_t end = newline == std::string_view::npos ? text().size() : newline;
            if (newline != std::string_view::npos && end > begin && text()[end - 1] == '\r')
                --end;
            if (auto used = use(begin, end, next); !used)
                return used;
            begin = next;
        }
        return {};
    }

    [[nodiscard]] Status readJoined()
    {
        std::string joined;
        bool isFirst = true;
        auto read = eachLine([&](std::size_t begin, std::size_t, std::size_t next) -> Status {
            if (!isFirst)
                joined += "\n\n";
            isFirst = false;
            const std::string_view row = text().substr(begin, next - begin);
            if (!isBlank(row))
                joined += row;
            return {};
        });
        if (!read)
            return read;
        if (auto checked = checkUtf8(*m_source, m_start, text().size()); !checked)
            return checked;
        return handText(m_start, joined, {});
    }

    [[nodiscard]] Status readSeparated()
    {
        std::size_t begin = m_start;
        while (true) {
            const std::size_t end = text().find(m_options.separator, begin);
            if (end == std::string_view::npos)
                break;
            if (auto handed = hand(begin, end); !handed)
                return handed;
            begin = end + m_options.separator.size();
        }
        if (isBlank(text().substr(begin)))
            return {};
        m_oddities.note(unfinishedDocument);
        if (m_options.unfinished == UnfinishedDocument::Drop)
            return checkUtf8(*m_source, begin, text().size());
        return hand(begin, text().size());
    }

    [[nodiscard]] Status readParagraphs()
    {
        std::size_t begin = 0;
        std::size_t end = 0;
        bool isOpen = false;
        auto read = eachLine([&](std::size_t from, std::size_t to, std::size_t) -> Status {
            if (!isBlank(text().substr(from, to - from))) {
                begin = isOpen ? begin : from;
                end = to;
                isOpen = true;
                return {};
            }
            if (!isOpen)
                return {};
            isOpen = false;
            return hand(begin, end);
        });
        if (!read || !isOpen)
            return read;
        return hand(begin, end);
    }

    [[nodiscard]] Status readJsonLines()
    {
        std::optional<std::size_t> blank;
        return eachLine([&](std::size_t begin, std::size_t end, std::size_t) -> Status {
            if (isBlank(text().substr(begin, end - begin))) {
                blank = blank ? blank : begin;
                return {};
            }
            if (blank)
                return fail(Error::Kind::Invalid, "E-DATA-018",
                            fmt::format("{}: a blank line stands between two lines of data. "
                                        "Remove it.",
                                        m_source->place(*blank)));
            if (auto checked = checkUtf8(*m_source, begin, end); !checked)
                return checked;
            auto fields = readJsonLine(*m_source, begin, end, m_names);
            if (!fields)
                return fail(std::move(fields).error());
            const JsonField& field = fields->front();
            if (field.kind == JsonField::Kind::Absent)
                return missing(begin, m_options.field);
            if (field.kind != JsonField::Kind::Text)
                return wrongType(field, m_options.field, "a text");
            std::string id;
            if (m_names.size() > 1) {
                const JsonField& idField = fields->back();
                if (idField.kind == JsonField::Kind::Absent)
                    return missing(begin, m_options.idField);
                if (!idField.isScalar())
                    return wrongType(idField, m_options.idField, "a text or a number");
                id = idField.text;
                const auto [first, isNew] = m_ids.emplace(id, Place{m_file, lineOf(begin)});
                if (!isNew)
                    return fail(Error::Kind::Invalid, "E-DATA-008",
                                fmt::format("{}: the id `{}` was used before, at {}:{}. Ids must "
                                            "be unique over all files of a data set.",
                                            m_source->place(idField.offset), id,
                                            m_fileNames[first->second.file], first->second.line));
            }
            return handText(begin, field.text, std::move(id));
        });
    }

    tl::unexpected<Error> missing(std::size_t offset, const std::string& key) const
    {
        return fail(Error::Kind::Invalid, "E-DATA-007",
                    fmt::format("{}: {}: the field is missing in the object of this line.",
                                m_source->place(offset), key));
    }

    tl::unexpected<Error> wrongType(const JsonField& field, const std::string& key,
                                    std::string_view wanted) const
    {
        return fail(
            Error::Kind::Invalid, "E-DATA-006",
            fmt::format("{}: {}: {} was expected.", m_source->place(field.offset), key, wanted));
    }

    /// Line number of a byte; the bytes asked for only rise.
    std::uint64_t lineOf(std::size_t offset)
    {
        const std::string_view part = text().substr(m_counted, offset - m_counted);
        m_line += static_cast<std::uint64_t>(std::count(part.begin(), part.end(), '\n'));
        m_counted = offset;
        return m_line;
    }

    [[nodiscard]] Status hand(std::size_t begin, std::size_t end)
    {
        if (auto checked = checkUtf8(*m_source, begin, end); !checked)
            return checked;
        return handText(begin, text().substr(begin, end - begin), {});
    }

    [[nodiscard]] Status handText(std::size_t begin, std::string_view content, std::string id)
    {
        const SampleIndex original(m_summary.originalCount++);
        if (id.empty() && m_options.idField.empty())
            id = std::to_string(original.value);
        if (m_subset.namesId(id))
            m_idsSeen.insert(id);
        if (!m_subset.contains(original, id) ||
            (m_options.read.limit && m_summary.documents >= *m_options.read.limit))
            return {};
        const SampleIndex index(m_summary.documents);
        std::string changed;
        if (content.find("\r\n") != std::string_view::npos) {
            if (m_options.lineEnds == LineEnds::Normalise) {
                changed.reserve(content.size());
                for (std::size_t i = 0; i < content.size(); ++i)
                    if (content[i] != '\r' || i + 1 == content.size() || content[i + 1] != '\n')
                        changed.push_back(content[i]);
                content = changed;
            } else {
                m_oddities.note(windowsLineEnds, index);
            }
        }
        if (m_options.ends == DocumentEnds::Strip)
            content = stripped(content);
        if (isBlank(content))
            m_oddities.note(blankDocument, index);
        if (content.find('\0') != std::string_view::npos)
            m_oddities.note(nulCharacter, index);
        const Document document{
            index, original, id, content, m_file, lineOf(begin), documentHash(id, content)};
        ++m_summary.documents;
        m_summary.bytes += content.size();
        m_digest.add(index.value, document.hash);
        return m_sink(document);
    }

    const TextOptions& m_options;
    Subset m_subset;
    const DocumentSink& m_sink;
    std::vector<std::string> m_names;
    const JsonSource* m_source = nullptr;
    std::size_t m_start = 0;
    std::size_t m_file = 0;
    std::size_t m_counted = 0;
    std::uint64_t m_line = 1;
    std::set<std::string> m_idsSeen;
    std::unordered_map<std::string, Place> m_ids;
    std::vector<std::string> m_fileNames;
    OddityCounter m_oddities;
    UnorderedDigest m_digest;
    TextSummary m_summary;
};

[[nodiscard]] Result<DocumentReader> makeReader(std::size_t files, const TextOptions& options,
                                                const DocumentSink& sink)
{
    if (files == 0)
        return fail(Error::Kind::Usage, "E-DATA-016", "No data file was given.");
    if (options.documents == DocumentRule::Separator && options.separator.empty())
        return fail(Error::Kind::Usage, "E-DATA-017",
                    "Documents are to be divided by a separator, but none was given.");
    auto subset = Subset::parse(options.read.subset);
    if (!subset)
        return fail(std::move(subset).error());
    return DocumentReader(options, std::move(*subset), sink);
}

} // namespace

Hash128 documentHash(std::string_view id, std::string_view text)
{
    return Hasher().add(id).add(text).result();
}

Result<TextSummary> readDocuments(std::span<const std::filesystem::path> files,
                                  const TextOptions& options, const DocumentSink& sink)
{
    auto reader = makeReader(files.size(), options, sink);
    if (!reader)
        return fail(std::move(reader).error());
    for (const std::filesystem::path& file : files) {
        auto opened = MappedFile::open(file);
        if (!opened)
            return fail(std::move(opened).error());
        if (auto read = reader->read(JsonSource{file.string(), opened->text()}); !read)
            return fail(std::move(read).error());
    }
    return reader->finish();
}

Result<TextSummary> readDocumentTexts(std::span<const NamedText> texts, const TextOptions& options,
                                      const DocumentSink& sink)
{
    auto reader = makeReader(texts.size(), options, sink);
    if (!reader)
        return fail(std::move(reader).error());
    for (const NamedText& text : texts)
        if (auto read = reader->read(JsonSource{text.name, text.text}); !read)
            return fail(std::move(read).error());
    return reader->finish();
}

} // namespace muster::data
