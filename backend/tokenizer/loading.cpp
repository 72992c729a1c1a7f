// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/loading_p.h"

#include <fmt/format.h>

namespace muster::tokenizer {

namespace {

constexpr std::int32_t unsetId = -1;

} // namespace

TokenIds::TokenIds(const Vocabulary& vocabulary, const TokenizerConfig& config,
                   const std::vector<AddedToken>& addedTokens,
                   const std::vector<std::string>& otherNames)
    : m_vocabularyTokens(static_cast<std::int64_t>(vocabulary.size()))
{
    std::array<bool, 256> starts{};
    std::size_t longest = 0;
    const auto want = [&](const std::string& name) {
        if (name.empty())
            return;
        m_vocabulary.emplace(name, unsetId);
        starts[static_cast<unsigned char>(name[0])] = true;
        longest = std::max(longest, name.size());
    };
    for (const AddedToken& token : addedTokens)
        want(token.content);
    for (const std::string& name : otherNames)
        want(name);
    for (const auto* name : {&config.clsToken, &config.sepToken, &config.padToken, &config.unkToken,
                             &config.maskToken, &config.bosToken, &config.eosToken}) {
        if (*name)
            want(**name);
    }
    std::unordered_set<std::int32_t> stated;
    for (const AddedToken& token : addedTokens)
        stated.insert(token.id);
    for (const auto& [id, token] : vocabulary) {
        if (!stated.empty() && stated.contains(id))
            m_takenIds.insert(id);
        if (token.empty() || token.size() > longest ||
            !starts[static_cast<unsigned char>(token[0])])
            continue;
        const auto wanted = m_vocabulary.find(std::string(token));
        if (wanted != m_vocabulary.end())
            wanted->second = id;
    }
    std::erase_if(m_vocabulary, [](const auto& entry) { return entry.second == unsetId; });
}

std::optional<std::int32_t> TokenIds::inVocabulary(std::string_view name) const
{
    const auto hit = m_vocabulary.find(std::string(name));
    return hit == m_vocabulary.end() ? std::nullopt : std::optional(hit->second);
}

std::optional<std::int32_t> TokenIds::find(std::string_view name) const
{
    const auto hit = m_added.find(std::string(name));
    return hit == m_added.end() ? inVocabulary(name) : std::optional(hit->second);
}

Status TokenIds::addToken(AddedToken token, std::vector<AddedToken>& into)
{
    if (token.content.empty())
        return {};
    std::optional<std::int32_t> id = find(token.content);
    // Hugging Face would number such a token by its place; the file means a row of the model.
    const bool isTaken =
        m_takenIds.contains(token.id) ||
        std::ranges::any_of(m_added, [&](const auto& entry) { return entry.second == token.id; });
    if (!id && token.id >= 0 && !isTaken)
        id = token.id;
    if (!id) {
        std::int64_t next = m_vocabularyTokens;
        for (const auto& [name, given] : m_added)
            next = std::max(next, std::int64_t{given} + 1);
        if (next > INT32_MAX)
            return fail(Error::Kind::Invalid, "E-TOK-005",
                        "the ids of the vocabulary are too large");
        id = static_cast<std::int32_t>(next);
    }
    if (token.id >= 0 && token.id != *id)
        return fail(
            Error::Kind::Invalid, "E-TOK-007",
            fmt::format("added token \"{}\" has id {} in the file, but the vocabulary gives "
                        "it {}",
                        token.content, token.id, *id));
    token.id = *id;
    m_added.insert_or_assign(token.content, *id);
    const auto same = std::ranges::find(into, token.content, &AddedToken::content);
    if (same != into.end())
        *same = std::move(token);
    else
        into.push_back(std::move(token));
    return {};
}

SpecialTokens TokenIds::roles(const TokenizerConfig& config,
                              const std::vector<AddedToken>& addedTokens) const
{
    const auto named = [&](const std::optional<std::string>& name,
                           std::initializer_list<std::string_view> conventional) {
        std::optional<std::int32_t> id;
        if (name)
            return find(*name);
        for (const std::string_view candidate : conventional) {
            for (const AddedToken& token : addedTokens) {
                if (!id && token.isSpecial && token.content == candidate)
                    id = token.id;
            }
        }
        return id;
    };
    return SpecialTokens{
        .cls = named(config.clsToken, {"[CLS]", "<s>"}),
        .sep = named(config.sepToken, {"[SEP]", "</s>"}),
        .pad = named(config.padToken, {"[PAD]", "<pad>"}),
        .unk = named(config.unkToken, {"[UNK]", "<unk>"}),
        .mask = named(config.maskToken, {"[MASK]", "<mask>"}),
        .bos = named(config.bosToken, {"<s>", "<|endoftext|>"}),
        .eos = named(config.eosToken, {"</s>", "<|endoftext|>"}),
    };
}

void setBertTemplate(Description& description, std::int32_t cls, std::int32_t sep)
{
    description.single = {.prefix = {cls}, .suffix = {sep}};
    description.pair = PairTemplate{.prefix = {cls},
                                    .middle = {sep},
                                    .suffix = {sep},
                                    .prefixSegments = {0},
                                    .middleSegments = {0},
                                    .suffixSegments = {1},
                                    .questionSegment = 0,
                                    .contextSegment = 1,
                                    .usesSegments = true};
}

void setRobertaTemplate(Description& description, std::int32_t cls, std::int32_t sep)
{
    description.single = {.prefix = {cls}, .suffix = {sep}};
    description.pair = PairTemplate{.prefix = {cls},
                                    .middle = {sep, sep},
                                    .suffix = {sep},
                                    .prefixSegments = {0},
                                    .middleSegments = {0, 0},
                                    .suffixSegments = {0},
                                    .questionSegment = 0,
                                    .contextSegment = 0,
                                    .usesSegments = false};
}

void setVocabularySize(Description& description, const Vocabulary& vocabulary)
{
    std::int64_t largest = -1;
    for (const auto& [id, token] : vocabulary)
        largest = std::max(largest, std::int64_t{id});
    for (const AddedToken& token : description.addedTokens)
        largest = std::max(largest, std::int64_t{token.id});
    description.vocabularySize = largest + 1;
}

Result<std::unique_ptr<Tokenizer>> makeWordPiece(WordPieceParts parts, const TokenIds& ids)
{
    const std::optional<std::int32_t> unk = ids.inVocabulary(parts.unkToken);
    if (!unk)
        return fail(
            Error::Kind::Invalid, "E-TOK-005",
            fmt::format("the unknown token {} does not stand in the vocabulary", parts.unkToken));
    setVocabularySize(parts.description, parts.vocabulary);
    return std::make_unique<WordPieceTokenizer>(std::move(parts), *unk);
}

} // namespace muster::tokenizer
