// SPDX-License-Identifier: Apache-2.0
#include "data/squad_reader.h"

#include "base/file.h"
#include "base/utf8.h"
#include "data/json_source_p.h"
#include "data/subset.h"

#define SIMDJSON_EXCEPTIONS 0
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <set>
#include <unordered_map>

namespace muster::data {

namespace {

using simdjson::ondemand::value;

constexpr std::string_view byteOrderMark = "\xEF\xBB\xBF";

/// The oddities that are counted; the order is that of the codes.
enum class Oddity {
    WrongStart,
    NoSubstring,
    EmptyContext,
    NulCharacter,
    NumericAnswer,
    NumericId,
    ByteOrderMark,
    FlagContradicts,
    EmptyAnswer,
    Count
};

struct OddityText {
    const char* code;
    const char* one;
    const char* many;
    const char* treatment;
};

constexpr std::array<OddityText, static_cast<std::size_t>(Oddity::Count)> oddityTexts{{
    {"W-DATA-001", "1 answer does not stand at its answer_start but elsewhere in its context",
     "{} answers do not stand at their answer_start but elsewhere in their contexts",
     "Texts are scored as they are; the offset is kept and not used for scoring."},
    {"W-DATA-002", "1 answer is no substring of its context",
     "{} answers are no substrings of their contexts",
     "They stay references and are scored as they are."},
    {"W-DATA-003", "1 question has an empty context", "{} questions have an empty context",
     "They stay in the data set; their prediction is the empty text."},
    {"W-DATA-004", "1 question has U+0000 in one of its texts",
     "{} questions have U+0000 in one of their texts", "The character is kept."},
    {"W-DATA-005", "1 answer text is a number and not a string",
     "{} answer texts are numbers and not strings", "The digits of the file are the text."},
    {"W-DATA-006", "1 id is a number and not a string", "{} ids are numbers and not strings",
     "The digits of the file are the id."},
    {"W-DATA-007", "1 file starts with a byte-order mark", "{} files start with a byte-order mark",
     "It is skipped."},
    {"W-DATA-008", "1 question has an is_impossible that contradicts its list of answers",
     "{} questions have an is_impossible that contradicts their list of answers",
     "The list decides, as in the official scoring."},
    {"W-DATA-009", "1 answer text is empty", "{} answer texts are empty",
     "It stays a reference and is scored as it is."},
}};

/// Counts one kind of oddity.
struct OddityCount {
    std::uint64_t count = 0;
    std::vector<SampleIndex> first20;
};

/// One step of a JSON path. A key is borrowed from a literal; an index stands alone.
struct PathStep {
    std::string_view key;
    std::uint64_t index = 0;
};

/// Where a sample stands in the files, for the message about a duplicate id.
struct Place {
    std::size_t source = 0;
    std::size_t offset = 0;
};

/// A question before its paragraph is complete (`context` may follow `qas`).
struct PendingSample {
    Sample sample;
    std::size_t idOffset = 0;
    bool hasNulCharacter = false;
    bool idIsNumber = false;
    std::uint64_t numericAnswers = 0;
    std::optional<bool> flag;
};

struct Hash128Hash {
    std::size_t operator()(const Hash128& hash) const noexcept
    {
        return static_cast<std::size_t>(hash.low);
    }
};

std::string_view trimmedToken(std::string_view token)
{
    const std::size_t last = token.find_last_not_of(" \t\r\n");
    return last == std::string_view::npos ? std::string_view{} : token.substr(0, last + 1);
}

/// Collects the samples of all sources.
class DatasetBuilder final {
public:
    DatasetBuilder(const ReadOptions& options, Subset subset)
        : m_subset(std::move(subset)), m_limit(options.limit)
    {
    }

    [[nodiscard]] std::uint64_t seen() const { return m_dataset.originalCount; }
    void noteVersion(std::string version)
    {
        if (m_dataset.version.empty())
            m_dataset.version = std::move(version);
    }
    void noteByteOrderMark() { ++count(Oddity::ByteOrderMark).count; }

    /// The place of the sample that has this id already, otherwise remembers `place` for it.
    [[nodiscard]] std::optional<Place> claimId(const std::string& id, Place place)
    {
        const auto [at, isNew] = m_places.emplace(id, place);
        return isNew ? std::nullopt : std::optional(at->second);
    }

