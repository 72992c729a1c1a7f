// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/loading_p.h"

#include "base/file.h"
#include "base/utf8.h"

#include <fmt/format.h>

namespace muster::tokenizer {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t fileLimit = std::size_t{512} << 20U;

/// The file's content, empty when it does not exist.
Result<std::string> readIfThere(const fs::path& path)
{
    std::error_code ignored;
    if (!fs::exists(path, ignored))
        return std::string();
    return readFile(path, fileLimit);
}

Result<std::unique_ptr<Tokenizer>> readBertVocabulary(std::string_view vocabTxt,
                                                      const TokenizerConfig& config)
{
    if (const auto broken = utf8::firstInvalid(vocabTxt))
        return fail(Error::Kind::Invalid, "E-TOK-005",
                    fmt::format("vocab.txt is not UTF-8 at byte {}", *broken));
    WordPieceParts parts;
    std::int32_t id = 0;
    for (std::string_view rest = vocabTxt; !rest.empty(); ++id) {
        const std::size_t stop = std::min(rest.find('\n'), rest.size());
        std::string_view token = rest.substr(0, stop);
        rest.remove_prefix(std::min(stop + 1, rest.size()));
        if (token.ends_with('\r'))
            token.remove_suffix(1);
        parts.vocabulary.emplace_back(id, token);
    }
    parts.normalization.lowers = config.doLowerCase.value_or(true);
    parts.normalization.stripsAccents = config.stripAccents.value_or(parts.normalization.lowers);
    parts.normalization.isolatesChinese = config.tokenizeChineseChars.value_or(true);
    TokenizerConfig named = config;
    const std::pair<std::optional<std::string> TokenizerConfig::*, const char*> defaults[] = {
        {&TokenizerConfig::unkToken, "[UNK]"},
        {&TokenizerConfig::sepToken, "[SEP]"},
        {&TokenizerConfig::padToken, "[PAD]"},
        {&TokenizerConfig::clsToken, "[CLS]"},
        {&TokenizerConfig::maskToken, "[MASK]"}};
    std::vector<AddedToken> wanted = config.addedTokens;
    for (const auto& [member, name] : defaults) {
        if (!(named.*member))
            named.*member = name;
        if (std::ranges::find(wanted, *(named.*member), &AddedToken::content) == wanted.end())
            wanted.push_back(AddedToken{.content = *(named.*member), .id = -1, .isSpecial = true});
    }
    parts.unkToken = *named.unkToken;
    TokenIds ids(parts.vocabulary, named, wanted, {});
    for (const AddedToken& token : wanted) {
        const Status added = ids.addToken(token, parts.description.addedTokens);
        if (!added)
            return fail(added.error());
    }
    parts.description.modelMaxLength = config.modelMaxLength;
    parts.description.specials = ids.roles(named, parts.description.addedTokens);
    setBertTemplate(parts.description, *parts.description.specials.cls,
                    *parts.description.specials.sep);
    return makeWordPiece(std::move(parts), ids);
}

} // namespace

Result<std::unique_ptr<Tokenizer>> loadTokenizerJson(std::string_view json)
{
    return readTokenizerJson(json, TokenizerConfig{});
}

Result<std::unique_ptr<Tokenizer>> loadBertVocabulary(std::string_view vocabTxt,
                                                      const BertSettings& settings)
{
    TokenizerConfig config;
    config.modelMaxLength = settings.modelMaxLength;
    config.doLowerCase = settings.doLowerCase;
    config.stripAccents = settings.stripAccents;
    config.tokenizeChineseChars = settings.tokenizeChineseChars;
    config.unkToken = settings.unkToken;
    config.sepToken = settings.sepToken;
    config.padToken = settings.padToken;
    config.clsToken = settings.clsToken;
    config.maskToken = settings.maskToken;
    return readBertVocabulary(vocabTxt, config);
}

Result<std::unique_ptr<Tokenizer>> loadGpt2Vocabulary(std::string_view vocabJson,
                                                      std::string_view mergesTxt)
{
    return readGpt2Files(vocabJson, mergesTxt, TokenizerConfig{});
}

Result<std::unique_ptr<Tokenizer>> loadSentencePieceModel(std::string_view bytes)
{
    return readSentencePiece(bytes, TokenizerConfig{});
}

Result<std::unique_ptr<Tokenizer>> loadTokenizer(const fs::path& directory)
{
    const auto during = [&](const Error& error, const char* file) {
        return fail(error.during("reading " + (directory / file).string()));
    };
    const Result<std::string> configText = readIfThere(directory / "tokenizer_config.json");
    if (!configText)
        return fail(configText.error());
    const Result<std::string> mapText = readIfThere(directory / "special_tokens_map.json");
    if (!mapText)
        return fail(mapText.error());
    const Result<TokenizerConfig> config = readConfig(*configText, *mapText);
    if (!config)
        return during(config.error(), "tokenizer_config.json");

    std::error_code ignored;
    const auto has = [&](const char* file) { return fs::exists(directory / file, ignored); };
    if (has("tokenizer.json")) {
        const Result<MappedFile> json = MappedFile::open(directory / "tokenizer.json");
        if (!json)
            return fail(json.error());
        auto made = readTokenizerJson(json->text(), *config);
        return made ? std::move(made) : during(made.error(), "tokenizer.json");
    }
    for (const char* file : {"tokenizer.model", "spiece.model"}) {
        if (!has(file))
            continue;
        const Result<std::string> bytes = readFile(directory / file, fileLimit);
        if (!bytes)
            return fail(bytes.error());
        auto made = readSentencePiece(*bytes, *config);
        return made ? std::move(made) : during(made.error(), file);
    }
    if (has("added_tokens.json") && config->addedTokens.empty())
        return during(Error{Error::Kind::Invalid, "E-TOK-004",
                            "added tokens without their flags (added_tokens_decoder of "
                            "tokenizer_config.json) are not implemented"},
                      "added_tokens.json");
    if (has("vocab.txt")) {
        const Result<std::string> text = readFile(directory / "vocab.txt", fileLimit);
        if (!text)
            return fail(text.error());
        auto made = readBertVocabulary(*text, *config);
        return made ? std::move(made) : during(made.error(), "vocab.txt");
    }
    if (has("vocab.json") && has("merges.txt")) {
        const Result<std::string> vocabulary = readFile(directory / "vocab.json", fileLimit);
        if (!vocabulary)
            return fail(vocabulary.error());
        const Result<std::string> merges = readFile(directory / "merges.txt", fileLimit);
        if (!merges)
            return fail(merges.error());
        auto made = readGpt2Files(*vocabulary, *merges, *config);
        return made ? std::move(made) : during(made.error(), "vocab.json");
    }
    return fail(Error::Kind::NotFound, "E-TOK-001",
                fmt::format("{} has no tokenizer.json, no tokenizer.model, no vocab.txt and no "
                            "vocab.json with merges.txt",
                            directory.string()));
}

} // namespace muster::tokenizer
