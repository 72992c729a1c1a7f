// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::tokenizer {

/// The tokens of one text, without special tokens around it.
///
/// Three columns of the same length [tokens]. A token covers the bytes `begin[i]`..`end[i]` of the
/// original text (half open), which are Hugging Face's offsets with code points turned into bytes;
/// a token that is a part of one code point covers that whole code point, so neighbours may
/// overlap. Reuse one object for many texts: the buffers are kept.
struct Encoding {
    std::vector<std::int32_t> ids;
    std::vector<std::uint32_t> begin;
    std::vector<std::uint32_t> end;

    void clear()
    {
        ids.clear();
        begin.clear();
        end.clear();
    }
    [[nodiscard]] std::size_t size() const { return ids.size(); }
    bool operator==(const Encoding&) const = default;
};

/// Ids of the tokens that have a role; absent when the tokenizer does not name one.
struct SpecialTokens {
    std::optional<std::int32_t> cls;
    std::optional<std::int32_t> sep;
    std::optional<std::int32_t> pad;
    std::optional<std::int32_t> unk;
    std::optional<std::int32_t> mask;
    std::optional<std::int32_t> bos;
    std::optional<std::int32_t> eos;

    bool operator==(const SpecialTokens&) const = default;
};

/// How one text becomes a model input: prefix, text, suffix.
struct SingleTemplate {
    std::vector<std::int32_t> prefix;
    std::vector<std::int32_t> suffix;

    bool operator==(const SingleTemplate&) const = default;
};

/// How two texts become a model input: prefix, first text, middle, second text, suffix, such as
/// `[CLS] A [SEP] B [SEP]` or `<s> A </s> </s> B </s>`. The segment columns have the lengths of the
/// id columns.
struct PairTemplate {
    std::vector<std::int32_t> prefix;
    std::vector<std::int32_t> middle;
    std::vector<std::int32_t> suffix;
    std::vector<std::int32_t> prefixSegments;
    std::vector<std::int32_t> middleSegments;
    std::vector<std::int32_t> suffixSegments;
    std::int32_t questionSegment = 0; ///< segment id of the tokens of the first text
    std::int32_t contextSegment = 0;  ///< segment id of the tokens of the second text
    bool usesSegments = false;        ///< whether any segment id is not 0

    /// Special tokens that a pair gets.
    [[nodiscard]] std::size_t addedTokens() const
    {
        return prefix.size() + middle.size() + suffix.size();
    }
    bool operator==(const PairTemplate&) const = default;
};

/// Turns text into token ids, exactly as Hugging Face's fast tokenizer of the same files.
///
/// Immutable after loading; every function may be called from several threads at once.
class Tokenizer {
public:
    virtual ~Tokenizer() = default;

    /// Replaces `into` by the tokens of `text`; no special tokens are put around it, but added and
    /// special tokens that stand in the text are matched as Hugging Face does. The empty text has
    /// no tokens.
    ///
    /// \param text  UTF-8, at most 4 GiB − 1 bytes (longer texts are cut there by the caller). Each
    ///              byte of a broken sequence counts as one U+FFFD that covers this byte: the ids
    ///              are those of utf8::repaired(text).
    virtual void encode(std::string_view text, Encoding& into) const = 0;

    /// Like encode() for a part of a text that starts where cutBefore() allowed a cut: what a
    /// tokenizer does at the start of a text alone (an added space, how the first token's offsets
    /// are trimmed) is left out. The tokens of the parts, with offsets shifted by where the parts
    /// start, are those of the whole text.
    virtual void encodeContinuation(std::string_view text, Encoding& into) const = 0;

    /// The last place in front of byte `at` where the text may be cut, whatever follows the text; 0
    /// when there is none that is proved safe. Takes time in the distance from `at` to the place.
    [[nodiscard]] virtual std::size_t cutBefore(std::string_view text, std::size_t at) const = 0;