    void beginParagraph(std::string context, std::string_view title)
    {
        m_context = std::move(context);
        m_title = title;
        m_contextIndex.reset();
        m_offsets.clear();
        m_contextIsAscii = std::none_of(m_context.begin(), m_context.end(), [](char c) {
            return (static_cast<unsigned char>(c) & 0x80U) != 0;
        });
        m_contextHasNul = m_context.find('\0') != std::string::npos;
    }

    [[nodiscard]] Status add(PendingSample& pending)
    {
        Sample& sample = pending.sample;
        sample.original = SampleIndex(m_dataset.originalCount++);
        if (m_subset.namesId(sample.id))
            m_idsSeen.insert(sample.id);
        if (!m_subset.contains(sample.original, sample.id))
            return {};
        if (m_limit && m_dataset.samples.size() >= *m_limit)
            return {};
        sample.index = SampleIndex(m_dataset.samples.size());
        if (!m_contextIndex) {
            auto index = internContext();
            if (!index)
                return fail(std::move(index).error());
            m_contextIndex = *index;
        }
        sample.context = *m_contextIndex;
        sample.isImpossible = sample.answers.empty();
        countOddities(pending);
        sample.hash = sampleHash(sample, m_context);
        m_dataset.hasUnanswerable = m_dataset.hasUnanswerable || sample.isImpossible;
        m_dataset.samples.push_back(std::move(sample));
        return {};
    }

    [[nodiscard]] Result<Dataset> finish()
    {
        if (auto met = m_subset.checkAgainst(m_dataset.originalCount, m_idsSeen); !met)
            return fail(std::move(met).error());
        if (m_dataset.samples.empty())
            return fail(
                Error::Kind::Invalid, "E-DATA-010",
                fmt::format("Of {} samples the limit leaves none. Nothing can be evaluated.",
                            m_dataset.originalCount));
        for (std::size_t i = 0; i < oddityTexts.size(); ++i) {
            OddityCount& found = m_oddities[i];
            if (found.count == 0)
                continue;
            const OddityText& text = oddityTexts[i];
            const std::string what =
                found.count == 1 ? text.one : fmt::format(fmt::runtime(text.many), found.count);
            m_dataset.warnings.push_back(Warning{text.code,
                                                 fmt::format("{}. {}", what, text.treatment),
                                                 found.count, std::move(found.first20)});
        }
        m_dataset.digest = datasetDigest(m_dataset.samples);
        return std::move(m_dataset);
    }

private:
    OddityCount& count(Oddity oddity) { return m_oddities[static_cast<std::size_t>(oddity)]; }

    void count(Oddity oddity, SampleIndex sample, std::uint64_t times = 1)
    {
        constexpr std::size_t shown = 20;
        if (times == 0)
            return;
        OddityCount& found = count(oddity);
        found.count += times;
        if (found.first20.size() < shown &&
            (found.first20.empty() || found.first20.back() != sample))
            found.first20.push_back(sample);
    }

    Result<std::uint32_t> internContext()
    {
        const Hash128 hash = hash128(std::string_view(m_context));
        const auto [first, last] = m_contextsByHash.equal_range(hash);
        for (auto it = first; it != last; ++it) {
            if (m_dataset.contexts[it->second] == m_context)
                return it->second;
        }
        if (m_dataset.contexts.size() >= std::numeric_limits<std::uint32_t>::max())
            return fail(Error::Kind::Invalid, "E-DATA-015",
                        "The data set has more than 4,294,967,295 distinct contexts.");
        const auto index = static_cast<std::uint32_t>(m_dataset.contexts.size());
        m_dataset.contexts.push_back(m_context);
        m_dataset.titles.emplace_back(m_title);
        m_contextsByHash.emplace(hash, index);
        return index;
    }

    [[nodiscard]] bool standsAtStart(const Answer& answer)
    {
        if (answer.start < 0)
            return false;
        auto at = static_cast<std::uint64_t>(answer.start);
        if (!m_contextIsAscii) {
            if (m_offsets.empty())
                m_offsets = utf8::codePointOffsets(m_context);
            if (at >= m_offsets.size())
                return false;
            at = m_offsets[static_cast<std::size_t>(at)];
        }
        return at <= m_context.size() && m_context.compare(static_cast<std::size_t>(at),
                                                           answer.text.size(), answer.text) == 0;
    }

