// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/word_model_p.h"

#include "base/utf8.h"

#include <algorithm>

namespace muster::tokenizer {

namespace {

constexpr double unkPenalty = 10.0; // of models/unigram/model.rs

} // namespace

Unigram::Unigram(const UnigramParts& parts) : m_unk(parts.unk), m_fallsBack(parts.fallsBackToBytes)
{
    std::size_t bytes = 0;
    double least = std::numeric_limits<double>::infinity();
    Hasher hasher;
    hasher.add("unigram 1").add(std::int64_t{parts.unk}).add(std::uint64_t{m_fallsBack});
    for (const UnigramParts::Piece& piece : parts.pieces) {
        bytes += piece.text.size();
        least = std::min(least, piece.score);
        m_scores.push_back(piece.score);
        hasher.add(piece.text).add(piece.score).add(std::uint64_t{piece.isMatched});
    }
    m_hash = hasher.result();
    m_unkScore = parts.leastScore.value_or(least) - unkPenalty;
    const std::size_t slots = std::bit_ceil(2 * bytes + 16);
    m_edges.resize(slots);
    m_mask = slots - 1;
    m_shift = 64U - static_cast<unsigned>(std::countr_zero(slots));
    std::uint32_t nodes = 1;
    m_splitsAtBlanks = parts.looksAtWords;
    bool hasBlank = false;
    for (std::size_t id = 0; id < parts.pieces.size(); ++id) {
        const std::string_view text = parts.pieces[id].text;
        m_ids.insert_or_assign(std::string(text), static_cast<std::int32_t>(id));
        if (text.empty() || !parts.pieces[id].isMatched)
            continue;
        m_splitsAtBlanks = m_splitsAtBlanks && !hasInnerBlank(text);
        hasBlank = hasBlank || text == blankMark;
        std::uint32_t node = 0;
        Edge* last = nullptr;
        for (const char c : text) {
            const std::uint64_t key = std::uint64_t{node} << 8U | static_cast<unsigned char>(c);
            std::size_t at = slotOf(key);
            while (m_edges[at].node != noNode && m_edges[at].key != key)
                at = (at + 1) & m_mask;
            last = &m_edges[at];
            if (last->node == noNode)
                *last = {key, nodes++, -1};
            node = last->node;
        }
        last->id = static_cast<std::int32_t>(id);
    }
    m_splitsAtBlanks = m_splitsAtBlanks && hasBlank;
    for (unsigned b = 0; b < 256; ++b) {
        const auto hit = m_ids.find(byteToken(b));
        m_byteId[b] = hit == m_ids.end() ? -1 : hit->second;
    }
}

std::optional<std::int32_t> Unigram::idOf(std::string_view token) const
{
    const auto hit = m_ids.find(std::string(token));
    return hit == m_ids.end() ? std::nullopt : std::optional(hit->second);
}

void Unigram::putUnknown(std::string_view bytes, std::uint32_t at, TokenSink& sink) const
{
    const std::uint32_t end = at + static_cast<std::uint32_t>(bytes.size());
    // Unknown characters side by side may spell a token together.
    if (bytes.size() > 1) {
        if (const auto hit = m_ids.find(std::string(bytes)); hit != m_ids.end()) {
            sink.put(hit->second, at, end);
            return;
        }
    }
    const auto byteId = [&](char c) { return m_byteId[static_cast<unsigned char>(c)]; };
    if (m_fallsBack && std::ranges::all_of(bytes, [&](char c) { return byteId(c) >= 0; })) {
        for (const char c : bytes)
            sink.put(byteId(c), at, end);
        return;
    }
    sink.put(m_unk, at, end);
}

void Unigram::put(std::string_view word, std::uint32_t at, EncodeSpace& space,
                  TokenSink& sink) const
{
    if (!m_splitsAtBlanks) {
        putBetweenBlanks(word, at, space, sink);
        return;
    }
    splitAtBlanks(word, [&](std::size_t begin, std::size_t end) {
        putBetweenBlanks(word.substr(begin, end - begin), at + static_cast<std::uint32_t>(begin),
                         space, sink);
    });
}

void Unigram::putBetweenBlanks(std::string_view word, std::uint32_t at, EncodeSpace& space,
                               TokenSink& sink) const
{
    WordCache::Entry* entry = nullptr;
    Packed packed;
    if (word.size() <= PieceTable::shortSize) {
        packed = packExact(word.data(), word.size());
        entry = &space.cache.place(packed, word.size());
        if (entry->holds(packed, word.size())) {
            for (std::size_t i = 0; i < entry->count; ++i) {
                sink.put(entry->ids[i], at, at + entry->sizes[i]);
                at += entry->sizes[i];
            }
            return;
        }
    }
    constexpr std::int32_t unreached = -1;
    std::vector<EncodeSpace::PathNode>& path = space.path;
    path.assign(word.size() + 1, EncodeSpace::PathNode{});
    for (std::size_t begin = 0; begin < word.size();) {
        const double soFar = path[begin].score;
        const std::size_t size = utf8::decode(word, begin).size;
        bool hasSingle = false;
        const auto reach = [&](std::size_t end, double score, std::int32_t id) {
            EncodeSpace::PathNode& target = path[end];
            if (target.id == unreached || soFar + score > target.score)
                target = {soFar + score, static_cast<std::uint32_t>(begin), id};
        };
        std::uint32_t node = 0;
        for (std::size_t i = begin; i < word.size(); ++i) {
            const Edge& next = edge(node, static_cast<unsigned char>(word[i]));
            if (next.node == noNode)
                break;
            node = next.node;
            if (next.id < 0)
                continue;
            reach(i + 1, m_scores[static_cast<std::size_t>(next.id)], next.id);
            hasSingle = hasSingle || i + 1 - begin == size;
        }
        if (!hasSingle)
            reach(begin + size, m_unkScore, m_unk);
        begin += size;
    }
    // Backwards; neighbouring unknown ones are one.
    std::vector<MergeSymbol>& tokens = space.symbols;
    tokens.clear();
    for (std::size_t end = word.size(); end > 0;) {
        const EncodeSpace::PathNode& last = path[end];
        const auto size = static_cast<std::uint32_t>(end - last.from);
        if (last.id == m_unk && !tokens.empty() && tokens.back().id == m_unk)
            tokens.back().size += size;
        else
            tokens.push_back({last.id, size});
        end = last.from;
    }
    const std::size_t before = sink.count();
    bool hasUnknown = false;
    std::uint32_t place = at;
    for (auto token = tokens.rbegin(); token != tokens.rend(); ++token) {
        if (token->id == m_unk) {
            hasUnknown = true;
            putUnknown(word.substr(place - at, token->size), place, sink);
        } else {
            sink.put(token->id, place, place + token->size);
        }
        place += token->size;
    }
    const std::size_t count = sink.count() - before;
    if (entry == nullptr || count > WordCache::maxTokens || hasUnknown)
        return;
    entry->low = packed.low;
    entry->high = packed.high;
    entry->size = static_cast<std::uint8_t>(word.size());
    entry->count = static_cast<std::uint8_t>(count);
    for (std::size_t i = 0; i < count; ++i) {
        const MergeSymbol& token = tokens[count - 1 - i];
        entry->sizes[i] = static_cast<std::uint8_t>(token.size);
        entry->ids[i] = token.id;
    }
}

} // namespace muster::tokenizer
