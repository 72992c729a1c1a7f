// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/json_fields_p.h"

#include <fmt/format.h>

#include <unordered_set>

namespace muster::tokenizer {

namespace {

Result<BertNormalization> normalizationOf(const object& root)
{
    const auto list = steps(root, "normalizer", "normalizers");
    if (!list)
        return fail(list.error());
    if (list->empty())
        return BertNormalization{false, false, false, false};
    const std::string type = typeOf(list->front());
    if (type != "BertNormalizer")
        return notImplemented(fmt::format("normalizer {} with WordPiece", type));
    if (list->size() > 1)
        return notImplemented(
            fmt::format("a sequence of normalizers ({}, {})", type, typeOf((*list)[1])));
    const object& in = list->front();
    BertNormalization out;
    for (const auto& [key, member] :
         {std::pair("clean_text", &BertNormalization::cleansText),
          std::pair("handle_chinese_chars", &BertNormalization::isolatesChinese),
          std::pair("lowercase", &BertNormalization::lowers)}) {
        const Result<bool> flag = boolField(in, key, "normalizer", true);
        if (!flag)
            return fail(flag.error());
        out.*member = *flag;
    }
    const Result<bool> strips = boolField(in, "strip_accents", "normalizer", out.lowers);
    if (!strips)
        return fail(strips.error());
    out.stripsAccents = *strips;
    return out;
}

Status checkAgreement(const BertNormalization& normalization, const TokenizerConfig& config)
{
    const auto disagree = [](std::string_view what) {
        return fail(Error::Kind::Invalid, "E-TOK-009",
                    fmt::format("tokenizer.json and tokenizer_config.json disagree about {}; "
                                "change one of them",
                                what));
    };
    if (config.doLowerCase && *config.doLowerCase != normalization.lowers)
        return disagree("do_lower_case");
    if (config.stripAccents && *config.stripAccents != normalization.stripsAccents)
        return disagree("strip_accents");
    if (config.tokenizeChineseChars &&
        *config.tokenizeChineseChars != normalization.isolatesChinese)
        return disagree("tokenize_chinese_chars");
    return {};
}

/// What is common to all models while tokenizer.json is read.
struct Reading {
    object root;
    object model;
    const TokenizerConfig& config;
    Vocabulary vocabulary;
    std::vector<AddedToken> addedTokens; // as the file has them
    Description description;
    std::vector<bool> trims;
};

/// The template that the classes of Llama set by the flags of their configuration, whatever
/// tokenizer.json says.
Status setTemplateOfFlags(Reading& reading)
{
    const TokenizerConfig& config = reading.config;
    const std::string name = config.tokenizerClass.value_or("");
    const bool isOfFlags =
        name == "LlamaTokenizer" || name == "CodeLlamaTokenizer" || name == "GemmaTokenizer";
    if (!isOfFlags || (!config.addBosToken && !config.addEosToken))
        return {};
    const SpecialTokens& specials = reading.description.specials;
    const bool addsBos = config.addBosToken.value_or(true);
    const bool addsEos = config.addEosToken.value_or(false);
    if ((addsBos && !specials.bos) || (addsEos && !specials.eos))
        return fail(Error::Kind::Invalid, "E-TOK-008",
                    "tokenizer_config.json adds a begin or end token that it does not name");
    reading.description.single = {};
    reading.description.pair = {};
    SingleTemplate& single = reading.description.single;
    PairTemplate& pair = reading.description.pair;
    if (addsBos)
        single.prefix.push_back(*specials.bos);
    if (addsEos)
        single.suffix.push_back(*specials.eos);
    pair.prefix = single.prefix;
    pair.middle = single.suffix;
    pair.middle.insert(pair.middle.end(), single.prefix.begin(), single.prefix.end());
    pair.suffix = single.suffix;
    pair.prefixSegments.assign(pair.prefix.size(), 0);
    pair.middleSegments.assign(single.suffix.size(), 0);
    pair.middleSegments.insert(pair.middleSegments.end(), single.prefix.size(), 1);
    pair.suffixSegments.assign(pair.suffix.size(), 1);
    pair.contextSegment = 1;
    pair.usesSegments = true;
    return {};
}

Result<TokenIds> describe(Reading& reading, const std::vector<std::string>& names)
{
    TokenIds ids(reading.vocabulary, reading.config, reading.addedTokens, names);
    for (const AddedToken& token : reading.addedTokens) {
        const Status added = ids.addToken(token, reading.description.addedTokens);
        if (!added)
            return fail(added.error());
    }
    reading.description.modelMaxLength = reading.config.modelMaxLength;
    reading.description.specials = ids.roles(reading.config, reading.description.addedTokens);
    const Status isSet = setTemplateOfFlags(reading);
    if (!isSet)
        return fail(isSet.error());
    return ids;
}

Result<std::unique_ptr<Tokenizer>> readWordPiece(Reading& reading)
{
    WordPieceParts parts;
    const auto normalization = normalizationOf(reading.root);
    if (!normalization)
        return fail(normalization.error());
    parts.normalization = *normalization;
    const Status agrees = checkAgreement(parts.normalization, reading.config);
    if (!agrees)
        return fail(agrees.error());
    const auto words = steps(reading.root, "pre_tokenizer", "pretokenizers");
    if (!words)
        return fail(words.error());
    if (words->size() != 1 || typeOf(words->front()) != "BertPreTokenizer")
        return notImplemented(
            words->empty() ? std::string("WordPiece without a pre-tokenizer")
                           : fmt::format("pre_tokenizer {} with WordPiece",
                                         words->size() > 1 ? "Sequence" : typeOf(words->front())));
    if (!reading.trims.empty())
        return notImplemented("trim_offsets with WordPiece");
    const auto unk = stringField(reading.model, "unk_token", "model");
    const auto prefix = stringField(reading.model, "continuing_subword_prefix", "model", "##");
    if (!unk || !prefix)
        return fail(unk ? prefix.error() : unk.error());
    parts.unkToken = *unk;
    parts.continuingPrefix = *prefix;
    if (const auto limit = field(reading.model, "max_input_chars_per_word")) {
        const Result<std::int32_t> read = idOfElement(*limit, "model.max_input_chars_per_word");
        if (!read)
            return fail(read.error());
        parts.maxWordChars = static_cast<std::size_t>(*read);
    }
    const auto ids = describe(reading, {parts.unkToken});
    if (!ids)
        return fail(ids.error());
    if (!reading.description.specials.unk)
        reading.description.specials.unk = ids->find(parts.unkToken);
    parts.description = std::move(reading.description);
    parts.vocabulary = std::move(reading.vocabulary);
    return makeWordPiece(std::move(parts), *ids);
}

using MergePair = std::pair<std::string_view, std::string_view>;

/// Reads the entries of `model.merges`: "left right" or ["left", "right"].
class MergeReader final {
public:
    explicit MergeReader(const Vocabulary& vocabulary) : m_vocabulary(vocabulary) {}