    void countOddities(const PendingSample& pending)
    {
        const Sample& sample = pending.sample;
        for (const Answer& answer : sample.answers) {
            if (answer.text.empty())
                count(Oddity::EmptyAnswer, sample.index);
            if (standsAtStart(answer))
                continue;
            const bool isInside = m_context.find(answer.text) != std::string::npos;
            count(isInside ? Oddity::WrongStart : Oddity::NoSubstring, sample.index);
        }
        count(Oddity::EmptyContext, sample.index, m_context.empty() ? 1 : 0);
        count(Oddity::NulCharacter, sample.index,
              pending.hasNulCharacter || m_contextHasNul ? 1 : 0);
        count(Oddity::NumericAnswer, sample.index, pending.numericAnswers);
        count(Oddity::NumericId, sample.index, pending.idIsNumber ? 1 : 0);
        count(Oddity::FlagContradicts, sample.index,
              pending.flag && *pending.flag != sample.isImpossible ? 1 : 0);
    }

    Subset m_subset;
    std::optional<std::uint64_t> m_limit;
    Dataset m_dataset;
    std::array<OddityCount, static_cast<std::size_t>(Oddity::Count)> m_oddities;
    std::unordered_map<std::string, Place> m_places;
    std::unordered_multimap<Hash128, std::uint32_t, Hash128Hash> m_contextsByHash;
    std::set<std::string> m_idsSeen;
    std::string m_context;
    std::string_view m_title;
    std::optional<std::uint32_t> m_contextIndex;
    std::vector<std::size_t> m_offsets;
    bool m_contextIsAscii = true;
    bool m_contextHasNul = false;
};

/// Reads one source. The top level is scanned; each element of `data` is copied, between brackets,
/// into a padded buffer that is used again, and parsed on demand there.
class SquadParser final {
public:
    SquadParser(std::span<const JsonSource> sources, std::size_t number, DatasetBuilder& builder)
        : m_sources(sources), m_number(number), m_source(sources[number]), m_scan(m_source.text, 0),
          m_builder(builder)
    {
    }

    [[nodiscard]] Status read()
    {
        if (auto valid = checkUtf8(); !valid)
            return valid;
        if (m_source.text.substr(0, byteOrderMark.size()) == byteOrderMark) {
            m_builder.noteByteOrderMark();
            m_scan = JsonScanner(m_source.text, byteOrderMark.size());
        }
        m_scan.skipSpace();
        if (m_scan.atEnd())
            return refuse("E-DATA-001", m_scan.at(),
                          "the file is empty. Is it the right file, and was it copied completely?");
        if (m_scan.peek() != '{')
            return m_scan.peek() == '['
                       ? refuse("E-DATA-006", m_scan.at(),
                                "the file starts with a list, but SQuAD-style JSON starts with an "
                                "object that has the key `data`.")
                       : syntax(m_scan.at(), "a `{` was expected");
        if (auto done = readRoot(); !done)
            return done;
        m_scan.skipSpace();
        if (!m_scan.atEnd())
            return refuse("E-DATA-005", m_scan.at(),
                          "something stands behind the end of the JSON text. Remove it, or give "
                          "several data sets as several files.");
        return {};
    }

private:
    /// Keeps a step on the path while it lives.
    class Step final {
    public:
        Step(std::vector<PathStep>& path, PathStep step) : m_path(path) { path.push_back(step); }
        Step(const Step&) = delete;
        Step& operator=(const Step&) = delete;
        ~Step() { m_path.pop_back(); }

    private:
        std::vector<PathStep>& m_path;
    };

    static std::string pathText(std::span<const PathStep> path)
    {
        std::string text;
        for (const PathStep& step : path) {
            if (step.key.empty())
                text += fmt::format("[{}]", step.index);
            else
                text += (text.empty() ? "" : ".") + std::string(step.key);
        }
        return text;
    }

    tl::unexpected<Error> refuse(const char* code, std::size_t offset, std::string_view what,
                                 std::string_view key = {}) const
    {
        std::string path = pathText(m_path);
        if (!key.empty())
            path += (path.empty() ? "" : ".") + std::string(key);
        return fail(Error::Kind::Invalid, code,
                    fmt::format("{}: {}{}{}", m_source.place(offset), path,
                                path.empty() ? "" : ": ", what));
    }

    tl::unexpected<Error> syntax(std::size_t offset, std::string_view what) const
    {
        if (offset >= m_source.text.size())
            return refuse(
                "E-DATA-004", m_source.text.size(),
                "the file ends in the middle of the JSON text. Was it copied completely?");
        return refuse("E-DATA-003", offset, fmt::format("this is no valid JSON: {}.", what));
    }

