// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/loading_p.h"

#include <fmt/format.h>
#include <simdjson.h>

namespace muster::tokenizer {

namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

tl::unexpected<Error> wrongType(std::string_view where, std::string_view wanted)
{
    return fail(Error::Kind::Invalid, "E-TOK-003", fmt::format("{} is not {}", where, wanted));
}

tl::unexpected<Error> notImplemented(std::string_view what)
{
    return fail(Error::Kind::Invalid, "E-TOK-004",
                fmt::format("{} is not implemented; nothing was guessed in its place", what));
}

/// The field; nothing when it is absent or null.
std::optional<element> field(const object& in, std::string_view key)
{
    element value;
    if (in.at_key(key).get(value) != simdjson::SUCCESS || value.is_null())
        return std::nullopt;
    return value;
}

Result<std::string> stringField(const object& in, std::string_view key, std::string_view where,
                                std::optional<std::string> otherwise = std::nullopt)
{
    const auto value = field(in, key);
    if (!value) {
        if (otherwise)
            return *otherwise;
        return wrongType(fmt::format("{}.{}", where, key), "present");
    }
    std::string_view text;
    if (value->get_string().get(text) != simdjson::SUCCESS)
        return wrongType(fmt::format("{}.{}", where, key), "a string");
    return std::string(text);
}

Result<bool> boolField(const object& in, std::string_view key, std::string_view where,
                       bool otherwise)
{
    const auto value = field(in, key);
    if (!value)
        return otherwise;
    bool flag = false;
    if (value->get_bool().get(flag) != simdjson::SUCCESS)
        return wrongType(fmt::format("{}.{}", where, key), "true or false");
    return flag;
}

Result<std::int32_t> idOfElement(const element& value, std::string_view where)
{
    std::uint64_t id = 0;
    if (value.get_uint64().get(id) != simdjson::SUCCESS || id > INT32_MAX - 1)
        return wrongType(where, fmt::format("an id from 0 to {}", INT32_MAX - 1));
    return static_cast<std::int32_t>(id);
}

Result<object> objectOf(const element& value, std::string_view where)
{
    object out;
    if (value.get_object().get(out) != simdjson::SUCCESS)
        return wrongType(where, "an object");
    return out;
}

Result<array> arrayOf(const element& value, std::string_view where)
{
    array out;
    if (value.get_array().get(out) != simdjson::SUCCESS)
        return wrongType(where, "a list");
    return out;
}

Result<AddedToken> addedToken(const element& value, std::string_view where)
{
    const Result<object> in = objectOf(value, where);
    if (!in)
        return fail(in.error());
    AddedToken token;
    const Result<std::string> content = stringField(*in, "content", where);
    if (!content)
        return fail(content.error());
    token.content = *content;
    token.id = -1;
    if (const auto id = field(*in, "id")) {
        const Result<std::int32_t> read = idOfElement(*id, fmt::format("{}.id", where));
        if (!read)
            return fail(read.error());
        token.id = *read;
    }
    const std::pair<const char*, bool AddedToken::*> flags[] = {
        {"single_word", &AddedToken::isSingleWord}, {"lstrip", &AddedToken::stripsLeft},
        {"rstrip", &AddedToken::stripsRight},       {"normalized", &AddedToken::isNormalized},
        {"special", &AddedToken::isSpecial},
    };
    for (const auto& [key, member] : flags) {
        const Result<bool> flag = boolField(*in, key, where, false);
        if (!flag)
            return fail(flag.error());
        token.*member = *flag;
    }
    return token;
}

Result<Vocabulary> vocabularyOf(const object& in)
{
    Vocabulary vocabulary;
    vocabulary.reserve(in.size());
    for (const auto entry : in) {
        std::uint64_t id = 0;
        if (entry.value.get_uint64().get(id) != simdjson::SUCCESS || id > INT32_MAX - 1)
            return fail(Error::Kind::Invalid, "E-TOK-005",
                        fmt::format("token \"{}\" of the vocabulary has no id from 0 to {}",
                                    entry.key, INT32_MAX - 1));
        vocabulary.emplace_back(static_cast<std::int32_t>(id), entry.key);
    }
    return vocabulary;
}

/// Adds the steps of a possibly nested Sequence, or the one step.
Status flatten(const element& value, std::string_view listKey, std::string_view where,
               std::vector<object>& steps, int depth = 0)
{
    const Result<object> in = objectOf(value, where);
    if (!in)
        return fail(in.error());
    const Result<std::string> type = stringField(*in, "type", where);
    if (!type)
        return fail(type.error());
    if (*type != "Sequence") {
        steps.push_back(*in);
        return {};
    }
    const auto list = field(*in, listKey);
    if (!list || depth > 8)
        return wrongType(fmt::format("{}.{}", where, listKey), "a list of steps");
    const Result<array> items = arrayOf(*list, fmt::format("{}.{}", where, listKey));
    if (!items)
        return fail(items.error());
    for (const element item : *items) {
        const Status added = flatten(item, listKey, where, steps, depth + 1);
        if (!added)
            return added;
    }
    return {};
}

/// The steps of a component of tokenizer.json; none when it is absent or null.
Result<std::vector<object>> steps(const object& root, std::string_view component,
                                  std::string_view listKey)
{
    std::vector<object> out;
    if (const auto value = field(root, component)) {
        const Status read = flatten(*value, listKey, component, out);
        if (!read)
            return fail(read.error());
    }
    return out;
}

std::string typeOf(const object& step)
{
    return stringField(step, "type", "", "").value_or("");
}

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

/// A token and its id as BertProcessing and RobertaProcessing name them: ["[SEP]", 102].
Result<std::int32_t> namedId(const object& step, std::string_view key)
{
    const std::string where = fmt::format("post_processor.{}", key);
    const auto value = field(step, key);
    if (!value)
        return wrongType(where, "present");
    const Result<array> pair = arrayOf(*value, where);
    if (!pair)
        return fail(pair.error());
    element id;
    if (pair->size() != 2 || pair->at(1).get(id) != simdjson::SUCCESS)
        return wrongType(where, "a token and its id");
    return idOfElement(id, where);
}

struct TemplatePart {
    char sequence = 0; // 'A', 'B', or 0 for special tokens
    std::vector<std::int32_t> ids;
    std::int32_t segment = 0;
};

Result<std::vector<TemplatePart>> templateParts(const object& step, std::string_view key)
{
    const std::string where = fmt::format("post_processor.{}", key);
    const auto list = field(step, key);
    if (!list)
        return wrongType(where, "present");
    const Result<array> items = arrayOf(*list, where);
    if (!items)
        return fail(items.error());
    const auto specials = field(step, "special_tokens");
    std::vector<TemplatePart> parts;
    for (const element item : *items) {
        const Result<object> in = objectOf(item, where);
        if (!in)
            return fail(in.error());
        TemplatePart part;
        const auto sequence = field(*in, "Sequence");
        const auto special = field(*in, "SpecialToken");
        if (sequence.has_value() == special.has_value())
            return wrongType(where, "made of Sequence and SpecialToken");
        const Result<object> body = objectOf(sequence ? *sequence : *special, where);
        if (!body)
            return fail(body.error());
        const Result<std::string> name = stringField(*body, "id", where);
        if (!name)
            return fail(name.error());
        if (const auto segment = field(*body, "type_id")) {
            const Result<std::int32_t> read = idOfElement(*segment, where + ".type_id");
            if (!read)
                return fail(read.error());
            part.segment = *read;
        }
        if (sequence) {
            if (*name != "A" && *name != "B")
                return wrongType(where + ".Sequence.id", "A or B");
            part.sequence = (*name)[0];
        } else {
            std::optional<element> entry;
            if (specials && specials->is_object())
                entry = field(object(*specials), *name);
            if (!entry)
                return fail(Error::Kind::Invalid, "E-TOK-008",
                            fmt::format("the template names the special token {}, which is not "
                                        "described",
                                        *name));
            const Result<object> described = objectOf(*entry, "post_processor.special_tokens");
            if (!described)
                return fail(described.error());
            const auto ids = field(*described, "ids");
            if (!ids)
                return wrongType("post_processor.special_tokens.ids", "present");
            const Result<array> idList = arrayOf(*ids, "post_processor.special_tokens.ids");
            if (!idList)
                return fail(idList.error());
            for (const element id : *idList) {
                const Result<std::int32_t> read =
                    idOfElement(id, "post_processor.special_tokens.ids");
                if (!read)
                    return fail(read.error());
                part.ids.push_back(*read);
            }
        }
        parts.push_back(std::move(part));
    }
    return parts;
}

Status setTemplate(const object& step, Description& description)
{
    const auto single = templateParts(step, "single");
    if (!single)
        return fail(single.error());
    const auto pair = templateParts(step, "pair");
    if (!pair)
        return fail(pair.error());
    const auto shape = [](const std::vector<TemplatePart>& parts) {
        std::string text;
        for (const TemplatePart& part : parts) {
            if (part.sequence != 0)
                text.push_back(part.sequence);
        }
        return text;
    };
    if (shape(*single) != "A" || shape(*pair) != "AB")
        return fail(Error::Kind::Invalid, "E-TOK-008",
                    "the template does not have the texts once and in their order");
    SingleTemplate& one = description.single;
    bool isBehind = false;
    for (const TemplatePart& part : *single) {
        if (part.sequence != 0)
            isBehind = true;
        auto& ids = isBehind ? one.suffix : one.prefix;
        ids.insert(ids.end(), part.ids.begin(), part.ids.end());
    }
    PairTemplate& two = description.pair;
    std::vector<std::int32_t>* ids[] = {&two.prefix, &two.middle, &two.suffix};
    std::vector<std::int32_t>* segments[] = {&two.prefixSegments, &two.middleSegments,
                                             &two.suffixSegments};
    std::size_t place = 0;
    for (const TemplatePart& part : *pair) {
        two.usesSegments = two.usesSegments || part.segment != 0;
        if (part.sequence == 'A')
            two.questionSegment = part.segment;
        if (part.sequence == 'B')
            two.contextSegment = part.segment;
        if (part.sequence != 0)
            ++place;
        ids[place]->insert(ids[place]->end(), part.ids.begin(), part.ids.end());
        segments[place]->insert(segments[place]->end(), part.ids.size(), part.segment);
    }
    return {};
}

/// Reads the post-processor; `trims` gets one entry for each step that trims offsets.
Status setPostProcessor(const object& root, Description& description, std::vector<bool>& trims)
{
    const auto list = steps(root, "post_processor", "processors");
    if (!list)
        return fail(list.error());
    bool hasTemplate = false;
    for (const object& step : *list) {
        const std::string type = typeOf(step);
        const bool addsTokens = type != "ByteLevel";
        if (addsTokens && hasTemplate)
            return notImplemented("a sequence of post-processors that both add tokens");
        hasTemplate = hasTemplate || addsTokens;
        if (type == "TemplateProcessing") {
            const Status set = setTemplate(step, description);
            if (!set)
                return set;
        } else if (type == "BertProcessing" || type == "RobertaProcessing") {
            const Result<std::int32_t> cls = namedId(step, "cls");
            const Result<std::int32_t> sep = namedId(step, "sep");
            if (!cls || !sep)
                return fail(cls ? sep.error() : cls.error());
            if (type == "BertProcessing")
                setBertTemplate(description, *cls, *sep);
            else
                setRobertaTemplate(description, *cls, *sep);
        } else if (type != "ByteLevel") {
            return notImplemented("post_processor " + type);
        }
        if (type == "RobertaProcessing" || type == "ByteLevel") {
            const Result<bool> trim = boolField(step, "trim_offsets", "post_processor", true);
            const Result<bool> keeps = boolField(step, "add_prefix_space", "post_processor", true);
            if (!trim || !keeps)
                return fail(trim ? keeps.error() : trim.error());
            if (*trim)
                trims.push_back(*keeps);
        }
    }
    return {};
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

Result<std::pair<std::string_view, std::string_view>> mergeOf(const element& item)
{
    std::string_view left;
    std::string_view right;
    if (item.is_string()) {
        const std::string_view line = item.get_string().value_unsafe();
        const std::size_t space = line.find(' ');
        if (space != std::string_view::npos && line.find(' ', space + 1) == std::string_view::npos)
            return std::pair(line.substr(0, space), line.substr(space + 1));
    } else if (item.is_array()) {
        const array pair = item.get_array().value_unsafe();
        if (pair.size() == 2 && pair.at(0).get_string().get(left) == simdjson::SUCCESS &&
            pair.at(1).get_string().get(right) == simdjson::SUCCESS)
            return std::pair(left, right);
    }
    return fail(Error::Kind::Invalid, "E-TOK-006",
                "an entry of model.merges is not a pair of tokens");
}

Result<std::unique_ptr<Tokenizer>> readBpe(Reading& reading)
{
    ByteLevelBpeParts parts;
    const auto normalizers = steps(reading.root, "normalizer", "normalizers");
    if (!normalizers)
        return fail(normalizers.error());
    if (!normalizers->empty())
        return notImplemented(fmt::format("normalizer {} with BPE", typeOf(normalizers->front())));
    const auto words = steps(reading.root, "pre_tokenizer", "pretokenizers");
    if (!words)
        return fail(words.error());
    if (words->size() != 1 || typeOf(words->front()) != "ByteLevel")
        return notImplemented(
            words->empty() ? std::string("BPE without the pre_tokenizer ByteLevel")
                           : fmt::format("pre_tokenizer {} with BPE", typeOf(words->front())));
    const Result<bool> prefix =
        boolField(words->front(), "add_prefix_space", "pre_tokenizer", true);
    const Result<bool> usesRegex = boolField(words->front(), "use_regex", "pre_tokenizer", true);
    if (!prefix || !usesRegex)
        return fail(prefix ? usesRegex.error() : prefix.error());
    if (!*usesRegex)
        return notImplemented("pre_tokenizer ByteLevel without its regular expression");
    parts.addsPrefixSpace = *prefix;
    if (const auto dropout = field(reading.model, "dropout")) {
        double rate = 1;
        if (dropout->get_double().get(rate) != simdjson::SUCCESS || rate != 0)
            return notImplemented("model.dropout other than 0");
    }
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
        const auto affix = stringField(reading.model, key, "model", "");
        if (!affix)
            return fail(affix.error());
        if (!affix->empty())
            return notImplemented(fmt::format("model.{} with byte-level BPE", key));
    }
    const Result<bool> fallback = boolField(reading.model, "byte_fallback", "model", false);
    const Result<bool> fuses = boolField(reading.model, "fuse_unk", "model", false);
    const Result<bool> ignores = boolField(reading.model, "ignore_merges", "model", false);
    for (const Result<bool>* flag : {&fallback, &fuses, &ignores}) {
        if (!*flag)
            return fail(flag->error());
    }
    if (*fallback)
        return notImplemented("model.byte_fallback with byte-level BPE");
    parts.fusesUnk = *fuses;
    parts.ignoresMerges = *ignores;
    std::vector<std::string> names;
    if (field(reading.model, "unk_token")) {
        const auto unk = stringField(reading.model, "unk_token", "model");
        if (!unk)
            return fail(unk.error());
        parts.unkToken = *unk;
        names.push_back(*unk);
    }
    const auto merges = field(reading.model, "merges");
    if (!merges)
        return wrongType("model.merges", "present");
    const Result<array> mergeList = arrayOf(*merges, "model.merges");
    if (!mergeList)
        return fail(mergeList.error());
    for (const element item : *mergeList) {
        const auto merge = mergeOf(item);
        if (!merge)
            return fail(merge.error());
        parts.merges.push_back(*merge);
    }
    const auto ids = describe(reading, names);
    if (!ids)
        return fail(ids.error());
    parts.description = std::move(reading.description);
    parts.vocabulary = std::move(reading.vocabulary);
    parts.trims = reading.trims;
    setVocabularySize(parts.description, parts.vocabulary);
    return ByteLevelBpeTokenizer::make(std::move(parts));
}

/// `RobertaTokenizerFast` → `RobertaTokenizer`.
std::string withoutFast(std::string name)
{
    if (name.ends_with("Fast"))
        name.resize(name.size() - 4);
    return name;
}

/// A special token of a configuration: a string, or an object with `content`.
std::optional<std::string> tokenName(const object& in, std::string_view key)
{
    const auto value = field(in, key);
    std::string_view text;
    if (!value)
        return std::nullopt;
    if (value->get_string().get(text) == simdjson::SUCCESS)
        return std::string(text);
    object described;
    if (value->get_object().get(described) == simdjson::SUCCESS) {
        if (const auto content = field(described, "content")) {
            if (content->get_string().get(text) == simdjson::SUCCESS)
                return std::string(text);
        }
    }
    return std::nullopt;
}

/// The text with integers of more than 18 digits turned into floating-point numbers: the parser
/// refuses integers above 64 bits, and Hugging Face writes 10^30 for "no limit".
std::string withShortIntegers(std::string_view json)
{
    std::string out;
    out.reserve(json.size() + 16);
    bool isInString = false;
    for (std::size_t at = 0; at < json.size(); ++at) {
        const char c = json[at];
        if (!isInString && c >= '0' && c <= '9') {
            const std::size_t stop =
                std::min(json.find_first_not_of("0123456789", at), json.size());
            out.append(json.substr(at, stop - at));
            const bool isInteger = (at == 0 || json[at - 1] != '.') &&
                                   (stop == json.size() ||
                                    std::string_view(".eE").find(json[stop]) == std::string::npos);
            if (stop - at > 18 && isInteger)
                out.append("e0");
            at = stop - 1;
            continue;
        }
        out.push_back(c);
        if (c == '"')
            isInString = !isInString;
        else if (c == '\\' && isInString && at + 1 < json.size())
            out.push_back(json[++at]);
    }
    return out;
}

Result<object> parse(simdjson::dom::parser& parser, std::string_view json, std::string_view what)
{
    element root;
    const auto error = parser.parse(simdjson::padded_string(json)).get(root);
    if (error != simdjson::SUCCESS)
        return fail(Error::Kind::Invalid, "E-TOK-002",
                    fmt::format("{} is not JSON: {}", what, simdjson::error_message(error)));
    return objectOf(root, what);
}

void readNames(const object& in, TokenizerConfig& config)
{
    const std::pair<const char*, std::optional<std::string> TokenizerConfig::*> names[] = {
        {"cls_token", &TokenizerConfig::clsToken},   {"sep_token", &TokenizerConfig::sepToken},
        {"pad_token", &TokenizerConfig::padToken},   {"unk_token", &TokenizerConfig::unkToken},
        {"mask_token", &TokenizerConfig::maskToken}, {"bos_token", &TokenizerConfig::bosToken},
        {"eos_token", &TokenizerConfig::eosToken},
    };
    for (const auto& [key, member] : names) {
        if (!(config.*member))
            config.*member = tokenName(in, key);
    }
}

} // namespace

