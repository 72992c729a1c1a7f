// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace muster::metrics {

/// How an answer text is reduced before it is compared. The name with its version is written into
/// every result; a change of a rule gets a new version.
enum class Normalizer {
    SquadEn1,      ///< `squad-en/1`: the official SQuAD 1.1 and 2.0 scripts
    ZhMixed1,      ///< `zh-mixed/1`: Chinese character by character, other scripts by word
    SquadExtended1 ///< `squad-extended/1`: Unicode punctuation, decimal points kept
};

/// `squad-en/1`, `zh-mixed/1`, `squad-extended/1`.
[[nodiscard]] std::string_view normalizerName(Normalizer normalizer);

/// The normaliser with that name. Error: Invalid (`E-METRICS-001`), which lists the names.
[[nodiscard]] Result<Normalizer> normalizerByName(std::string_view name);

/// A normalised answer: tokens joined by single spaces, so that equality of texts is equality of
/// token lists.
struct NormalizedAnswer {
    std::string text;
    std::uint32_t tokens = 0;

    bool operator==(const NormalizedAnswer&) const = default;
};

/// Normalises one text; never fails. Each broken byte of UTF-8 counts as U+FFFD.
///
/// `squad-en/1` (semantics.md 3.3, T-37), in this order: full lower-casing of Unicode as Python's
/// str.lower does it (Unicode 14.0, context of the capital sigma, U+0130 gives two code points);
/// the 32 ASCII punctuation marks are deleted; maximal runs of word characters that are `a`, `an`
/// or `the` are replaced by a space (word characters: letters, numbers of any kind, no combining
/// marks); split on the 29 white space code points of Python's str.split.
///
/// `zh-mixed/1`, in the manner of CMRC 2018's evaluator: lower-cased as above; ASCII, full-width,
/// Chinese and general punctuation is deleted; every Han character, kana and bopomofo is a token;
/// everything else is split on white space. No articles. Differences to CMRC's script: F1 is over
/// token multisets and not over the longest common substring, the CJK extensions count as CJK, and
/// white space never decides EM. (C-027)
///
/// `squad-extended/1`: as `squad-en/1`, but all punctuation of Unicode and the minus sign U+2212
/// are deleted, so that every dash equals a hyphen; a point between two ASCII digits is kept (3.14
/// is not 314), a comma there is deleted. (C-028)
[[nodiscard]] NormalizedAnswer normalize(Normalizer normalizer, std::string_view text);

} // namespace muster::metrics