    tl::unexpected<Error> scanFault(JsonScanner::Fault fault) const
    {
        switch (fault) {
        case JsonScanner::Fault::Control:
            return syntax(m_scan.at(), "a string holds a line end or another control character");
        case JsonScanner::Fault::TooDeep:
            return refuse("E-DATA-013", m_scan.at(),
                          fmt::format("the values are nested deeper than {} levels.",
                                      JsonScanner::depthLimit));
        case JsonScanner::Fault::Truncated:
        case JsonScanner::Fault::None:
            break;
        }
        return syntax(m_source.text.size(), "");
    }

    [[nodiscard]] Status checkUtf8() const
    {
        const std::string_view text = m_source.text;
        if (simdjson::validate_utf8(text.data(), text.size()))
            return {};
        const std::size_t at = utf8::firstInvalid(text).value_or(0);
        const std::string_view start = text.substr(0, 2);
        const bool isUtf16 = start == "\xFF\xFE" || start == "\xFE\xFF";
        return refuse("E-DATA-002", at,
                      isUtf16 ? std::string("the file is UTF-16. Convert it to UTF-8 first.")
                              : fmt::format("the byte 0x{:02X} is no valid UTF-8. Convert the file "
                                            "to UTF-8 first.",
                                            static_cast<unsigned char>(text[at])));
    }

    /// Reads `"key":` and leaves the scan at the value.
    [[nodiscard]] Status readKey(std::string& key)
    {
        m_scan.skipSpace();
        if (m_scan.peek() != '"')
            return syntax(m_scan.at(), "a key in quotation marks was expected");
        const std::size_t start = m_scan.at();
        if (const auto fault = m_scan.skipString(); fault != JsonScanner::Fault::None)
            return scanFault(fault);
        auto read = parseChunk(start, m_scan.at(), [&](value v) { return readString(v, key); });
        if (!read)
            return read;
        m_scan.skipSpace();
        if (m_scan.peek() != ':')
            return syntax(m_scan.at(), "a `:` was expected");
        m_scan.step();
        m_scan.skipSpace();
        return {};
    }

    /// After an element: true when another follows, false at the closing character.
    [[nodiscard]] Result<bool> readSeparator(char closing)
    {
        m_scan.skipSpace();
        const char c = m_scan.peek();
        if (c != ',' && c != closing)
            return syntax(m_scan.at(), fmt::format("`,` or `{}` was expected", closing));
        m_scan.step();
        return c == ',';
    }

    [[nodiscard]] Status readRoot()
    {
        const std::size_t rootOffset = m_scan.at();
        std::set<std::string> keys;
        m_scan.step();
        m_scan.skipSpace();
        bool goesOn = m_scan.peek() != '}';
        if (!goesOn)
            m_scan.step();
        while (goesOn) {
            std::string key;
            m_scan.skipSpace();
            const std::size_t keyOffset = m_scan.at();
            if (auto read = readKey(key); !read)
                return read;
            if (!keys.insert(key).second)
                return repeatedKey(keyOffset, key);
            if (auto read = key == "data" ? readData() : readRootValue(key); !read)
                return read;
            auto more = readSeparator('}');
            if (!more)
                return fail(std::move(more).error());
            goesOn = *more;
        }
        if (keys.count("data") == 0)
            return missing(rootOffset, "data");
        return {};
    }

    [[nodiscard]] Status readRootValue(const std::string& key)
    {
        const std::size_t start = m_scan.at();
        if (const auto fault = m_scan.skipValue(); fault != JsonScanner::Fault::None)
            return scanFault(fault);
        const bool isVersion = key == "version";
        return parseChunk(start, m_scan.at(), [&](value v) -> Status {
            if (!isVersion)
                return walk(v);
            const Step step(m_path, {"version", 0});
            std::string version;
            bool isNumber = false;
            if (auto read = readStringOrNumber(v, version, isNumber); !read)
                return read;
            m_builder.noteVersion(std::move(version));
            return {};
        });
    }