    /// Error: `E-TOK-006`.
    [[nodiscard]] Result<MergePair> read(const element& item)
    {
        std::string_view left;
        std::string_view right;
        if (item.is_string()) {
            const std::string_view line = item.get_string().value_unsafe();
            const std::size_t space = line.find(' ');
            if (space != std::string_view::npos) {
                if (line.find(' ', space + 1) == std::string_view::npos)
                    return MergePair(line.substr(0, space), line.substr(space + 1));
                if (const auto pair = onlySplit(line))
                    return *pair;
            }
        } else if (item.is_array()) {
            const array pair = item.get_array().value_unsafe();
            if (pair.size() == 2 && pair.at(0).get_string().get(left) == simdjson::SUCCESS &&
                pair.at(1).get_string().get(right) == simdjson::SUCCESS)
                return MergePair(left, right);
        }
        return fail(Error::Kind::Invalid, "E-TOK-006",
                    "an entry of model.merges is not a pair of tokens");
    }

private:
    /// Tokens may have spaces themselves. A line is sound when only one of its spaces separates two
    /// tokens that join to a third.
    std::optional<MergePair> onlySplit(std::string_view line)
    {
        if (m_tokens.empty()) {
            for (const auto& [id, token] : m_vocabulary)
                m_tokens.insert(token);
        }
        std::optional<MergePair> found;
        for (std::size_t at = line.find(' '); at != std::string_view::npos;
             at = line.find(' ', at + 1)) {
            const MergePair pair(line.substr(0, at), line.substr(at + 1));
            const std::string joined = std::string(pair.first).append(pair.second);
            if (!m_tokens.contains(pair.first) || !m_tokens.contains(pair.second) ||
                !m_tokens.contains(joined))
                continue;
            if (found)
                return std::nullopt;
            found = pair;
        }
        return found;
    }

