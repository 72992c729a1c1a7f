// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::tokenizer {

/// What a SentencePiece model file (`tokenizer.model`, `spiece.model`) says, as far as it changes
/// ids. Field numbers and defaults: sentencepiece_model.proto of sentencepiece 0.1.99.
struct SentencePieceModel {
    enum class Type : std::uint8_t {
        normal = 1,
        unknown = 2,
        control = 3,
        userDefined = 4,
        unused = 5,
        byte = 6
    };
    struct Piece {
        std::string text;
        float score = 0;
        Type type = Type::normal;
    };
    enum class Kind : std::uint8_t { unigram = 1, bpe = 2, word = 3, character = 4 };

    std::vector<Piece> pieces;
    Kind kind = Kind::unigram;
    bool fallsBackToBytes = false;
    bool treatsBlankAsSuffix = false;
    std::int32_t unkId = 0; ///< −1 for none, as for the next three
    std::int32_t bosId = 1;
    std::int32_t eosId = 2;
    std::int32_t padId = -1;
    std::string charsmap;
    bool addsDummyPrefix = true;
    bool removesExtraBlanks = true;
    bool escapesBlanks = true;
};

/// Reads the protocol buffer with a check of every length. Unknown fields are skipped.
/// Error: `E-TOK-012` (not such a file, a piece that is not UTF-8, a value out of range).
[[nodiscard]] Result<SentencePieceModel> readSentencePieceModel(std::string_view bytes);

} // namespace muster::tokenizer
