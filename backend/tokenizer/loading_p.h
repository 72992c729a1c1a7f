// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/byte_level_bpe_p.h"
#include "tokenizer/word_piece_p.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace muster::tokenizer {

/// What tokenizer_config.json and special_tokens_map.json say; absent is absent.
struct TokenizerConfig {
    std::optional<std::string> tokenizerClass; ///< without a final `Fast`
    std::optional<std::int64_t> modelMaxLength;
    std::optional<bool> doLowerCase;
    std::optional<bool> stripAccents;
    std::optional<bool> tokenizeChineseChars;
    std::optional<bool> addPrefixSpace;
    std::optional<bool> addBosToken;
    std::optional<bool> addEosToken;
    std::optional<bool> isLegacy; ///< `legacy` of Llama and T5
    std::optional<std::string> clsToken, sepToken, padToken, unkToken, maskToken, bosToken,
        eosToken;
    std::vector<AddedToken> addedTokens; ///< `added_tokens_decoder`, by rising id
};

/// Reads tokenizer_config.json, then special_tokens_map.json for what the first does not name.
/// An empty string stands for a file that does not exist.
[[nodiscard]] Result<TokenizerConfig> readConfig(std::string_view configJson,
                                                 std::string_view specialTokensMapJson);

/// tokenizer.json with what the files beside it say.
[[nodiscard]] Result<std::unique_ptr<Tokenizer>> readTokenizerJson(std::string_view json,
                                                                   const TokenizerConfig& config);

/// vocab.json and merges.txt with what the files beside them say.
[[nodiscard]] Result<std::unique_ptr<Tokenizer>> readGpt2Files(std::string_view vocabJson,
                                                               std::string_view mergesTxt,
                                                               const TokenizerConfig& config);

/// A SentencePiece model with what the files beside it say.
[[nodiscard]] Result<std::unique_ptr<Tokenizer>> readSentencePiece(std::string_view bytes,
                                                                   const TokenizerConfig& config);

using Vocabulary = std::vector<std::pair<std::int32_t, std::string_view>>;

/// Finds ids by name in a vocabulary and the added tokens. Made once; one pass over the vocabulary.
class TokenIds final {
public:
    TokenIds(const Vocabulary& vocabulary, const TokenizerConfig& config,
             const std::vector<AddedToken>& addedTokens,
             const std::vector<std::string>& otherNames);

    /// Id in the vocabulary alone.
    [[nodiscard]] std::optional<std::int32_t> inVocabulary(std::string_view name) const;
    /// Id of an added token or in the vocabulary.
    [[nodiscard]] std::optional<std::int32_t> find(std::string_view name) const;
    /// Adds a token that is matched in the text. A token of the vocabulary has the id that it has
    /// there; another one has the id that its entry states, or the next free one. Error:
    /// `E-TOK-007` when `token.id` (≥ 0) contradicts the vocabulary or belongs to another token.
    [[nodiscard]] Status addToken(AddedToken token, std::vector<AddedToken>& into);
    /// The roles by the names of the configuration, else by the conventional names of special added
    /// tokens ([CLS], [SEP], [PAD], [MASK], [UNK], <s>, </s>, <pad>, <mask>, <unk>,
    /// <|endoftext|>).
    [[nodiscard]] SpecialTokens roles(const TokenizerConfig& config,
                                      const std::vector<AddedToken>& addedTokens) const;

private:
    std::unordered_map<std::string, std::int32_t> m_vocabulary; // the names asked for
    std::unordered_map<std::string, std::int32_t> m_added;
    std::unordered_set<std::int32_t> m_takenIds; // of tokens whose ids added tokens ask for
    std::int64_t m_vocabularyTokens = 0;
};

/// Makes a WordPiece tokenizer after checking that the unknown token exists.
[[nodiscard]] Result<std::unique_ptr<Tokenizer>> makeWordPiece(WordPieceParts parts,
                                                               const TokenIds& ids);

/// Sets vocabularySize to one more than the largest id of the vocabulary and the added tokens.
void setVocabularySize(Description& description, const Vocabulary& vocabulary);

/// The template `[CLS] A [SEP]` and `[CLS] A [SEP] B [SEP]`.
void setBertTemplate(Description& description, std::int32_t cls, std::int32_t sep);
/// The template `<s> A </s>` and `<s> A </s> </s> B </s>`, all in segment 0.
void setRobertaTemplate(Description& description, std::int32_t cls, std::int32_t sep);

} // namespace muster::tokenizer
