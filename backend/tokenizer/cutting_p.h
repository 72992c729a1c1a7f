// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/added_tokens_p.h"
#include "tokenizer/code_points_p.h"

#include <cstdint>
#include <string_view>

namespace muster::tokenizer {

/// Where a tokenizer allows a text to be cut, so that the tokens of the two parts are those of the
/// whole.
enum class Cuts : std::uint8_t {
    none,
    beforeSpace,          ///< between an ASCII letter or digit and a space
    beforeSpaceOrNewWords ///< there, and between a lone new line and a letter
};

/// Finds such places. What stands around them is never part of one word, so the words before a
/// place do not depend on what follows it and the words behind it not on what precedes it; added
/// tokens that could reach over a place forbid all of them.
class CutRule final {
public:
    CutRule();

    void set(Cuts cuts) { m_cuts = cuts; }
    /// Tells the rule about a token that is matched as `pattern`.
    void consider(const AddedToken& token, std::string_view pattern);
    /// The last place in front of `at` where the text may be cut; 0 when there is none.
    [[nodiscard]] std::size_t cutBefore(std::string_view text, std::size_t at) const;

private:
    Cuts m_cuts = Cuts::none;
    bool m_isForbidden = false;
    CodePointTable<bool> m_letters;
};

} // namespace muster::tokenizer
