// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/loading_p.h"
#include "tokenizer/pipeline_tokenizer_p.h"
#include "tokenizer/sentence_piece_p.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace muster::tokenizer {

namespace {

using Model = SentencePieceModel;
using Type = Model::Type;

tl::unexpected<Error> notImplemented(std::string_view what)
{
    return fail(Error::Kind::Invalid, "E-TOK-004",
                fmt::format("{} is not implemented; nothing was guessed in its place", what));
}

Status check(const Model& model)
{
    if (model.kind != Model::Kind::bpe && model.kind != Model::Kind::unigram)
        return notImplemented("a SentencePiece model of words or characters");
    if (model.treatsBlankAsSuffix)
        return notImplemented("trainer_spec.treat_whitespace_as_suffix");
    std::unordered_map<std::string_view, std::size_t> seen;
    std::int64_t unknown = 0;
    for (std::size_t id = 0; id < model.pieces.size(); ++id) {
        const Model::Piece& piece = model.pieces[id];
        if (!seen.emplace(piece.text, id).second)
            return fail(Error::Kind::Invalid, "E-TOK-005",
                        fmt::format("the piece \"{}\" stands in the model twice", piece.text));
        if (piece.type == Type::unused)
            return notImplemented(fmt::format("the unused piece \"{}\"", piece.text));
        unknown += piece.type == Type::unknown ? 1 : 0;
    }
    if (unknown != 1)
        return fail(Error::Kind::Invalid, "E-TOK-005",
                    fmt::format("the model has {} unknown pieces, and one is needed", unknown));
    for (unsigned byte = 0; model.fallsBackToBytes && byte < 256; ++byte) {
        const auto hit = seen.find(byteToken(byte));
        if (hit == seen.end() || model.pieces[hit->second].type != Type::byte)
            return fail(
                Error::Kind::Invalid, "E-TOK-005",
                fmt::format("the model falls back to bytes and has no piece {}", byteToken(byte)));
    }
    return {};
}

bool isText(Type type)
{
    return type == Type::normal || type == Type::userDefined;
}

std::int32_t unknownId(const Model& model)
{
    const auto unknown = std::ranges::find(model.pieces, Type::unknown, &Model::Piece::type);
    return static_cast<std::int32_t>(unknown - model.pieces.begin());
}

/// Every pair of pieces that spells a piece is a merge; the higher the score of that piece, the
/// earlier, and equal scores go from left to right (bpe_model.cc).
Result<std::unique_ptr<WordModel>> bpeOf(const Model& model)
{
    CodePointBpeParts parts;
    parts.unk = unknownId(model);
    parts.fusesUnk = true;
    parts.fallsBackToBytes = model.fallsBackToBytes;
    std::unordered_map<std::string_view, std::size_t> texts;
    std::vector<float> scores;
    for (std::size_t id = 0; id < model.pieces.size(); ++id) {
        const Model::Piece& piece = model.pieces[id];
        // Control symbols and bytes are no text, though the bytes must be found by their names.
        if (isText(piece.type) || piece.type == Type::byte)
            parts.vocabulary.emplace_back(static_cast<std::int32_t>(id), piece.text);
        if (!isText(piece.type))
            continue;
        texts.emplace(piece.text, id);
        if (piece.type == Type::userDefined)
            parts.whole.push_back(piece.text);
        scores.push_back(piece.score);
    }
    std::ranges::sort(scores, std::ranges::greater{});
    const auto last = std::ranges::unique(scores).begin();
    scores.erase(last, scores.end());
    for (const auto& [text, id] : texts) {
        const auto rank =
            std::ranges::lower_bound(scores, model.pieces[id].score, std::ranges::greater{});
        for (std::size_t at = 1; at < text.size(); ++at) {
            const auto left = texts.find(text.substr(0, at));
            if (left == texts.end())
                continue;
            const auto right = texts.find(text.substr(at));
            if (right != texts.end())
                parts.merges.push_back(
                    {left->first, right->first, static_cast<std::uint32_t>(rank - scores.begin())});
        }
    }
    // The digest sees the merges in an order that does not depend on a hash.
    std::ranges::sort(parts.merges, [](const auto& a, const auto& b) {
        return std::tie(a.rank, a.left, a.right) < std::tie(b.rank, b.left, b.right);
    });
    return CodePointBpe::make(std::move(parts));
}

std::unique_ptr<WordModel> unigramOf(const Model& model)
{
    UnigramParts parts;
    parts.unk = unknownId(model);
    parts.fallsBackToBytes = model.fallsBackToBytes;
    parts.looksAtWords = true;
    float least = 0;
    float most = 0;
    bool isFirst = true;
    for (const Model::Piece& piece : model.pieces) {
        if (piece.type != Type::normal)
            continue;
        least = isFirst ? piece.score : std::min(least, piece.score);
        most = isFirst ? piece.score : std::max(most, piece.score);
        isFirst = false;
    }
    parts.leastScore = static_cast<double>(least);
    for (const Model::Piece& piece : model.pieces) {
        UnigramParts::Piece one{piece.text, static_cast<double>(piece.score), true};
        one.isMatched = isText(piece.type);
        // What the library gives to user-defined symbols, so that they win (unigram_model.cc).
        if (piece.type == Type::userDefined)
            one.score = static_cast<double>(piece.text.size()) * static_cast<double>(most) - 0.1;
        parts.pieces.push_back(one);
    }
    return std::make_unique<Unigram>(parts);
}

/// What the classes of transformers do around a SentencePiece model.
struct Family {
    bool addsBos = false;
    bool addsEos = false;
};

Result<Family> familyOf(const Model& model, const TokenizerConfig& config)
{
    const std::string name = config.tokenizerClass.value_or("");
    Family family;
    if (name == "LlamaTokenizer" || name == "CodeLlamaTokenizer" || name == "GemmaTokenizer" ||
        (name.empty() && model.kind == Model::Kind::bpe))
        family.addsBos = true;
    else if (name == "T5Tokenizer" || (name.empty() && model.kind == Model::Kind::unigram))
        family.addsEos = true;
    else
        return notImplemented(fmt::format("tokenizer_class {} from a SentencePiece model", name));
    if (config.addBosToken)
        family.addsBos = *config.addBosToken;
    if (config.addEosToken)
        family.addsEos = *config.addEosToken;
    return family;
}

/// The configuration with the names that the model itself gives to the roles.
TokenizerConfig named(const Model& model, const TokenizerConfig& config)
{
    TokenizerConfig out = config;
    const std::pair<std::optional<std::string> TokenizerConfig::*, std::int32_t> roles[] = {
        {&TokenizerConfig::unkToken, unknownId(model)},
        {&TokenizerConfig::bosToken, model.bosId},
        {&TokenizerConfig::eosToken, model.eosId},
        {&TokenizerConfig::padToken, model.padId},
    };
    for (const auto& [member, id] : roles) {
        if (!(out.*member) && id >= 0 && static_cast<std::size_t>(id) < model.pieces.size())
            out.*member = model.pieces[static_cast<std::size_t>(id)].text;
    }
    return out;
}

} // namespace

