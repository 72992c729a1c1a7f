// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/file.h"
#include "base/result.h"
#include "data/squad_reader.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::data {

/// One text with the name that messages show.
struct JsonSource {
    std::string name;
    std::string_view text;

    /// `name:line:column` of a byte. Both count from 1; columns are code points, a byte-order mark
    /// is none.
    [[nodiscard]] std::string place(std::size_t offset) const;
};

/// Files that are mapped as long as this lives, in order.
struct MappedSources {
    std::vector<MappedFile> files;
    std::vector<JsonSource> sources;
};
/// Errors: NotFound, Io of MappedFile.
[[nodiscard]] Result<MappedSources> mapSources(std::span<const std::filesystem::path> files);
[[nodiscard]] std::vector<JsonSource> sourcesOf(std::span<const NamedText> texts);

/// Finds where JSON values begin and end without looking at what they mean, so that a large file
/// can be parsed value by value. It checks strings for raw control characters and nesting for
/// depth; everything else is the parser's to check.
class JsonScanner final {
public:
    enum class Fault { None, Truncated, Control, TooDeep };
    static constexpr std::size_t depthLimit = 64;

    JsonScanner(std::string_view text, std::size_t at) : m_text(text), m_at(at) {}

    void skipSpace();
    [[nodiscard]] bool atEnd() const { return m_at >= m_text.size(); }
    [[nodiscard]] std::size_t at() const { return m_at; }
    /// The byte at hand, 0 at the end.
    [[nodiscard]] char peek() const { return atEnd() ? '\0' : m_text[m_at]; }
    void step() { ++m_at; }

    /// Moves behind the string that starts here. At a fault at() is where it was found.
    [[nodiscard]] Fault skipString();
    /// Moves behind the value that starts here; a scalar ends before the next delimiter and may be
    /// empty.
    [[nodiscard]] Fault skipValue();

private:
    std::string_view m_text;
    std::size_t m_at = 0;
};

/// What is wrong with the escapes of a string, and where (bytes from the start of `inside`).
struct EscapeFault {
    std::size_t offset = 0;
    bool isSurrogate = false; ///< half of a surrogate pair; otherwise no escape of JSON
};

/// Checks the escapes between the quotes of a JSON string (RFC 8259 section 7); a surrogate must
/// stand in a pair.
[[nodiscard]] std::optional<EscapeFault> findBadEscape(std::string_view inside);

/// RFC 8259 section 6.
[[nodiscard]] bool isJsonNumber(std::string_view text);

} // namespace muster::data