    [[nodiscard]] Status readData()
    {
        const std::size_t dataOffset = m_scan.at();
        const Step step(m_path, {"data", 0});
        if (m_scan.peek() != '[')
            return m_scan.atEnd() ? syntax(dataOffset, "")
                                  : wrongType(dataOffset, m_source.text.substr(dataOffset, 1),
                                              "a list of articles");
        const std::uint64_t before = m_builder.seen();
        m_scan.step();
        m_scan.skipSpace();
        bool goesOn = m_scan.peek() != ']';
        if (!goesOn)
            m_scan.step();
        for (std::uint64_t i = 0; goesOn; ++i) {
            const Step element(m_path, {{}, i});
            m_scan.skipSpace();
            const std::size_t start = m_scan.at();
            if (const auto fault = m_scan.skipValue(); fault != JsonScanner::Fault::None)
                return scanFault(fault);
            auto read =
                parseChunk(start, m_scan.at(), [&](value article) { return readArticle(article); });
            if (!read)
                return read;
            auto more = readSeparator(']');
            if (!more)
                return fail(std::move(more).error());
            goesOn = *more;
        }
        if (m_builder.seen() == before)
            return refuse("E-DATA-010", dataOffset,
                          "the file holds no samples. Nothing can be evaluated.");
        return {};
    }

    /// Parses the bytes [start, end) of the source, one JSON value, and hands it over. Every value
    /// below it must be looked at, since parsing on demand checks nothing else.
    template <typename Use>
    [[nodiscard]] Status parseChunk(std::size_t start, std::size_t end, Use use)
    {
        if (start == end)
            return syntax(start, "a value was expected");
        const std::size_t size = end - start + 2;
        if (size >= simdjson::SIMDJSON_MAXSIZE_BYTES)
            return refuse("E-DATA-015", start, "one value takes more than 4 GiB.");
        if (m_buffer.size() < size + simdjson::SIMDJSON_PADDING)
            m_buffer.resize(size + simdjson::SIMDJSON_PADDING);
        m_buffer.front() = '[';
        std::memcpy(m_buffer.data() + 1, m_source.text.data() + start, end - start);
        m_buffer[size - 1] = ']';
        std::memset(m_buffer.data() + size, ' ', simdjson::SIMDJSON_PADDING);
        m_chunkStart = start;
        m_chunkEnd = end;
        // On failure the document still belongs to the value before: it may not be asked for a
        // place.
        if (const auto error =
                m_parser.iterate(m_buffer.data(), size, m_buffer.size()).get(m_document))
            return unreadable(error);
        simdjson::ondemand::array wrapper;
        if (m_document.get_array().get(wrapper) != simdjson::SUCCESS)
            return broken();
        std::size_t count = 0;
        for (auto element : wrapper) {
            value v;
            if (element.get(v) != simdjson::SUCCESS)
                return broken();
            if (++count > 1)
                return syntax(offsetOf(v.raw_json_token().data()), "a `,` too many");
            if (auto used = use(v); !used)
                return used;
        }
        return count == 1 ? Status{} : syntax(start, "a value was expected");
    }

    /// Byte of the source for a place in the buffer.
    [[nodiscard]] std::size_t offsetOf(const char* at) const
    {
        const auto inBuffer = static_cast<std::size_t>(at - m_buffer.data());
        return std::clamp(m_chunkStart + inBuffer - 1, m_chunkStart,
                          std::max(m_chunkStart, m_chunkEnd - 1));
    }

    /// The error of a value that could not even be divided into tokens: the first byte outside of
    /// strings that no token has.
    tl::unexpected<Error> unreadable(simdjson::error_code error) const
    {
        if (error == simdjson::MEMALLOC)
            return refuse("E-DATA-015", m_chunkStart, "there is not enough memory to parse this.");
        JsonScanner scan(m_source.text.substr(0, m_chunkEnd), m_chunkStart);
        while (!scan.atEnd()) {
            constexpr std::string_view allowed = "{}[]:, \t\r\n+-.";
            const char c = scan.peek();
            const bool isWord = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == 'E';
            if (c == '"' && scan.skipString() == JsonScanner::Fault::None)
                continue;
            if (c == '"' || (!isWord && allowed.find(c) == std::string_view::npos))
                break;
            scan.step();
        }
        return syntax(scan.atEnd() ? m_chunkStart : scan.at(),
                      "something stands here that does not belong");
    }

    tl::unexpected<Error> broken()
    {
        const char* at = nullptr;
        std::size_t offset = m_chunkEnd - 1;
        if (m_document.current_location().get(at) == simdjson::SUCCESS &&
            std::less_equal<>{}(m_buffer.data() + 1, at) &&
            std::less<>{}(at, m_buffer.data() + m_buffer.size()))
            offset = offsetOf(at);
        return syntax(offset, "something is missing here, or stands here that does not belong");
    }