Result<std::unique_ptr<Tokenizer>> readSentencePiece(std::string_view bytes,
                                                     const TokenizerConfig& config)
{
    const Result<Model> model = readSentencePieceModel(bytes);
    if (!model)
        return fail(model.error());
    const Status isSound = check(*model);
    if (!isSound)
        return fail(isSound.error());
    const Result<Family> family = familyOf(*model, config);
    if (!family)
        return fail(family.error());
    PipelineParts parts;
    if (model->kind == Model::Kind::bpe) {
        auto made = bpeOf(*model);
        if (!made)
            return fail(made.error());
        parts.model = std::move(*made);
    } else {
        parts.model = unigramOf(*model);
    }

    SentencePieceNormalization normalization;
    Result<Charsmap> map = Charsmap::parse(model->charsmap);
    if (!map)
        return fail(map.error().during("normalizer_spec.precompiled_charsmap"));
    normalization.map = std::move(*map);
    normalization.addsDummyPrefix = config.addPrefixSpace.value_or(model->addsDummyPrefix);
    normalization.removesExtraBlanks = model->removesExtraBlanks;
    normalization.escapesBlanks = model->escapesBlanks;
    for (const Model::Piece& piece : model->pieces) {
        if (piece.type == Type::userDefined)
            normalization.kept.push_back(piece.text);
    }
    parts.normalizer.add(makeSentencePiece(std::move(normalization)));
    parts.normalizer.setContinuesBehindTokens(!config.isLegacy.value_or(true));
    parts.replacesSpaces = model->escapesBlanks;

    Vocabulary vocabulary;
    for (std::size_t id = 0; id < model->pieces.size(); ++id)
        vocabulary.emplace_back(static_cast<std::int32_t>(id), model->pieces[id].text);
    const TokenizerConfig names = named(*model, config);
    std::vector<AddedToken> wanted = config.addedTokens;
    for (const auto* name : {&names.unkToken, &names.bosToken, &names.eosToken, &names.padToken,
                             &names.clsToken, &names.sepToken, &names.maskToken}) {
        if (*name && std::ranges::find(wanted, **name, &AddedToken::content) == wanted.end())
            wanted.push_back(AddedToken{.content = **name, .id = -1, .isSpecial = true});
    }
    TokenIds ids(vocabulary, names, wanted, {});
    Description& description = parts.description;
    for (const AddedToken& token : wanted) {
        const Status added = ids.addToken(token, description.addedTokens);
        if (!added)
            return fail(added.error());
    }
    description.modelMaxLength = config.modelMaxLength;
    description.specials = ids.roles(names, description.addedTokens);
    // CLS and SEP are not roles of these families unless the configuration says so.
    if (!names.clsToken)
        description.specials.cls.reset();
    if (!names.sepToken)
        description.specials.sep.reset();
    const auto& bos = description.specials.bos;
    const auto& eos = description.specials.eos;
    if ((family->addsBos && !bos) || (family->addsEos && !eos))
        return fail(Error::Kind::Invalid, "E-TOK-008",
                    "the template needs a token for the begin or the end of a text, and the model "
                    "has none");
    PairTemplate& pair = description.pair;
    if (family->addsBos) {
        description.single.prefix.push_back(*bos);
        pair.prefix = {*bos};
        pair.middle = {*bos};
    }
    if (family->addsEos) {
        description.single.suffix.push_back(*eos);
        pair.middle.insert(pair.middle.begin(), *eos);
        pair.suffix = {*eos};
    }
    pair.prefixSegments.assign(pair.prefix.size(), 0);
    pair.middleSegments.assign(pair.middle.size(), 0);
    pair.suffixSegments.assign(pair.suffix.size(), 0);
    setVocabularySize(description, vocabulary);
    return std::make_unique<PipelineTokenizer>(std::move(parts));
}

} // namespace muster::tokenizer
