// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::tokenizer {

/// The `precompiled_charsmap` of SentencePiece: strings and what each becomes, in a double-array
/// trie of the form of Darts-clone, followed by the replacements, each ended by a zero byte.
///
/// Every access is checked: a broken trie finds nothing.
class Charsmap final {
public:
    struct Match {
        std::size_t size = 0; ///< bytes of the text that are replaced
        std::string_view replacement;
    };

    Charsmap() = default;
    /// Error: `E-TOK-011` (sizes that contradict each other, replacements that are not UTF-8).
    [[nodiscard]] static Result<Charsmap> parse(std::string_view blob);

    [[nodiscard]] bool isEmpty() const { return m_units.empty(); }
    /// The shortest entry that the text starts with.
    [[nodiscard]] std::optional<Match> shortest(std::string_view text) const;
    /// The longest entry that the text starts with.
    [[nodiscard]] std::optional<Match> longest(std::string_view text) const;
    /// Whether some entry has a space behind its first byte.
    [[nodiscard]] bool hasInnerSpace() const;
    [[nodiscard]] const std::string& blob() const { return m_blob; }

private:
    template <typename Each>
    void visit(std::string_view text, Each each) const;

    std::vector<std::uint32_t> m_units;
    std::string m_replacements;
    std::string m_blob;
};

/// The bytes of base64 text (RFC 4648, with padding); nothing when it is none.
[[nodiscard]] std::optional<std::string> fromBase64(std::string_view text);

} // namespace muster::tokenizer