Result<TokenizerConfig> readConfig(std::string_view configJson,
                                   std::string_view specialTokensMapJson)
{
    TokenizerConfig config;
    if (!configJson.empty()) {
        simdjson::dom::parser parser;
        const Result<object> root =
            parse(parser, withShortIntegers(configJson), "tokenizer_config.json");
        if (!root)
            return fail(root.error());
        readNames(*root, config);
        const auto name = stringField(*root, "tokenizer_class", "tokenizer_config.json", "");
        if (!name)
            return fail(name.error());
        if (!name->empty())
            config.tokenizerClass = withoutFast(*name);
        if (const auto length = field(*root, "model_max_length")) {
            std::uint64_t tokens = 0;
            if (length->get_uint64().get(tokens) == simdjson::SUCCESS && tokens <= 1'000'000'000)
                config.modelMaxLength = static_cast<std::int64_t>(tokens);
        }
        const std::pair<const char*, std::optional<bool> TokenizerConfig::*> flags[] = {
            {"do_lower_case", &TokenizerConfig::doLowerCase},
            {"strip_accents", &TokenizerConfig::stripAccents},
            {"tokenize_chinese_chars", &TokenizerConfig::tokenizeChineseChars},
            {"add_prefix_space", &TokenizerConfig::addPrefixSpace},
        };
        for (const auto& [key, member] : flags) {
            if (!field(*root, key))
                continue;
            const Result<bool> flag = boolField(*root, key, "tokenizer_config.json", false);
            if (!flag)
                return fail(flag.error());
            config.*member = *flag;
        }
        if (const auto never = field(*root, "never_split")) {
            array words;
            if (never->get_array().get(words) != simdjson::SUCCESS || words.size() > 0)
                return notImplemented("never_split of tokenizer_config.json");
        }
        if (const auto added = field(*root, "added_tokens_decoder")) {
            const Result<object> in =
                objectOf(*added, "tokenizer_config.json: added_tokens_decoder");
            if (!in)
                return fail(in.error());
            for (const auto entry : *in) {
                Result<AddedToken> token = addedToken(entry.value, "added_tokens_decoder");
                if (!token)
                    return fail(token.error());
                std::int64_t id = 0;
                for (const char c : entry.key) {
                    if (c < '0' || c > '9' || id > INT32_MAX / 10 - 1)
                        return wrongType("a key of added_tokens_decoder", "an id");
                    id = id * 10 + (c - '0');
                }
                token->id = static_cast<std::int32_t>(id);
                config.addedTokens.push_back(*token);
            }
            std::ranges::stable_sort(config.addedTokens, {}, &AddedToken::id);
        }
    }
    if (!specialTokensMapJson.empty()) {
        simdjson::dom::parser parser;
        const Result<object> root = parse(parser, specialTokensMapJson, "special_tokens_map.json");
        if (!root)
            return fail(root.error());
        readNames(*root, config);
    }
    return config;
}

Result<std::unique_ptr<Tokenizer>> readTokenizerJson(std::string_view json,
                                                     const TokenizerConfig& config)
{
    simdjson::dom::parser parser;
    const Result<object> root = parse(parser, json, "tokenizer.json");
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
        else
            return wrongType("tokenizer.json: model.type", "present");
    }
    if (type != "WordPiece" && type != "BPE")
        return notImplemented("model " + type);
    Reading reading{*root, *model, config, {}, {}, {}, {}};
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
    return type == "WordPiece" ? readWordPiece(reading) : readBpe(reading);
}