    tl::unexpected<Error> wrongType(std::size_t offset, std::string_view token,
                                    std::string_view wanted) const
    {
        const char c = token.empty() ? '\0' : token.front();
        std::string_view found;
        if (c == '{')
            found = "an object";
        else if (c == '[')
            found = "a list";
        else if (c == '"')
            found = "a text";
        else if (token == "null" || token == "n")
            found = "null";
        else if (token == "true" || token == "false" || token == "t" || token == "f")
            found = "true or false";
        else if (c == '-' || (c >= '0' && c <= '9'))
            found = "a number";
        else
            return syntax(offset, "a value was expected");
        return refuse("E-DATA-006", offset,
                      fmt::format("{} was expected, but it is {}.", wanted, found));
    }

    tl::unexpected<Error> missing(std::size_t offset, std::string_view key) const
    {
        return refuse("E-DATA-007", offset, "the field is missing in the object that starts here.",
                      key);
    }

    tl::unexpected<Error> repeatedKey(std::size_t offset, std::string_view key) const
    {
        return refuse("E-DATA-014", offset,
                      fmt::format("the key `{}` stands twice in one object. Remove one.", key));
    }

    [[nodiscard]] Status readString(value v, std::string& into)
    {
        const std::string_view token = v.raw_json_token();
        const std::size_t offset = offsetOf(token.data());
        if (token.empty() || token.front() != '"')
            return wrongType(offset, trimmedToken(token), "a text");
        const std::string_view inside = trimmedToken(token).substr(1);
        if (const auto fault = findBadEscape(inside))
            return fault->isSurrogate
                       ? refuse("E-DATA-009", offset + 1 + fault->offset,
                                "the escape is half of a surrogate pair, which is no character. "
                                "Repair the text in the file.")
                       : syntax(offset + 1 + fault->offset, "JSON has no such escape");
        std::string_view text;
        if (v.get_string().get(text) != simdjson::SUCCESS)
            return broken();
        into.assign(text);
        return {};
    }

    [[nodiscard]] Status readStringOrNumber(value v, std::string& into, bool& isNumber)
    {
        const std::string_view token = trimmedToken(v.raw_json_token());
        isNumber = isJsonNumber(token);
        if (!isNumber)
            return readString(v, into);
        into.assign(token);
        return {};
    }

    [[nodiscard]] Status readInteger(value v, std::int64_t& into)
    {
        const std::string_view token = trimmedToken(v.raw_json_token());
        if (v.get_int64().get(into) != simdjson::SUCCESS)
            return wrongType(offsetOf(token.data()), token, "an integer");
        return {};
    }

    [[nodiscard]] Status readBool(value v, bool& into)
    {
        const std::string_view token = trimmedToken(v.raw_json_token());
        if (token != "true" && token != "false")
            return wrongType(offsetOf(token.data()), token, "true or false");
        into = token == "true";
        return {};
    }

    template <typename Use>
    [[nodiscard]] Status eachElement(value v, std::string_view wanted, Use use)
    {
        const std::string_view token = v.raw_json_token();
        if (token.empty() || token.front() != '[')
            return wrongType(offsetOf(token.data()), trimmedToken(token), wanted);
        simdjson::ondemand::array array;
        if (v.get_array().get(array) != simdjson::SUCCESS)
            return broken();
        std::uint64_t index = 0;
        for (auto element : array) {
            value item;
            if (element.get(item) != simdjson::SUCCESS)
                return broken();
            const Step step(m_path, {{}, index++});
            if (auto used = use(item); !used)
                return used;
        }
        return {};
    }