    const Vocabulary& m_vocabulary;
    std::unordered_set<std::string_view> m_tokens;
};

/// What BPE says beside its vocabulary.
struct BpeSettings {
    std::optional<std::string> unkToken;
    bool fallsBackToBytes = false;
    bool fusesUnk = false;
    bool ignoresMerges = false;
    std::vector<MergePair> merges;
};

Result<BpeSettings> bpeSettings(const object& model, const Vocabulary& vocabulary)
{
    BpeSettings settings;
    if (const auto dropout = field(model, "dropout")) {
        double rate = 1;
        if (dropout->get_double().get(rate) != simdjson::SUCCESS || rate != 0)
            return notImplemented("model.dropout other than 0");
    }
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
        const auto affix = stringField(model, key, "model", "");
        if (!affix)
            return fail(affix.error());
        if (!affix->empty())
            return notImplemented(fmt::format("model.{}", key));
    }
    const Result<bool> fallback = boolField(model, "byte_fallback", "model", false);
    const Result<bool> fuses = boolField(model, "fuse_unk", "model", false);
    const Result<bool> ignores = boolField(model, "ignore_merges", "model", false);
    for (const Result<bool>* flag : {&fallback, &fuses, &ignores}) {
        if (!*flag)
            return fail(flag->error());
    }
    settings.fallsBackToBytes = *fallback;
    settings.fusesUnk = *fuses;
    settings.ignoresMerges = *ignores;
    if (field(model, "unk_token")) {
        const auto unk = stringField(model, "unk_token", "model");
        if (!unk)
            return fail(unk.error());
        settings.unkToken = *unk;
    }
    const auto merges = field(model, "merges");
    if (!merges)
        return wrongType("model.merges", "present");
    // Some writers leave an empty object where there are none.
    object none;
    if (merges->get_object().get(none) == simdjson::SUCCESS && none.size() == 0)
        return settings;
    const Result<array> mergeList = arrayOf(*merges, "model.merges");
    if (!mergeList)
        return fail(mergeList.error());
    settings.merges.reserve(mergeList->size());
    MergeReader reader(vocabulary);
    for (const element item : *mergeList) {
        const auto merge = reader.read(item);
        if (!merge)
            return fail(merge.error());
        settings.merges.push_back(*merge);
    }
    return settings;
}

Result<std::unique_ptr<Tokenizer>> readByteLevelBpe(Reading& reading, BpeSettings settings,
                                                    NormalizerReading normalizer,
                                                    PreTokenizerReading words)
{
    ByteLevelBpeParts parts;
    parts.normalizer = std::move(normalizer.normalizer);
    for (PreTokenizerStep& step : words.steps) {
        auto* split = std::get_if<SplitStep>(&step);
        if (split == nullptr)
            return notImplemented("pre_tokenizer Metaspace with ByteLevel");
        parts.steps.push_back(std::move(*split));
    }
    parts.addsPrefixSpace = words.addsPrefixSpace;
    parts.usesRegex = words.usesRegex;
    if (settings.fallsBackToBytes)
        return notImplemented("model.byte_fallback with byte-level BPE");
    parts.fusesUnk = settings.fusesUnk;
    parts.ignoresMerges = settings.ignoresMerges;
    parts.unkToken = settings.unkToken;
    parts.merges = std::move(settings.merges);
    std::vector<std::string> names;
    if (parts.unkToken)
        names.push_back(*parts.unkToken);
    const auto ids = describe(reading, names);
    if (!ids)
        return fail(ids.error());
    parts.description = std::move(reading.description);
    parts.vocabulary = std::move(reading.vocabulary);
    parts.trims = reading.trims;
    setVocabularySize(parts.description, parts.vocabulary);
    return ByteLevelBpeTokenizer::make(std::move(parts));
}

Result<std::unique_ptr<Tokenizer>> finishPipeline(Reading& reading, NormalizerReading normalizer,
                                                  PreTokenizerReading words,
                                                  std::unique_ptr<const WordModel> model)
{
    if (!reading.trims.empty())
        return notImplemented("post_processor.trim_offsets without ByteLevel");
    PipelineParts parts;
    parts.description = std::move(reading.description);
    parts.normalizer = std::move(normalizer.normalizer);
    parts.replacesSpaces = normalizer.replacesSpaces;
    parts.steps = std::move(words.steps);
    parts.model = std::move(model);
    return std::make_unique<PipelineTokenizer>(std::move(parts));
}

Result<std::unique_ptr<Tokenizer>> readBpe(Reading& reading)
{
    Result<BpeSettings> settings = bpeSettings(reading.model, reading.vocabulary);
    if (!settings)
        return fail(settings.error());
    Result<NormalizerReading> normalizer = normalizerOf(reading.root);
    if (!normalizer)
        return fail(normalizer.error());
    Result<PreTokenizerReading> words = preTokenizerOf(reading.root);
    if (!words)
        return fail(words.error());
    if (words->isByteLevel)
        return readByteLevelBpe(reading, std::move(*settings), std::move(*normalizer),
                                std::move(*words));
    CodePointBpeParts parts;
    parts.fallsBackToBytes = settings->fallsBackToBytes;
    parts.fusesUnk = settings->fusesUnk;
    parts.ignoresMerges = settings->ignoresMerges;
    std::uint32_t rank = 0;
    for (const auto& [left, right] : settings->merges)
        parts.merges.push_back({left, right, rank++});
    std::vector<std::string> names;
    if (settings->unkToken)
        names.push_back(*settings->unkToken);
    const auto ids = describe(reading, names);
    if (!ids)
        return fail(ids.error());
    if (settings->unkToken) {
        parts.unk = ids->inVocabulary(*settings->unkToken);
        if (!parts.unk)
            return fail(Error::Kind::Invalid, "E-TOK-005",
                        fmt::format("the unknown token {} does not stand in the vocabulary",
                                    *settings->unkToken));
    }
    setVocabularySize(reading.description, reading.vocabulary);
    parts.vocabulary = std::move(reading.vocabulary);
    auto model = CodePointBpe::make(std::move(parts));
    if (!model)
        return fail(model.error());
    return finishPipeline(reading, std::move(*normalizer), std::move(*words), std::move(*model));
}

Result<UnigramParts> unigramParts(const object& model)
{
    UnigramParts parts;
    const auto list = field(model, "vocab");
    const Result<array> pieces =
        list ? arrayOf(*list, "model.vocab") : Result<array>(wrongType("model.vocab", "present"));
    if (!pieces)
        return fail(pieces.error());
    parts.pieces.reserve(pieces->size());
    for (const element entry : *pieces) {
        array pair;
        UnigramParts::Piece piece;
        if (entry.get_array().get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
            pair.at(0).get_string().get(piece.text) != simdjson::SUCCESS ||
            pair.at(1).get_double().get(piece.score) != simdjson::SUCCESS)
            return fail(Error::Kind::Invalid, "E-TOK-005",
                        fmt::format("entry {} of model.vocab is not a piece and its score",
                                    parts.pieces.size()));
        parts.pieces.push_back(piece);
    }
    const auto unk = field(model, "unk_id");
    if (!unk)
        return notImplemented("a Unigram model without model.unk_id");
    const Result<std::int32_t> id = idOfElement(*unk, "model.unk_id");
    if (!id)
        return fail(id.error());
    if (static_cast<std::size_t>(*id) >= parts.pieces.size())
        return fail(Error::Kind::Invalid, "E-TOK-005",
                    "model.unk_id does not stand in the vocabulary");
    parts.unk = *id;
    const Result<bool> fallback = boolField(model, "byte_fallback", "model", false);
    if (!fallback)
        return fail(fallback.error());
    parts.fallsBackToBytes = *fallback;
    return parts;
}

Result<std::unique_ptr<Tokenizer>> readUnigram(Reading& reading)
{
    const Result<UnigramParts> parts = unigramParts(reading.model);
    if (!parts)
        return fail(parts.error());
    for (std::size_t i = 0; i < parts->pieces.size(); ++i)
        reading.vocabulary.emplace_back(static_cast<std::int32_t>(i), parts->pieces[i].text);
    Result<NormalizerReading> normalizer = normalizerOf(reading.root);
    if (!normalizer)
        return fail(normalizer.error());
    Result<PreTokenizerReading> words = preTokenizerOf(reading.root);
    if (!words)
        return fail(words.error());
    if (words->isByteLevel)
        return notImplemented("pre_tokenizer ByteLevel with Unigram");
    const auto ids = describe(reading, {});
    if (!ids)
        return fail(ids.error());
    if (!reading.description.specials.unk)
        reading.description.specials.unk = parts->unk;
    setVocabularySize(reading.description, reading.vocabulary);
    return finishPipeline(reading, std::move(*normalizer), std::move(*words),
                          std::make_unique<Unigram>(*parts));
}

} // namespace

