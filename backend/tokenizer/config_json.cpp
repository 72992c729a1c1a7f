// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/json_fields_p.h"

#include <fmt/format.h>

namespace muster::tokenizer {

namespace {

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
            parseJson(parser, withShortIntegers(configJson), "tokenizer_config.json");
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
            {"add_bos_token", &TokenizerConfig::addBosToken},
            {"add_eos_token", &TokenizerConfig::addEosToken},
            {"legacy", &TokenizerConfig::isLegacy},
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
        const Result<object> root =
            parseJson(parser, specialTokensMapJson, "special_tokens_map.json");
        if (!root)
            return fail(root.error());
        readNames(*root, config);
    }
    return config;
}

Result<std::unique_ptr<Tokenizer>>
readGpt2Files(std::string_view vocabJson, std::string_view mergesTxt, const TokenizerConfig& config)
{
    simdjson::dom::parser parser;
    const Result<object> root = parseJson(parser, vocabJson, "vocab.json");
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