Result<std::unique_ptr<Tokenizer>>
readGpt2Files(std::string_view vocabJson, std::string_view mergesTxt, const TokenizerConfig& config)
{
    simdjson::dom::parser parser;
    const Result<object> root = parse(parser, vocabJson, "vocab.json");
    if (!root)
        return fail(root.error());
    Result<Vocabulary> vocabulary = vocabularyOf(*root);
    if (!vocabulary)
        return fail(vocabulary.error());
    ByteLevelBpeParts parts;
    std::size_t line = 0;
    for (std::string_view rest = mergesTxt; !rest.empty();) {
        const std::size_t stop = std::min(rest.find('\n'), rest.size());
        std::string_view text = rest.substr(0, stop);
        rest.remove_prefix(std::min(stop + 1, rest.size()));
        ++line;
        if (text.ends_with('\r'))
            text.remove_suffix(1);
        if (text.starts_with("#version") || text.empty())
            continue;
        const std::size_t space = text.find(' ');
        if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
            return fail(Error::Kind::Invalid, "E-TOK-006",
                        fmt::format("merges.txt: line {} is not a pair of tokens", line));
        parts.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
    }
    const auto has = [&](std::string_view name) {
        return std::ranges::any_of(*vocabulary, [&](const auto& v) { return v.second == name; });
    };
    std::string family = config.tokenizerClass.value_or("");
    if (family.empty() && has("<|endoftext|>"))
        family = "GPT2Tokenizer";
    const bool isRoberta = family == "RobertaTokenizer";
    if (!isRoberta && family != "GPT2Tokenizer")
        return notImplemented(
            family.empty()
                ? std::string("a vocab.json without tokenizer_class in "
                              "tokenizer_config.json")
                : fmt::format("tokenizer_class {} from vocab.json and merges.txt", family));
    TokenizerConfig named = config;
    const auto otherwise = [](std::optional<std::string>& name, const char* value) {
        if (!name)
            name = value;
    };
    if (isRoberta) {
        otherwise(named.clsToken, "<s>");
        otherwise(named.sepToken, "</s>");
        otherwise(named.padToken, "<pad>");
        otherwise(named.maskToken, "<mask>");
    }
    otherwise(named.bosToken, isRoberta ? "<s>" : "<|endoftext|>");
    otherwise(named.eosToken, isRoberta ? "</s>" : "<|endoftext|>");
    otherwise(named.unkToken, isRoberta ? "<unk>" : "<|endoftext|>");
    std::vector<AddedToken> wanted = config.addedTokens;
    for (const auto* name : {&named.bosToken, &named.eosToken, &named.unkToken, &named.sepToken,
                             &named.padToken, &named.clsToken, &named.maskToken}) {
        if (*name && std::ranges::find(wanted, **name, &AddedToken::content) == wanted.end()) {
            AddedToken token{.content = **name, .id = -1, .isSpecial = true};
            token.stripsLeft = isRoberta && name == &named.maskToken;
            wanted.push_back(token);
        }
    }
    TokenIds ids(*vocabulary, named, wanted, {});
    for (const AddedToken& token : wanted) {
        const Status added = ids.addToken(token, parts.description.addedTokens);
        if (!added)
            return fail(added.error());
    }
    parts.description.modelMaxLength = config.modelMaxLength;
    parts.description.specials = ids.roles(named, parts.description.addedTokens);
    parts.addsPrefixSpace = config.addPrefixSpace.value_or(false);
    if (isRoberta) {
        parts.trims.push_back(parts.addsPrefixSpace);
        setRobertaTemplate(parts.description, *parts.description.specials.cls,
                           *parts.description.specials.sep);
    }
    parts.vocabulary = std::move(*vocabulary);
    setVocabularySize(parts.description, parts.vocabulary);
    return ByteLevelBpeTokenizer::make(std::move(parts));
}

} // namespace muster::tokenizer