    /// Calls `use` with each key and value, and the byte where the object starts is returned.
    template <typename Use>
    [[nodiscard]] Result<std::size_t> eachField(value v, Use use)
    {
        const std::string_view token = v.raw_json_token();
        const std::size_t offset = offsetOf(token.data());
        if (token.empty() || token.front() != '{')
            return wrongType(offset, trimmedToken(token), "an object");
        simdjson::ondemand::object object;
        if (v.get_object().get(object) != simdjson::SUCCESS)
            return broken();
        for (auto field : object) {
            simdjson::ondemand::field pair;
            if (std::move(field).get(pair) != simdjson::SUCCESS)
                return broken();
            const char* raw = pair.key().raw();
            const std::size_t keyOffset = offsetOf(raw);
            // The key is not at hand as one token: it ends at the first quote that is not escaped.
            JsonScanner end(std::string_view(m_buffer.data(), m_buffer.size()),
                            static_cast<std::size_t>(raw - m_buffer.data()) - 1);
            static_cast<void>(end.skipString());
            const std::string_view inside(raw, end.at() - 1 -
                                                   static_cast<std::size_t>(raw - m_buffer.data()));
            if (const auto fault = findBadEscape(inside))
                return fault->isSurrogate
                           ? refuse("E-DATA-009", keyOffset + fault->offset,
                                    "the escape is half of a surrogate pair, which is no "
                                    "character.")
                           : syntax(keyOffset + fault->offset, "JSON has no such escape");
            std::string_view key;
            if (pair.unescaped_key().get(key) != simdjson::SUCCESS)
                return broken();
            if (auto used = use(key, keyOffset, pair.value()); !used)
                return fail(std::move(used).error());
        }
        return offset;
    }

    /// Checks a value that is not used.
    [[nodiscard]] Status walk(value v)
    {
        const std::string_view token = v.raw_json_token();
        const char c = token.empty() ? '\0' : token.front();
        if (c == '[')
            return eachElement(v, "a list", [&](value item) { return walk(item); });
        if (c == '{') {
            auto walked =
                eachField(v, [&](std::string_view, std::size_t, value item) { return walk(item); });
            return walked ? Status{} : Status(fail(std::move(walked).error()));
        }
        if (c == '"')
            return readString(v, m_ignored);
        const std::string_view scalar = trimmedToken(token);
        if (scalar == "true" || scalar == "false" || scalar == "null" || isJsonNumber(scalar))
            return {};
        return syntax(offsetOf(token.data()), "a value was expected");
    }

    /// Reads one field of interest: refuses it when it stands twice.
    template <typename Read>
    [[nodiscard]] Status once(bool& isThere, std::string_view key, std::size_t offset, Read read)
    {
        if (isThere)
            return repeatedKey(offset, key);
        isThere = true;
        const Step step(m_path, {key, 0});
        return read();
    }

    [[nodiscard]] Status readArticle(value article)
    {
        bool hasTitle = false;
        bool hasParagraphs = false;
        m_title.clear();
        auto object =
            eachField(article, [&](std::string_view key, std::size_t at, value v) -> Status {
                if (key == "title")
                    return once(hasTitle, "title", at, [&] { return readTitle(v); });
                if (key == "paragraphs")
                    return once(hasParagraphs, "paragraphs", at, [&] {
                        return eachElement(v, "a list of paragraphs",
                                           [&](value item) { return readParagraph(item); });
                    });
                return walk(v);
            });
        if (!object)
            return fail(std::move(object).error());
        if (!hasParagraphs)
            return missing(*object, "paragraphs");
        return {};
    }

    /// A title decides nothing, so null and numbers are taken too.
    [[nodiscard]] Status readTitle(value v)
    {
        bool isNumber = false;
        if (trimmedToken(v.raw_json_token()) == "null")
            return {};
        return readStringOrNumber(v, m_title, isNumber);
    }

    [[nodiscard]] Status readParagraph(value paragraph)
    {
        bool hasContext = false;
        bool hasQas = false;
        std::string context;
        m_pending.clear();
        auto object =
            eachField(paragraph, [&](std::string_view key, std::size_t at, value v) -> Status {
                if (key == "context")
                    return once(hasContext, "context", at, [&] { return readString(v, context); });
                if (key == "qas")
                    return once(hasQas, "qas", at, [&] {
                        return eachElement(v, "a list of questions",
                                           [&](value item) { return readQuestion(item); });
                    });
                return walk(v);
            });
        if (!object)
            return fail(std::move(object).error());
        if (!hasContext)
            return missing(*object, "context");
        if (!hasQas)
            return missing(*object, "qas");
        m_builder.beginParagraph(std::move(context), m_title);
        for (std::size_t i = 0; i < m_pending.size(); ++i) {
            PendingSample& pending = m_pending[i];
            const Place place{m_number, pending.idOffset};
            if (const auto first = m_builder.claimId(pending.sample.id, place))
                return fail(Error::Kind::Invalid, "E-DATA-008",
                            fmt::format("{}: {}.qas[{}].id: the id `{}` was used before, at {}. "
                                        "Ids must be unique over all files of a data set.",
                                        m_source.place(pending.idOffset), pathText(m_path), i,
                                        pending.sample.id,
                                        m_sources[first->source].place(first->offset)));
            if (auto added = m_builder.add(pending); !added)
                return added;
        }
        return {};
    }