    /// `wordpiece`, `bpe` or `unigram`.
    [[nodiscard]] virtual std::string kind() const = 0;
    /// One more than the largest id: the rows that a model's embedding table needs.
    [[nodiscard]] virtual std::int64_t vocabularySize() const = 0;
    /// Longest input of the model in tokens with special tokens (`model_max_length` of
    /// tokenizer_config.json); nothing when the files do not say or give a value above 10^9.
    [[nodiscard]] virtual std::optional<std::int64_t> modelMaxLength() const = 0;
    [[nodiscard]] virtual const SpecialTokens& specials() const = 0;
    [[nodiscard]] virtual const SingleTemplate& singleTemplate() const = 0;
    [[nodiscard]] virtual const PairTemplate& pairTemplate() const = 0;
    /// Hash of everything that changes ids or offsets: vocabulary, merges, normaliser settings,
    /// added tokens and templates. The same for tokenizer.json and vocab.txt that mean the same.
    [[nodiscard]] virtual Hash128 digest() const = 0;
    /// Id of a token by its text in the vocabulary file; nothing when there is none.
    [[nodiscard]] virtual std::optional<std::int32_t> idOf(std::string_view token) const = 0;
};

/// Loads the tokenizer of a Hugging Face model directory: tokenizer.json when it exists, else
/// tokenizer.model or spiece.model, else vocab.txt, else vocab.json and merges.txt;
/// tokenizer_config.json, special_tokens_map.json and added_tokens.json are read beside them.
///
/// A part that is not implemented is an error that names it, never a guess.
/// Errors: NotFound `E-TOK-001` (no tokenizer files), Invalid `E-TOK-002` (not JSON), `E-TOK-003`
/// (a field is missing or has the wrong type), `E-TOK-004` (a component is not implemented),
/// `E-TOK-005` (the vocabulary is broken: id twice, id out of range, no unknown token),
/// `E-TOK-006` (the merges are broken), `E-TOK-007` (an added token disagrees with the vocabulary),
/// `E-TOK-008` (a template names a token that does not exist or has another order than first,
/// second), `E-TOK-009` (tokenizer.json and tokenizer_config.json disagree), `E-TOK-010` (a regular
/// expression cannot be used), `E-TOK-011` (a precompiled charsmap is broken), `E-TOK-012` (a
/// SentencePiece model is broken); Io and Invalid `E-FILE-…` of reading.
[[nodiscard]] Result<std::unique_ptr<Tokenizer>>
loadTokenizer(const std::filesystem::path& directory);

/// Loads from the content of tokenizer.json alone. Errors as above, without NotFound.
[[nodiscard]] Result<std::unique_ptr<Tokenizer>> loadTokenizerJson(std::string_view json);

/// Loads from the content of a SentencePiece model (`tokenizer.model`) alone, of the kinds BPE and
/// Unigram. Ids are those of SentencePiece and of the classes of transformers that use it; control
/// symbols of the roles are matched in the text, as those classes do. Without a configuration a
/// BPE model puts its begin token before a text (Llama), a Unigram model its end token behind it
/// (T5). Errors as above.
[[nodiscard]] Result<std::unique_ptr<Tokenizer>> loadSentencePieceModel(std::string_view bytes);

/// Settings of a BERT tokenizer that tokenizer_config.json carries beside vocab.txt.
struct BertSettings {
    bool doLowerCase = true;
    std::optional<bool> stripAccents; ///< nothing: as doLowerCase
    bool tokenizeChineseChars = true;
    std::string unkToken = "[UNK]";
    std::string sepToken = "[SEP]";
    std::string padToken = "[PAD]";
    std::string clsToken = "[CLS]";
    std::string maskToken = "[MASK]";
    std::optional<std::int64_t> modelMaxLength;

    bool operator==(const BertSettings&) const = default;
};

/// Loads a BERT tokenizer from the content of vocab.txt, one token a line. Errors as above.
[[nodiscard]] Result<std::unique_ptr<Tokenizer>> loadBertVocabulary(std::string_view vocabTxt,
                                                                    const BertSettings& settings);

/// Loads GPT-2's byte-level BPE from the contents of vocab.json and merges.txt. Errors as above.
[[nodiscard]] Result<std::unique_ptr<Tokenizer>> loadGpt2Vocabulary(std::string_view vocabJson,
                                                                    std::string_view mergesTxt);

} // namespace muster::tokenizer
