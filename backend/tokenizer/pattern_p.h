// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace muster::tokenizer {

/// A pattern of tokenizer.json that is looked for in a text: a fixed string or a regular expression
/// in Oniguruma's Ruby syntax, run by PCRE2 with Unicode properties.
///
/// White space (`\s`) is Unicode's White_Space and `^` and `$` match at lines, as Oniguruma has it.
/// Immutable; may be used from several threads at once.
class Pattern final {
public:
    /// A half-open range of bytes.
    struct Range {
        std::size_t begin = 0;
        std::size_t end = 0;
    };

    /// The string itself; the empty string never matches.
    [[nodiscard]] static Pattern fixed(std::string text);
    /// Error: `E-TOK-010` (not a regular expression, or one that the two engines read differently).
    [[nodiscard]] static Result<Pattern> regex(std::string_view expression);

    /// The first match at or after `from`, leftmost; nothing when there is none. `text` is valid
    /// UTF-8 and `from` starts a code point. A match that needs more than a billion steps counts
    /// as none.
    [[nodiscard]] std::optional<Range> find(std::string_view text, std::size_t from) const;

    /// Calls `each(range, isMatch)` for the matches and for what lies between, in order and without
    /// gaps. Empty matches cut the text and are not reported.
    template <typename Each>
    void split(std::string_view text, Each each) const
    {
        std::size_t done = 0;
        for (std::size_t at = 0; at <= text.size();) {
            const std::optional<Range> match = find(text, at);
            if (!match)
                break;
            if (match->begin > done)
                each(Range{done, match->begin}, false);
            if (match->end > match->begin)
                each(*match, true);
            done = match->end;
            at = match->end > match->begin ? match->end : next(text, match->end);
        }
        if (done < text.size())
            each(Range{done, text.size()}, false);
    }

    /// The text or the expression as it was given.
    [[nodiscard]] const std::string& source() const { return m_source; }
    [[nodiscard]] bool isRegex() const { return m_code != nullptr; }

private:
    struct Code;
    [[nodiscard]] static std::size_t next(std::string_view text, std::size_t at);

    std::string m_source;
    std::shared_ptr<const Code> m_code;
};

} // namespace muster::tokenizer