    [[nodiscard]] Status readQuestion(value question)
    {
        bool hasId = false;
        bool hasQuestion = false;
        bool hasAnswers = false;
        bool hasFlag = false;
        PendingSample pending;
        auto object =
            eachField(question, [&](std::string_view key, std::size_t at, value v) -> Status {
                if (key == "id")
                    return once(hasId, "id", at, [&] {
                        pending.idOffset = offsetOf(v.raw_json_token().data());
                        return readStringOrNumber(v, pending.sample.id, pending.idIsNumber);
                    });
                if (key == "question")
                    return once(hasQuestion, "question", at,
                                [&] { return readString(v, pending.sample.question); });
                if (key == "answers")
                    return once(hasAnswers, "answers", at, [&] {
                        return eachElement(v, "a list of answers",
                                           [&](value item) { return readAnswer(item, pending); });
                    });
                if (key == "is_impossible")
                    return once(hasFlag, "is_impossible", at, [&] {
                        bool flag = false;
                        auto read = readBool(v, flag);
                        pending.flag = flag;
                        return read;
                    });
                return walk(v);
            });
        if (!object)
            return fail(std::move(object).error());
        if (!hasId)
            return missing(*object, "id");
        if (!hasQuestion)
            return missing(*object, "question");
        if (!hasAnswers && !pending.flag.value_or(false))
            return missing(*object, "answers");
        const Sample& sample = pending.sample;
        pending.hasNulCharacter =
            sample.id.find('\0') != std::string::npos ||
            sample.question.find('\0') != std::string::npos ||
            std::any_of(sample.answers.begin(), sample.answers.end(), [](const Answer& answer) {
                return answer.text.find('\0') != std::string::npos;
            });
        m_pending.push_back(std::move(pending));
        return {};
    }

    [[nodiscard]] Status readAnswer(value v, PendingSample& pending)
    {
        bool hasText = false;
        bool hasStart = false;
        bool isNumber = false;
        Answer answer;
        auto object = eachField(v, [&](std::string_view key, std::size_t at, value item) -> Status {
            if (key == "text")
                return once(hasText, "text", at,
                            [&] { return readStringOrNumber(item, answer.text, isNumber); });
            if (key == "answer_start")
                return once(hasStart, "answer_start", at,
                            [&] { return readInteger(item, answer.start); });
            return walk(item);
        });
        if (!object)
            return fail(std::move(object).error());
        if (!hasText)
            return missing(*object, "text");
        if (!hasStart)
            return missing(*object, "answer_start");
        pending.numericAnswers += isNumber ? 1 : 0;
        pending.sample.answers.push_back(std::move(answer));
        return {};
    }

    std::span<const JsonSource> m_sources;
    std::size_t m_number;
    const JsonSource& m_source;
    JsonScanner m_scan;
    DatasetBuilder& m_builder;
    simdjson::ondemand::parser m_parser;
    simdjson::ondemand::document m_document;
    std::vector<char> m_buffer;
    std::size_t m_chunkStart = 0;
    std::size_t m_chunkEnd = 0;
    std::vector<PathStep> m_path;
    std::vector<PendingSample> m_pending;
    std::string m_title;
    std::string m_ignored;
};

Result<Dataset> readSources(std::span<const JsonSource> sources, const ReadOptions& options)
{
    if (sources.empty())
        return fail(Error::Kind::Usage, "E-DATA-016", "No data file was given.");
    auto subset = Subset::parse(options.subset);
    if (!subset)
        return fail(std::move(subset).error());
    DatasetBuilder builder(options, std::move(*subset));
    for (std::size_t i = 0; i < sources.size(); ++i) {
        SquadParser parser(sources, i, builder);
        if (auto read = parser.read(); !read)
            return fail(std::move(read).error());
    }
    return builder.finish();
}

} // namespace

Result<Dataset> readSquad(std::span<const std::filesystem::path> files, const ReadOptions& options)
{
    const auto mapped = mapSources(files);
    if (!mapped)
        return fail(mapped.error());
    return readSources(mapped->sources, options);
}

Result<Dataset> readSquadTexts(std::span<const NamedText> texts, const ReadOptions& options)
{
    return readSources(sourcesOf(texts), options);
}

} // namespace muster::data
