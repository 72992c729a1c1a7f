// SPDX-License-Identifier: Apache-2.0
#include "data/source_check_p.h"

#include "base/utf8.h"

#define SIMDJSON_EXCEPTIONS 0
#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

namespace muster::data {

const OddityText markOddity = {"W-DATA-007", "1 file starts with a byte-order mark",
                               "{} files start with a byte-order mark", "It is skipped."};

std::size_t byteOrderMarkSize(std::string_view text)
{
    return text.substr(0, byteOrderMark.size()) == byteOrderMark ? byteOrderMark.size() : 0;
}

Status checkUtf8(const JsonSource& source, std::size_t begin, std::size_t end)
{
    const std::string_view part = source.text.substr(begin, end - begin);
    if (simdjson::validate_utf8(part.data(), part.size()))
        return {};
    const std::size_t at = begin + utf8::firstInvalid(part).value_or(0);
    const std::string_view start = source.text.substr(0, 2);
    const bool isUtf16 = start == "\xFF\xFE" || start == "\xFE\xFF";
    return fail(
        Error::Kind::Invalid, "E-DATA-002",
        isUtf16 ? fmt::format("{}: the file is UTF-16. Convert it to UTF-8 first.", source.place(0))
                : fmt::format("{}: the byte 0x{:02X} is no valid UTF-8. Convert the file "
                              "to UTF-8 first.",
                              source.place(at), static_cast<unsigned char>(source.text[at])));
}

bool isBlank(std::string_view text)
{
    return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

std::string_view stripped(std::string_view text)
{
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos)
        return {};
    return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

void OddityCounter::note(const OddityText& text, std::optional<SampleIndex> sample)
{
    constexpr std::size_t most = 20;
    Count& count = m_counts[text.code];
    count.text = &text;
    ++count.count;
    if (sample && count.first20.size() < most &&
        (count.first20.empty() || count.first20.back() != *sample))
        count.first20.push_back(*sample);
}

std::vector<Warning> OddityCounter::warnings() const
{
    std::vector<Warning> warnings;
    for (const auto& [code, count] : m_counts) {
        const std::string what = count.count == 1
                                     ? std::string(count.text->one)
                                     : fmt::format(fmt::runtime(count.text->many), count.count);
        warnings.push_back(Warning{code, fmt::format("{}. {}", what, count.text->treatment),
                                   count.count, count.first20});
    }
    return warnings;
}

bool JsonField::isScalar() const
{
    return kind == Kind::Text || kind == Kind::Number || kind == Kind::Truth;
}

namespace {

/// A strict reader of one JSON object that decodes what it is asked for and checks the rest.
class LineParser final {
public:
    LineParser(const JsonSource& source, std::size_t begin, std::size_t end)
        : m_source(source), m_text(source.text.substr(0, end)), m_at(begin)
    {
    }

    [[nodiscard]] Result<std::vector<JsonField>> read(std::span<const std::string> names)
    {
        std::vector<JsonField> fields(names.size());
        skipSpace();
        if (peek() != '{') {
            JsonField found;
            const std::size_t offset = m_at;
            if (auto value = readValue(&found, 1); !value)
                return fail(std::move(value).error());
            return refuse("E-DATA-006", offset, "each line must hold one JSON object");
        }
        auto object = eachKey(1, [&](const std::string& key, std::size_t keyOffset) -> Status {
            const auto name = std::find(names.begin(), names.end(), key);
            if (name == names.end())
                return readValue(nullptr, 2);
            JsonField& field = fields[static_cast<std::size_t>(name - names.begin())];
            if (field.kind != JsonField::Kind::Absent)
                return refuse(
                    "E-DATA-014", keyOffset,
                    fmt::format("the key `{}` stands twice in one object. Remove one", key));
            if (auto value = readValue(&field, 2); !value)
                return value;
            // The same field may be asked for under two headings.
            for (std::size_t other = 0; other < names.size(); ++other)
                if (names[other] == key && &fields[other] != &field)
                    fields[other] = field;
            return {};
        });
        if (!object)
            return fail(std::move(object).error());
        skipSpace();
        if (m_at < m_text.size())
            return refuse("E-DATA-005", m_at, "something stands behind the object of this line");
        return fields;
    }

private:
    [[nodiscard]] char peek() const { return m_at < m_text.size() ? m_text[m_at] : '\0'; }

    void skipSpace()
    {
        while (m_at < m_text.size() &&
               std::string_view(" \t\r\n").find(m_text[m_at]) != std::string_view::npos)
            ++m_at;
    }

    tl::unexpected<Error> refuse(const char* code, std::size_t offset, std::string_view what) const
    {
        return fail(Error::Kind::Invalid, code,
                    fmt::format("{}: {}.", m_source.place(offset), what));
    }

    tl::unexpected<Error> syntax(std::string_view what) const
    {
        if (m_at >= m_text.size())
            return refuse("E-DATA-004", m_text.size(),
                          "the line ends in the middle of its JSON object");
        return refuse("E-DATA-003", m_at, fmt::format("this is no valid JSON: {}", what));
    }

    [[nodiscard]] Status readString(std::string* into)
    {
        const std::size_t start = m_at;
        JsonScanner scan(m_text, m_at);
        const auto fault = scan.skipString();
        m_at = scan.at();
        if (fault == JsonScanner::Fault::Control)
            return syntax("a text holds a tab or another control character");
        if (fault != JsonScanner::Fault::None)
            return syntax("");
        const std::string_view inside = m_text.substr(start + 1, m_at - start - 2);
        if (const auto escape = findBadEscape(inside)) {
            m_at = start + 1 + escape->offset;
            if (escape->isSurrogate)
                return refuse("E-DATA-009", m_at, "the escape is half of a surrogate pair");
            return syntax("JSON has no such escape");
        }
        if (into != nullptr)
            decode(inside, *into);
        return {};
    }

    /// The escapes were checked.
    static void decode(std::string_view inside, std::string& into)
    {
        into.clear();
        const auto unit = [&](std::size_t at) {
            return static_cast<char32_t>(
                std::stoul(std::string(inside.substr(at, 4)), nullptr, 16));
        };
        std::size_t at = 0;
        while (at < inside.size()) {
            const std::size_t slash = std::min(inside.find('\\', at), inside.size());
            into.append(inside.substr(at, slash - at));
            if (slash == inside.size())
                return;
            const char kind = inside[slash + 1];
            at = slash + 2;
            constexpr std::string_view letters = "bfnrt";
            constexpr std::string_view meanings = "\b\f\n\r\t";
            if (kind == 'u') {
                char32_t code = unit(at);
                at += 4;
                if (code >= 0xD800 && code <= 0xDBFF) {
                    code = 0x10000 + ((code - 0xD800) << 10U) + (unit(at + 2) - 0xDC00);
                    at += 6;
                }
                utf8::append(into, code);
            } else if (const std::size_t letter = letters.find(kind);
                       letter != std::string_view::npos) {
                into.push_back(meanings[letter]);
            } else {
                into.push_back(kind);
            }
        }
    }

    /// Reads `{ "key": value, … }`; `use` reads the value.
    template <typename Use>
    [[nodiscard]] Status eachKey(std::size_t depth, Use use)
    {
        if (depth > JsonScanner::depthLimit)
            return refuse("E-DATA-013", m_at,
                          fmt::format("the values are nested deeper than {} levels",
                                      JsonScanner::depthLimit));
        ++m_at;
        skipSpace();
        if (peek() == '}') {
            ++m_at;
            return {};
        }
        while (true) {
            skipSpace();
            if (peek() != '"')
                return syntax("a key in quotation marks was expected");
            const std::size_t keyOffset = m_at;
            std::string key;
            if (auto read = readString(&key); !read)
                return read;
            skipSpace();
            if (peek() != ':')
                return syntax("a `:` was expected");
            ++m_at;
            skipSpace();
            if (auto used = use(key, keyOffset); !used)
                return used;
            skipSpace();
            const char c = peek();
            if (c != ',' && c != '}')
                return syntax("`,` or `}` was expected");
            ++m_at;
            if (c == '}')
                return {};
        }
    }

    [[nodiscard]] Status readList(JsonField* into, std::size_t depth)
    {
        if (depth > JsonScanner::depthLimit)
            return refuse("E-DATA-013", m_at,
                          fmt::format("the values are nested deeper than {} levels",
                                      JsonScanner::depthLimit));
        ++m_at;
        skipSpace();
        if (peek() == ']') {
            ++m_at;
            return {};
        }
        while (true) {
            skipSpace();
            JsonField element;
            const std::size_t offset = m_at;
            if (auto read = readValue(into != nullptr ? &element : nullptr, depth + 1); !read)
                return read;
            if (into != nullptr) {
                if (!element.isScalar())
                    return refuse("E-DATA-006", offset,
                                  "the list may hold only texts, numbers, true and false");
                into->list.push_back(std::move(element.text));
            }
            skipSpace();
            const char c = peek();
            if (c != ',' && c != ']')
                return syntax("`,` or `]` was expected");
            ++m_at;
            if (c == ']')
                return {};
        }
    }

    [[nodiscard]] Status readValue(JsonField* into, std::size_t depth)
    {
        using Kind = JsonField::Kind;
        const auto is = [&](Kind kind) {
            if (into != nullptr)
                into->kind = kind;
        };
        if (into != nullptr)
            into->offset = m_at;
        const char c = peek();
        if (c == '"') {
            is(Kind::Text);
            return readString(into != nullptr ? &into->text : nullptr);
        }
        if (c == '{') {
            is(Kind::Object);
            return eachKey(depth, [&](const std::string&, std::size_t) {
                return readValue(nullptr, depth + 1);
            });
        }
        if (c == '[') {
            is(Kind::List);
            return readList(into, depth);
        }
        const std::size_t end = std::min(m_text.find_first_of(",]} \t\r\n", m_at), m_text.size());
        const std::string_view token = m_text.substr(m_at, end - m_at);
        if (token == "null")
            is(Kind::Null);
        else if (token == "true" || token == "false")
            is(Kind::Truth);
        else if (isJsonNumber(token))
            is(Kind::Number);
        else
            return syntax("a value was expected");
        if (into != nullptr)
            into->text.assign(token);
        m_at = end;
        return {};
    }

    const JsonSource& m_source;
    std::string_view m_text; ///< up to the end of the line
    std::size_t m_at;
};

} // namespace

Result<std::vector<JsonField>> readJsonLine(const JsonSource& source, std::size_t begin,
                                            std::size_t end, std::span<const std::string> names)
{
    return LineParser(source, begin, end).read(names);
}

} // namespace muster::data
