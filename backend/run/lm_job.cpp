// SPDX-License-Identifier: Apache-2.0
#include "run/lm_job.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/utf8.h"
#include "data/text_reader.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/whole_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <thread>

namespace muster::run {

namespace {

/// Texts of more bytes than this in all are not stored in the run file.
constexpr std::uint64_t mostTextBytes = std::uint64_t{256} << 20U;
/// Longest text that is tokenised as one: byte offsets have 32 bits.
constexpr std::uint64_t longestText = (std::uint64_t{1} << 32U) - 2;
/// Longest window that is taken when the configuration names none.
constexpr std::uint32_t longestAutomatic = 4096;

data::DocumentRule ruleOf(const config::RunConfig& config)
{
    const bool isJsonl =
        config.data.format == "jsonl" ||
        (config.data.format == "auto" && !config.data.files.empty() &&
         std::all_of(config.data.files.begin(), config.data.files.end(), [](const auto& file) {
             return file.extension() == ".jsonl" || file.extension() == ".ndjson";
         }));
    if (isJsonl)
        return data::DocumentRule::Jsonl;
    switch (config.lm.documents) {
    case config::Documents::Lines:
        return data::DocumentRule::Lines;
    case config::Documents::BlankLines:
        return data::DocumentRule::BlankLines;
    case config::Documents::Separator:
        return data::DocumentRule::Separator;
    case config::Documents::HfRows:
        return data::DocumentRule::HfJoin;
    case config::Documents::File:
        break;
    }
    return data::DocumentRule::WholeFile;
}

/// Positions of the model by its config.json; nothing when it does not say or cannot be read (the
/// ranks say what is wrong with it).
std::optional<std::uint32_t> modelPositions(const std::filesystem::path& model)
{
    const auto text = readFile(model / "config.json", std::size_t{1} << 20U);
    if (!text)
        return std::nullopt;
    const auto json = nlohmann::json::parse(*text, nullptr, false);
    for (const char* key : {"max_position_embeddings", "n_positions", "n_ctx"})
        if (json.is_object() && json.contains(key) && json[key].is_number_unsigned()) {
            const auto value = json[key].get<std::uint64_t>();
            if (value > 0 && value <= std::numeric_limits<std::uint32_t>::max())
                return static_cast<std::uint32_t>(value);
        }
    return std::nullopt;
}

/// White space of Python's `\s`: what lm-evaluation-harness splits words at.
bool isSpace(char32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
           c == 0x202F || c == 0x205F || c == 0x3000;
}

struct TextCounts {
    std::uint32_t words = 0;
    std::uint32_t characters = 0;
};

/// Counts in text[begin, end). A word begins at the start of the document and behind each run of
/// white space, and belongs to where that run begins, so that the words of neighbouring spans add
/// up to those of lm-evaluation-harness, which splits a document at `\s+` and counts the empty
/// pieces too (semantics.md 4.4).
TextCounts countText(std::string_view text, std::uint64_t begin, std::uint64_t end)
{
    TextCounts counts;
    auto at = static_cast<std::size_t>(begin);
    bool wasSpace = false;
    if (at > 0) {
        std::size_t before = at - 1;
        while (before > 0 && (static_cast<unsigned char>(text[before]) & 0xC0U) == 0x80U)
            --before;
        wasSpace = isSpace(utf8::decode(text, before).codePoint);
    } else if (end > begin) {
        counts.words = 1;
    }
    while (at < end) {
        const utf8::Decoded one = utf8::decode(text, at);
        const bool space = isSpace(one.codePoint);
        counts.words += space && !wasSpace ? 1U : 0U;
        wasSpace = space;
        ++counts.characters;
        at += one.size;
    }
    return counts;
}

Result<task::LmRules> rulesOf(const config::RunConfig& config, const tokenizer::Tokenizer* tok)
{
    task::LmRules rules;
    rules.protocol = static_cast<task::LmProtocol>(config.lm.protocol);
    rules.maxLength = config.lm.maxLength;
    const auto positions = modelPositions(config.model.path);
    if (rules.maxLength == 0)
        rules.maxLength = std::min(positions.value_or(1024), longestAutomatic);
    else if (positions && *positions < rules.maxLength)
        return fail(Error::Kind::Invalid, "E-RUN-006",
                    fmt::format("windows of {} tokens are longer than the {} positions of the "
                                "model in {}. Set lm.max_length to {} or less. Nothing was "
                                "started.",
                                rules.maxLength, *positions, config.model.path.string(),
                                *positions));
    rules.stride = config.lm.stride == 0 ? std::max(1U, rules.maxLength / 2) : config.lm.stride;
    rules.scoredPart = config.lm.scoredPart == config::ScoredPart::SecondHalf
                           ? task::ScoredPart::SecondHalf
                           : task::ScoredPart::All;
    rules.longDocument = config.lm.longDocuments == config::LongDocuments::Truncate
                             ? task::LongDocument::Truncate
                             : task::LongDocument::Roll;
    if (tok != nullptr) {
        const tokenizer::SpecialTokens& special = tok->specials();
        const auto begin = special.bos ? special.bos : special.eos;
        if (rules.protocol == task::LmProtocol::LmEval)
            rules.prefixToken = begin;
        if (rules.protocol == task::LmProtocol::LlamaCpp && config.lm.bos != config::Switch::Off &&
            (config.lm.bos == config::Switch::On || !tok->singleTemplate().prefix.empty()))
            rules.chunkBos = special.bos;
    }
    if (const Status checked = task::checkLmRules(rules); !checked)
        return fail(checked.error());
    return rules;
}

} // namespace

Result<std::unique_ptr<Job>> LmJob::prepared(const config::RunConfig& config)
{
    auto job = std::make_unique<LmJob>(config);
    if (const auto windows = syntheticSamples(config.data)) {
        if (const Status made = job->readSynthetic(*windows); !made)
            return fail(made.error());
    } else if (const Status read = job->read(); !read) {
        return fail(read.error());
    }
    const std::int64_t planning = monotonicNs();
    if (const Status finished = job->finishPreparation(); !finished)
        return fail(finished.error());
    job->m_times.planMs = millisecondsSince(planning);
    return job;
}

Status LmJob::readSynthetic(std::uint64_t windows)
{
    constexpr std::uint32_t length = 33;
    m_rules.protocol = task::LmProtocol::NonOverlapping;
    m_rules.maxLength = length;
    m_items = std::make_shared<plan::ItemTable>(wire::UnitKind::Lm);
    m_items->reserve(static_cast<std::size_t>(windows), static_cast<std::size_t>(windows) * length);
    DocumentInfo document;
    document.name = "synthetic";
    document.tokens = windows * length;
    document.hash = hash128(std::string_view("synthetic"));
    m_documents.push_back(std::move(document));
    m_hasTexts = false;
    std::array<std::int32_t, length> ids{};
    for (std::uint64_t w = 0; w < windows; ++w) {
        for (std::uint32_t t = 0; t < length; ++t)
            ids[t] = static_cast<std::int32_t>((w * 31 + t * 7) % 20000);
        m_items->append(SampleIndex(w), ids, {}, 1);
        Window window;
        window.tokens = length;
        window.scoredFrom = 1;
        window.itemTokens = length;
        window.begin = w * length;
        window.weight = length - 1;
        m_windows.push_back(window);
    }
    m_totalTokens = windows * length;
    UnorderedDigest digest;
    digest.add(0, m_documents.front().hash);
    digest.add(1, Hasher().add(windows).result());
    m_digests.data = digest.result();
    m_digests.tokenizer = hash128(std::string_view("synthetic"));
    m_vocabulary = 20000;
    return {};
}

Status LmJob::read()
{
    const std::int64_t start = monotonicNs();
    auto loaded = tokenizer::loadTokenizer(m_config.model.path);
    if (!loaded)
        return fail(loaded.error());
    const tokenizer::Tokenizer& tok = **loaded;
    m_digests.tokenizer = tok.digest();
    m_vocabulary = static_cast<std::uint32_t>(tok.vocabularySize());
    auto rules = rulesOf(m_config, &tok);
    if (!rules)
        return fail(rules.error());
    m_rules = *rules;
    // lm-evaluation-harness puts the prefix token in front itself; a second one would be scored
    // (T-71) and is added only when it is asked for.
    const bool isLmEval = m_rules.protocol == task::LmProtocol::LmEval;
    const bool isJoined =
        m_config.lm.join == config::Switch::On || (m_config.lm.join == config::Switch::Auto &&
                                                   (m_rules.protocol == task::LmProtocol::Stream));
    std::vector<std::int32_t> before;
    std::vector<std::int32_t> behind;
    if (m_config.lm.bos == config::Switch::On && tok.specials().bos) {
        before = {*tok.specials().bos};
    } else if (m_config.lm.bos == config::Switch::On) {
        return fail(Error::Kind::Invalid, "E-RUN-007",
                    fmt::format("lm.bos is on, but the tokenizer in {} has no beginning-of-text "
                                "token. Nothing was started.",
                                m_config.model.path.string()));
    } else if (m_config.lm.bos == config::Switch::Auto && !isLmEval) {
        before = tok.singleTemplate().prefix;
        behind = tok.singleTemplate().suffix;
    }

    data::TextOptions options;
    options.documents = ruleOf(m_config);
    options.separator = m_config.lm.separator;
    options.field = m_config.lm.field;
    options.ends = m_config.lm.strip == config::Switch::On ? data::DocumentEnds::Strip
                                                           : data::DocumentEnds::Keep;
    options.lineEnds = m_config.lm.lineEnds == config::LineEnds::Lf ? data::LineEnds::Normalise
                                                                    : data::LineEnds::Keep;
    options.unfinished = m_config.lm.dropUnfinished == config::Switch::On
                             ? data::UnfinishedDocument::Drop
                             : data::UnfinishedDocument::Keep;
    options.read.limit = m_config.data.limit;
    options.read.subset = m_config.data.subset;
    m_items = std::make_shared<plan::ItemTable>(wire::UnitKind::Lm);
    const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
    double tokenizeMs = 0.0;
    tokenizer::Encoding encoding;
    Stream stream; // the document at hand, or all of them when they are joined
    std::uint64_t unscored = 0;
    std::vector<SampleIndex> firstUnscored;
    const std::uint64_t most =
        m_config.lm.windows.value_or(std::numeric_limits<std::uint64_t>::max());
    const auto append = [&](std::string_view text) {
        const auto from = static_cast<std::uint32_t>(stream.text.size());
        stream.text += text;
        const auto special = [&](const std::vector<std::int32_t>& tokens, std::uint32_t at) {
            stream.ids.insert(stream.ids.end(), tokens.begin(), tokens.end());
            stream.begin.resize(stream.ids.size(), at);
            stream.end.resize(stream.ids.size(), at);
        };
        special(before, from);
        const std::int64_t tokenizing = monotonicNs();
        tokenizer::encodeText(tok, text, threads, encoding);
        tokenizeMs += millisecondsSince(tokenizing);
        stream.ids.insert(stream.ids.end(), encoding.ids.begin(), encoding.ids.end());
        for (std::size_t t = 0; t < encoding.size(); ++t) {
            stream.begin.push_back(from + encoding.begin[t]);
            stream.end.push_back(from + encoding.end[t]);
        }
        special(behind, static_cast<std::uint32_t>(stream.text.size()));
    };
    const auto sink = [&](const data::Document& document) -> Status {
        if (stream.text.size() + document.text.size() > longestText)
            return fail(Error::Kind::Invalid, "E-RUN-009",
                        fmt::format("document {} makes {} bytes of one text, and one text may "
                                    "have {}. Cut it into documents (lm.documents).",
                                    document.id, stream.text.size() + document.text.size(),
                                    longestText));
        if (m_windows.size() < most)
            append(document.text);
        if (isJoined)
            return {};
        const std::size_t windows = m_windows.size();
        if (const Status cut = addWindows(std::string(document.id), document.hash, stream, most);
            !cut)
            return cut;
        std::uint64_t scored = 0;
        for (std::size_t w = windows; w < m_windows.size(); ++w)
            scored += m_windows[w].scored();
        if (scored == 0 && windows < most) {
            ++unscored;
            if (firstUnscored.size() < 20)
                firstUnscored.push_back(document.index);
        }
        stream = {};
        return {};
    };
    auto summary = data::readDocuments(m_config.data.files, options, sink);
    if (!summary)
        return fail(summary.error());
    if (isJoined) {
        const Hash128 hash = data::documentHash("joined", stream.text);
        if (const Status cut = addWindows("joined", hash, stream, most); !cut)
            return cut;
    }
    if (!m_hasTexts)
        for (DocumentInfo& document : m_documents) {
            document.text = {};
            document.tokenBegin = {};
            document.tokenEnd = {};
        }
    UnorderedDigest digest;
    for (std::size_t d = 0; d < m_documents.size(); ++d)
        digest.add(d, m_documents[d].hash);
    m_digests.data = digest.result();
    m_warnings = std::move(summary->warnings);
    if (unscored > 0)
        m_warnings.push_back(
            {"W-RUN-003",
             fmt::format("{} document{} too short to score a token and count{} nothing", unscored,
                         unscored == 1 ? " is" : "s are", unscored == 1 ? "s" : ""),
             unscored, firstUnscored});
    m_times.tokenizeMs = tokenizeMs;
    m_times.readMs = millisecondsSince(start) - tokenizeMs;
    std::uint64_t scored = 0;
    for (const Window& window : m_windows)
        scored += window.scored();
    if (scored == 0)
        return fail(Error::Kind::Invalid, "E-RUN-005",
                    fmt::format("the data have {} token{} in {} document{} and none of them is "
                                "scored by this protocol ({}). Nothing was started.",
                                m_totalTokens, m_totalTokens == 1 ? "" : "s", m_documents.size(),
                                m_documents.size() == 1 ? "" : "s",
                                task::lmProtocolName(m_rules.protocol)));
    return {};
}

Status LmJob::addWindows(std::string name, const Hash128& hash, Stream& stream, std::uint64_t most)
{
    DocumentInfo info;
    info.name = std::move(name);
    info.hash = hash;
    info.tokens = stream.ids.size();
    m_totalTokens += stream.ids.size();
    m_documentBytes += stream.text.size();
    const auto number = static_cast<std::uint32_t>(m_documents.size());
    auto windows = task::planLmWindows(stream.ids.size(), m_rules);
    if (!windows)
        return fail(windows.error().during(fmt::format("document {}", info.name)));
    // Bytes before token t; rises, and covers the whole text from 0 to its end.
    std::uint64_t furthest = 0;
    std::vector<std::uint64_t> bytesBefore(stream.ids.size() + 1, 0);
    for (std::size_t t = 0; t < stream.ids.size(); ++t) {
        furthest = std::max<std::uint64_t>(furthest, stream.end[t]);
        bytesBefore[t + 1] = furthest;
    }
    bytesBefore.back() = stream.text.size();
    const bool keepsEmpty = m_rules.protocol == task::LmProtocol::HfDoc ||
                            m_rules.protocol == task::LmProtocol::HfExact;
    for (const task::LmWindow& window : *windows) {
        if (m_windows.size() >= most)
            break;
        if (window.scored() == 0 && !keepsEmpty)
            continue;
        const auto item = task::lmItemTokens(stream.ids, window);
        Window made;
        made.document = number;
        made.begin = window.begin;
        made.tokens = static_cast<std::uint32_t>(window.end - window.begin);
        made.scoredFrom = window.scoredFrom;
        made.itemTokens = static_cast<std::uint32_t>(item.size());
        made.weight = task::hfDocWeight(window, m_rules);
        made.beginByte = bytesBefore[static_cast<std::size_t>(window.begin + window.scoredFrom)];
        made.endByte = std::max(made.beginByte, bytesBefore[static_cast<std::size_t>(window.end)]);
        const TextCounts counts = countText(stream.text, made.beginByte, made.endByte);
        made.words = counts.words;
        made.characters = counts.characters;
        m_items->append(SampleIndex(m_windows.size()), item, {}, task::lmItemScoredFrom(window));
        m_windows.push_back(made);
    }
    m_hasTexts = m_hasTexts && m_documentBytes <= mostTextBytes;
    if (m_hasTexts) {
        info.text = std::move(stream.text);
        info.tokenBegin = std::move(stream.begin);
        info.tokenEnd = std::move(stream.end);
    }
    m_documents.push_back(std::move(info));
    return {};
}

Status LmJob::finishPreparation()
{
    finishPlan();
    m_longestItem = 0;
    for (const Window& window : m_windows)
        // The last target is never fed to the model.
        m_longestItem = std::max(m_longestItem, window.itemTokens - 1);
    indexItems(m_windows.size());
    return {};
}

std::string LmJob::windowId(const Window& window) const
{
    const std::string& name = m_documents[window.document].name;
    return fmt::format("{}:{}-{}", name.empty() ? std::to_string(window.document) : name,
                       window.begin, window.begin + window.tokens);
}

Hash128 LmJob::windowHash(const Window& window) const
{
    return Hasher()
        .add(m_documents[window.document].hash)
        .add(window.begin)
        .add(std::uint64_t{window.tokens})
        .add(std::uint64_t{window.scoredFrom})
        .add(std::uint64_t{window.itemTokens})
        .result();
}

Status LmJob::savePlan(store::PlanWriter& writer) const
{
    for (const DocumentInfo& document : m_documents) {
        store::ContextRecord record;
        record.id = document.name;
        record.text = document.text;
        record.tokenBegin.assign(document.tokenBegin.begin(), document.tokenBegin.end());
        record.tokenEnd.assign(document.tokenEnd.begin(), document.tokenEnd.end());
        if (const Status added = writer.addContext(record); !added)
            return added;
    }
    for (const Window& window : m_windows) {
        store::SampleRecord record;
        record.id = windowId(window);
        record.hash = windowHash(window);
        record.context = window.document;
        record.answersJson =
            fmt::format("[{},{},{},{},{},{},{}]", window.begin, window.scoredFrom, window.weight,
                        window.beginByte, window.endByte, window.words, window.characters);
        record.source = window.document;
        if (const Status added = writer.addSample(record); !added)
            return added;
    }
    for (std::size_t i = 0; i < m_windows.size(); ++i) {
        store::ItemRecord record;
        record.sample = SampleIndex(i);
        record.contextTokens = m_windows[i].tokens;
        record.tokens = m_windows[i].itemTokens;
        record.hash = m_itemHashes[i];
        if (const Status added = writer.addItem(record); !added)
            return added;
    }
    return {};
}

void LmJob::describePlan(nlohmann::ordered_json& detail) const
{
    detail["has_texts"] = m_hasTexts;
    detail["document_bytes"] = m_documentBytes;
    detail["document_tokens"] = m_totalTokens;
    detail["max_length"] = m_rules.maxLength;
    detail["stride"] = m_rules.stride;
    detail["prefix_token"] = m_rules.prefixToken ? nlohmann::ordered_json(*m_rules.prefixToken)
                                                 : nlohmann::ordered_json();
    detail["chunk_bos"] =
        m_rules.chunkBos ? nlohmann::ordered_json(*m_rules.chunkBos) : nlohmann::ordered_json();
    detail["documents"] = nlohmann::ordered_json::array();
    for (const DocumentInfo& document : m_documents)
        detail["documents"].push_back({document.hash.hex(), document.tokens});
}

Status LmJob::loadPlan(store::RunFile& file, const nlohmann::json& detail)
{
    m_rules.protocol = static_cast<task::LmProtocol>(m_config.lm.protocol);
    m_rules.scoredPart = m_config.lm.scoredPart == config::ScoredPart::SecondHalf
                             ? task::ScoredPart::SecondHalf
                             : task::ScoredPart::All;
    m_rules.longDocument = m_config.lm.longDocuments == config::LongDocuments::Truncate
                               ? task::LongDocument::Truncate
                               : task::LongDocument::Roll;
    m_rules.maxLength = detail.at("max_length").get<std::uint32_t>();
    m_rules.stride = detail.at("stride").get<std::uint32_t>();
    if (!detail.at("prefix_token").is_null())
        m_rules.prefixToken = detail.at("prefix_token").get<std::int32_t>();
    if (!detail.at("chunk_bos").is_null())
        m_rules.chunkBos = detail.at("chunk_bos").get<std::int32_t>();
    m_hasTexts = detail.at("has_texts").get<bool>();
    m_documentBytes = detail.at("document_bytes").get<std::uint64_t>();
    m_totalTokens = detail.at("document_tokens").get<std::uint64_t>();
    const auto& documents = detail.at("documents");

    std::optional<Error> failure;
    const auto giveUp = [&](Error error) {
        failure = std::move(error);
        return false;
    };
    UnorderedDigest digest;
    const auto visitDocument = [&](std::uint64_t number, store::ContextRecord&& record) {
        DocumentInfo info;
        if (number >= documents.size() || !documents[number].is_array() ||
            documents[number].size() != 2 || !documents[number][0].is_string() ||
            !documents[number][1].is_number_unsigned() ||
            !Hash128::parse(documents[number][0].get<std::string>(), info.hash))
            return giveUp(damage(file, "a document has no hash"));
        info.tokens = documents[number][1].get<std::uint64_t>();
        info.name = std::move(record.id);
        info.text = std::move(record.text);
        const bool wasTokenized = !record.tokenEnd.empty();
        if (m_hasTexts && wasTokenized && data::documentHash(info.name, info.text) != info.hash)
            return giveUp(damage(file, "a document does not have the hash it was stored with"));
        digest.add(number, info.hash);
        for (std::size_t t = 0; t < record.tokenEnd.size(); ++t) {
            if (record.tokenEnd[t] > info.text.size() || record.tokenBegin[t] > record.tokenEnd[t])
                return giveUp(damage(file, "a token lies outside its document"));
            info.tokenBegin.push_back(static_cast<std::uint32_t>(record.tokenBegin[t]));
            info.tokenEnd.push_back(static_cast<std::uint32_t>(record.tokenEnd[t]));
        }
        m_documents.push_back(std::move(info));
        return true;
    };
    auto visited = file.forEachContext(visitDocument);
    if (visited && !failure && !syntheticSamples(m_config.data) &&
        digest.result() != m_digests.data)
        return fail(damage(file, "the documents do not have the data digest of the plan"));
    std::vector<Hash128> hashes;
    if (visited && !failure)
        visited = file.forEachSample([&](SampleIndex, store::SampleRecord&& record) {
            const auto json = nlohmann::json::parse(record.answersJson, nullptr, false);
            if (!json.is_array() || json.size() != 7 || record.context >= m_documents.size() ||
                !std::all_of(json.begin(), json.end(),
                             [](const auto& one) { return one.is_number_unsigned(); }))
                return giveUp(damage(file, "a window cannot be read"));
            Window window;
            window.document = static_cast<std::uint32_t>(record.context);
            window.begin = json[0].template get<std::uint64_t>();
            window.scoredFrom = json[1].template get<std::uint32_t>();
            window.weight = json[2].template get<std::uint64_t>();
            window.beginByte = json[3].template get<std::uint64_t>();
            window.endByte = json[4].template get<std::uint64_t>();
            window.words = json[5].template get<std::uint32_t>();
            window.characters = json[6].template get<std::uint32_t>();
            const DocumentInfo& document = m_documents[window.document];
            if (window.beginByte > window.endByte ||
                (!document.text.empty() && window.endByte > document.text.size()))
                return giveUp(damage(file, "a window lies outside its document"));
            m_windows.push_back(window);
            hashes.push_back(record.hash);
            return true;
        });
    if (visited && !failure)
        visited = file.forEachItem([&](ItemIndex index, const store::ItemRecord& record) {
            const std::uint64_t i = index.value;
            if (i >= m_windows.size() || record.sample.value != i)
                return giveUp(damage(file, "an item is not that of its window"));
            Window& window = m_windows[static_cast<std::size_t>(i)];
            window.tokens = record.contextTokens;
            window.itemTokens = record.tokens;
            const DocumentInfo& document = m_documents[window.document];
            if (window.scoredFrom > window.tokens || window.itemTokens < window.tokens ||
                window.begin > document.tokens || window.tokens > document.tokens - window.begin)
                return giveUp(damage(file, "a window lies outside its document"));
            if (windowHash(window) != hashes[static_cast<std::size_t>(i)])
                return giveUp(damage(file, "a window does not have the hash it was stored with"));
            m_itemSamples.push_back(i);
            m_itemHashes.push_back(record.hash);
            m_longestItem = std::max(m_longestItem, window.itemTokens - 1);
            return true;
        });
    if (!visited)
        return fail(visited.error());
    if (failure)
        return fail(*failure);
    if (m_itemSamples.size() != m_windows.size())
        return fail(damage(file, "there are not as many items as windows"));
    indexItems(m_windows.size());
    return {};
}

LmJob::Scored LmJob::decode(SampleIndex sample) const
{
    Scored scored;
    if (const std::string* error = itemError(sample.value)) {
        scored.error = *error;
        return scored;
    }
    const ItemIndex item(sample.value);
    if (!has(item))
        return scored;
    auto output =
        wire::decodeLm(payload(item), m_windows[static_cast<std::size_t>(sample.value)].scored());
    if (!output) {
        scored.error = output.error().text();
        return scored;
    }
    scored.output = std::move(*output);
    scored.isComplete = true;
    return scored;
}

void LmJob::sampleCompleted(SampleIndex sample)
{
    const Scored scored = decode(sample);
    if (!scored.isComplete)
        return;
    m_lossSoFar += scored.output.lossSum;
    m_tokensSoFar += scored.output.scored;
}

Status LmJob::forEachSample(const std::function<void(const report::SampleRow&)>& visit) const
{
    for (std::size_t i = 0; i < m_windows.size(); ++i) {
        const Window& window = m_windows[i];
        const DocumentInfo& document = m_documents[window.document];
        Scored scored = decode(SampleIndex(i));
        report::SampleRow row;
        const std::string id = windowId(window);
        row.index = SampleIndex(i);
        row.original = SampleIndex(i);
        row.id = id;
        row.title = document.name;
        if (!document.text.empty())
            row.context = std::string_view(document.text)
                              .substr(static_cast<std::size_t>(window.beginByte),
                                      static_cast<std::size_t>(window.endByte - window.beginByte));
        row.hash = windowHash(window);
        row.isComplete = scored.isComplete;
        row.error = scored.error;
        report::LmFields fields;
        fields.document = window.document;
        fields.beginToken = window.begin;
        fields.endToken = window.begin + window.tokens;
        fields.scoredFrom = window.scoredFrom;
        fields.beginByte = window.beginByte;
        fields.endByte = window.endByte;
        fields.words = window.words;
        fields.characters = window.characters;
        fields.scored = window.scored();
        if (scored.isComplete) {
            fields.lossSum = scored.output.lossSum;
            fields.greedyHits = scored.output.greedyHits;
            fields.losses = std::move(scored.output.losses);
        }
        row.lm = std::move(fields);
        visit(row);
    }
    return {};
}

Status LmJob::forEachPrediction(
    const std::function<void(SampleIndex, store::PredictionRecord&&)>& visit) const
{
    for (std::size_t i = 0; i < m_windows.size(); ++i) {
        const Scored scored = decode(SampleIndex(i));
        store::PredictionRecord record;
        if (scored.isComplete) {
            record.score = scored.output.lossSum;
            record.second = static_cast<double>(scored.output.scored);
        }
        visit(SampleIndex(i), std::move(record));
    }
    return {};
}

} // namespace muster::run