Result<std::unique_ptr<Tokenizer>> readTokenizerJson(std::string_view json,
                                                     const TokenizerConfig& config)
{
    simdjson::dom::parser parser;
    const Result<object> root = parseJson(parser, json, "tokenizer.json");
    if (!root)
        return fail(root.error());
    const auto modelField = field(*root, "model");
    if (!modelField)
        return wrongType("tokenizer.json: model", "present");
    const Result<object> model = objectOf(*modelField, "tokenizer.json: model");
    if (!model)
        return fail(model.error());
    // Files of early versions have no type; the fields tell.
    std::string type = typeOf(*model);
    if (type.empty()) {
        if (field(*model, "merges"))
            type = "BPE";
        else if (field(*model, "max_input_chars_per_word"))
            type = "WordPiece";
        else if (field(*model, "unk_id"))
            type = "Unigram";
        else
            return wrongType("tokenizer.json: model.type", "present");
    }
    if (type != "WordPiece" && type != "BPE" && type != "Unigram")
        return notImplemented("model " + type);
    Reading reading{*root, *model, config, {}, {}, {}, {}};
    if (type != "Unigram") {
        const auto vocabularyField = field(*model, "vocab");
        if (!vocabularyField)
            return wrongType("tokenizer.json: model.vocab", "present");
        const Result<object> entries = objectOf(*vocabularyField, "tokenizer.json: model.vocab");
        if (!entries)
            return fail(entries.error());
        Result<Vocabulary> vocabulary = vocabularyOf(*entries);
        if (!vocabulary)
            return fail(vocabulary.error());
        reading.vocabulary = std::move(*vocabulary);
    }
    if (const auto added = field(*root, "added_tokens")) {
        const Result<array> list = arrayOf(*added, "tokenizer.json: added_tokens");
        if (!list)
            return fail(list.error());
        for (const element item : *list) {
            const Result<AddedToken> token = addedToken(item, "tokenizer.json: added_tokens");
            if (!token)
                return fail(token.error());
            reading.addedTokens.push_back(*token);
        }
    }
    const Status processed = setPostProcessor(*root, reading.description, reading.trims);
    if (!processed)
        return fail(processed.error());
    if (type == "WordPiece")
        return readWordPiece(reading);
    return type == "BPE" ? readBpe(reading) : readUnigram(reading);
}

} // namespace muster::tokenizer
