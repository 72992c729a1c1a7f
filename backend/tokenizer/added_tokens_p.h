// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace muster::tokenizer {

/// A token that is matched in the text before words are split (an entry of `added_tokens`).
struct AddedToken {
    std::string content;
    std::int32_t id = 0;
    bool isSingleWord = false;
    bool stripsLeft = false;
    bool stripsRight = false;
    bool isNormalized = false; ///< matched in the normalised text, not in the raw text
    bool isSpecial = false;

    bool operator==(const AddedToken&) const = default;
};

/// Finds added tokens in a text: leftmost first, then longest, matches do not overlap. A match that
/// fails `single_word` is skipped as a whole. Behaviour of `AddedVocabulary` of Hugging Face's
/// tokenizers 0.23.
class AddedTokenMatcher final {
public:
    /// A part of the text: an added token, or what lies between (`id` absent).
    struct Part {
        std::size_t begin = 0;
        std::size_t end = 0;
        std::optional<std::int32_t> id;
    };

    AddedTokenMatcher() = default;
    /// \param patterns  the bytes to look for, one for each token
    AddedTokenMatcher(std::vector<AddedToken> tokens, const std::vector<std::string>& patterns);

    [[nodiscard]] bool isEmpty() const { return m_tokens.empty(); }
    /// Position of the first byte at or after `from` at which a token might start; text.size() when
    /// there is none.
    [[nodiscard]] std::size_t candidate(std::string_view text, std::size_t from) const;
    /// Calls `each(part)` for the parts of the text in order.
    template <typename Each>
    void split(std::string_view text, Each each) const
    {
        std::size_t done = 0;
        for (std::size_t at = candidate(text, 0); at < text.size();) {
            const Match match = matchAt(text, at);
            if (match.token == nullptr) {
                at = candidate(text, at + 1);
                continue;
            }
            const std::size_t next = at + match.size;
            std::size_t begin = at;
            std::size_t end = next;
            if (accept(text, *match.token, done, begin, end)) {
                if (done < begin)
                    each(Part{done, begin, std::nullopt});
                each(Part{begin, end, match.token->id});
                done = end;
            }
            at = candidate(text, next);
        }
        if (done < text.size())
            each(Part{done, text.size(), std::nullopt});
    }

private:
    struct Match {
        const AddedToken* token = nullptr;
        std::size_t size = 0;
    };
    [[nodiscard]] Match matchAt(std::string_view text, std::size_t at) const;
    /// Whether the match stands; widens it over the white space that the token takes with it.
    static bool accept(std::string_view text, const AddedToken& token, std::size_t done,
                       std::size_t& begin, std::size_t& end);

    std::vector<AddedToken> m_tokens;
    std::unordered_map<std::uint64_t, std::uint32_t> m_edges; // node << 8 | byte → node
    std::vector<std::int32_t> m_tokenOf; // node → index into m_tokens or −1
    std::array<bool, 256> m_starts{};
    int m_onlyStart = -1; // the first byte, when all tokens share it
};

} // namespace muster::tokenizer
