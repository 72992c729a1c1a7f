// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/byte_level_bpe_p.h"

#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::tokenizer {

namespace {

/// The printable stand-in of each byte (GPT-2, encoder.py, bytes_to_unicode).
constexpr std::array<char32_t, 256> byteAlphabet()
{
    std::array<char32_t, 256> table{};
    char32_t next = 0x100;
    for (std::size_t b = 0; b < 256; ++b) {
        const bool isPrintable =
            (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || (b >= 0xAE && b <= 0xFF);
        table[b] = isPrintable ? static_cast<char32_t>(b) : next++;
    }
    return table;
}

constexpr std::array<char32_t, 256> alphabet = byteAlphabet();

/// Bytes of the stand-in of a byte in UTF-8.
constexpr std::uint32_t standInSize(unsigned char byte)
{
    return alphabet[byte] < 0x80 ? 1 : 2;
}

/// Byte of a stand-in; −1 for another code point.
int byteOf(char32_t codePoint)
{
    static constexpr auto inverse = [] {
        std::array<std::int16_t, 0x144> table{};
        table.fill(-1);
        for (std::size_t b = 0; b < 256; ++b)
            table[alphabet[b]] = static_cast<std::int16_t>(b);
        return table;
    }();
    return codePoint < inverse.size() ? inverse[codePoint] : -1;
}

/// The raw bytes of a token of the vocabulary file; nothing when it has a foreign character.
bool toRawBytes(std::string_view token, std::string& raw)
{
    raw.clear();
    for (std::size_t at = 0; at < token.size();) {
        const utf8::Decoded d = utf8::decode(token, at);
        const int byte = d.valid ? byteOf(d.codePoint) : -1;
        if (byte < 0)
            return false;
        raw.push_back(static_cast<char>(byte));
        at += d.size;
    }
    return true;
}

bool isContinuation(char byte)
{
    return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

} // namespace

ByteLevelBpeTokenizer::Edges ByteLevelBpeTokenizer::edgesOf(std::string_view token)
{
    std::vector<bool> isBlank;
    for (std::size_t at = 0; at < token.size();) {
        const utf8::Decoded d = utf8::decode(token, at);
        isBlank.push_back(d.codePoint == alphabet[' '] ||
                          contains(unicode::separator, d.codePoint));
        at += d.size;
    }
    Edges edges;
    while (edges.leading < isBlank.size() && isBlank[edges.leading])
        ++edges.leading;
    while (edges.trailing < isBlank.size() && isBlank[isBlank.size() - 1 - edges.trailing])
        ++edges.trailing;
    return edges;
}

ByteLevelBpeTokenizer::ByteLevelBpeTokenizer(ByteLevelBpeParts& parts)
    : StagedTokenizer(parts.description, std::move(parts.normalizer)),
      m_pieces(parts.vocabulary.size()), m_merges(parts.merges.size()),
      m_steps(std::move(parts.steps)), m_fusesUnk(parts.fusesUnk),
      m_ignoresMerges(parts.ignoresMerges), m_addsPrefixSpace(parts.addsPrefixSpace),
      m_usesRegex(parts.usesRegex), m_trims(parts.trims)
{
    std::string raw;
    for (const auto& [id, token] : parts.vocabulary) {
        if (toRawBytes(token, raw))
            m_pieces.add(PieceTable::Kind::opening, raw, id);
        else
            m_foreign.insert_or_assign(std::string(token), id);
        if (!m_trims.empty()) {
            const Edges edges = edgesOf(token);
            if (edges.leading + edges.trailing > 0)
                m_edges.insert_or_assign(id, edges);
        }
        m_isWholeSize = std::max(m_isWholeSize, static_cast<std::size_t>(id) + 1);
    }
    for (const AddedToken& token : description().addedTokens)
        m_edges.insert_or_assign(token.id, Edges{.isOfText = true});
    // Ids far above the number of tokens get no place to remember the answer.
    m_isWholeSize = std::min(m_isWholeSize, 2 * parts.vocabulary.size() + 1024);
    m_isWhole = std::make_unique<std::atomic<std::uint8_t>[]>(m_isWholeSize);
    for (std::size_t b = 0; b < 256; ++b) {
        const char byte = static_cast<char>(b);
        m_byteId[b] = m_pieces.find(PieceTable::Kind::opening, std::string_view(&byte, 1));
        // Bytes that no valid UTF-8 has never ask for their token.
        const bool occurs = b < 0xC0 || (b >= 0xC2 && b <= 0xF4);
        if (m_byteId[b] == PieceTable::none && occurs)
            m_hasAllBytes = false;
    }
    chooseCuts();
}

void ByteLevelBpeTokenizer::chooseCuts()
{
    // No word of these patterns has a space behind a letter or digit, a look ahead sees at most
    // the end of a run of white space, and none looks back.
    bool isProved = m_usesRegex;
    for (const SplitStep& step : m_steps) {
        const bool isWholeMatch = step.behavior == SplitBehavior::isolated ||
                                  (step.behavior == SplitBehavior::removed && step.isInverted);
        if (step.kind == SplitStep::Kind::known && isWholeMatch)
            isProved = true;
        else if (step.kind != SplitStep::Kind::digits)
            return;
    }
    // With an added space a word behind a new line looks different at the start of a text.
    if (isProved)
        setCuts(m_addsPrefixSpace ? Cuts::beforeSpace : Cuts::beforeSpaceOrNewWords);
}

Result<std::unique_ptr<Tokenizer>> ByteLevelBpeTokenizer::make(ByteLevelBpeParts parts)
{
    std::unique_ptr<ByteLevelBpeTokenizer> made(new ByteLevelBpeTokenizer(parts));
    if (parts.unkToken) {
        made->m_unk = made->idOf(*parts.unkToken);
        if (!made->m_unk)
            return fail(Error::Kind::Invalid, "E-TOK-005",
                        fmt::format("the unknown token {} does not stand in the vocabulary",
                                    *parts.unkToken));
    }
    const Status merges = made->setMerges(parts);
    if (!merges)
        return fail(merges.error());
    made->setDigestOf(parts);
    return made;
}

Status ByteLevelBpeTokenizer::setMerges(const ByteLevelBpeParts& parts)
{
    std::string raw;
    const auto lookUp = [&](std::string_view token) {
        if (toRawBytes(token, raw))
            return m_pieces.find(PieceTable::Kind::opening, raw);
        const auto hit = m_foreign.find(std::string(token));
        return hit == m_foreign.end() ? PieceTable::none : hit->second;
    };
    std::uint32_t rank = 0;
    std::string joined;
    for (const auto& [left, right] : parts.merges) {
        joined.assign(left).append(right);
        const std::int32_t leftId = lookUp(left);
        const std::int32_t rightId = lookUp(right);
        const std::int32_t joinedId = lookUp(joined);
        if (leftId < 0 || rightId < 0 || joinedId < 0)
            return fail(Error::Kind::Invalid, "E-TOK-006",
                        fmt::format("merge {} joins \"{}\" and \"{}\", and one of them or the "
                                    "result does not stand in the vocabulary",
                                    rank + 1, left, right));
        m_merges.set(leftId, rightId, rank++, joinedId);
    }
    return {};
}

void ByteLevelBpeTokenizer::setDigestOf(ByteLevelBpeParts& parts)
{
    Hasher hasher;
    hasher.add("byte-level bpe 2").add(parts.unkToken.value_or("")).add(std::uint64_t{m_fusesUnk});
    hasher.add(std::uint64_t{m_ignoresMerges}).add(std::uint64_t{m_addsPrefixSpace});
    hasher.add(std::uint64_t{m_usesRegex}).add(std::uint64_t{m_steps.size()});
    for (const SplitStep& step : m_steps)
        step.addToDigest(hasher);
    normalizer().addToDigest(hasher);
    hasher.add(std::uint64_t{m_trims.size()});
    for (const bool keepsOne : m_trims)
        hasher.add(std::uint64_t{keepsOne});
    addToDigest(hasher, description());
    std::string block;
    for (const auto& [left, right] : parts.merges)
        block.append(left).append(" ").append(right).append("\n");
    hasher.add(block);
    addToDigest(hasher, std::move(parts.vocabulary));
    setDigest(hasher.result());
}

std::optional<std::int32_t> ByteLevelBpeTokenizer::idOf(std::string_view token) const
{
    for (const AddedToken& added : description().addedTokens) {
        if (added.content == token)
            return added.id;
    }
    std::string raw;
    if (toRawBytes(token, raw)) {
        const std::int32_t id = m_pieces.find(PieceTable::Kind::opening, raw);
        return id == PieceTable::none ? std::nullopt : std::optional(id);
    }
    const auto hit = m_foreign.find(std::string(token));
    return hit == m_foreign.end() ? std::nullopt : std::optional(hit->second);
}

void ByteLevelBpeTokenizer::encodePart(const Part& part, EncodeSpace& space, TokenSink& sink) const
{
    if (m_steps.empty()) {
        encodePiece(part.text, part.begin, part.end, part.continues, space, sink);
        return;
    }
    const SplitStep& first = m_steps.front();
    const auto put = [&](std::size_t begin, std::size_t end) {
        encodePiece(part.text, begin, end, false, space, sink);
    };
    if (m_steps.size() == 1 && first.kind == SplitStep::Kind::known) {
        readKnown(first.known, part.text, part.begin, part.end, m_classes, put);
        return;
    }
    std::vector<SplitStep::Range> pieces{{part.begin, part.end}};
    std::vector<SplitStep::Range> next;
    for (const SplitStep& step : m_steps) {
        next.clear();
        for (const SplitStep::Range& piece : pieces)
            step.split(part.text, piece, m_classes, next);
        pieces.swap(next);
    }
    for (const SplitStep::Range& piece : pieces)
        put(piece.begin, piece.end);
}

void ByteLevelBpeTokenizer::encodePiece(std::string_view text, std::size_t begin, std::size_t end,
                                        bool continues, EncodeSpace& space, TokenSink& sink) const
{
    const bool hasPrefixSpace = m_addsPrefixSpace && !continues && text[begin] != ' ';
    if (!m_usesRegex) {
        putWord(text, begin, end, hasPrefixSpace, space, sink);
        return;
    }
    readGpt2(ClassReader(text, end, m_classes), begin, hasPrefixSpace,
             [&](std::size_t from, std::size_t to, bool isPrefixed) {
                 putWord(text, from, to, isPrefixed, space, sink);
             });
}

// The place of a byte of a word is the code point that it belongs to; an added space belongs to the
// code point behind it.
std::uint32_t ByteLevelBpeTokenizer::beginOf(const Word& word, std::size_t byte)
{
    std::size_t at = word.begin + (byte < word.shift ? 0 : byte - word.shift);
    while (at > word.begin && at < word.text.size() && isContinuation(word.text[at]))
        --at;
    return static_cast<std::uint32_t>(at);
}

std::uint32_t ByteLevelBpeTokenizer::endOf(const Word& word, std::size_t byte)
{
    std::size_t at = word.begin + (byte < word.shift ? 0 : byte - word.shift) + 1;
    while (at < word.text.size() && isContinuation(word.text[at]))
        ++at;
    return static_cast<std::uint32_t>(std::min(at, word.text.size()));
}

std::int32_t ByteLevelBpeTokenizer::wholeToken(std::int32_t inVocabulary) const
{
    if (inVocabulary == PieceTable::none || m_ignoresMerges)
        return inVocabulary;
    const auto at = static_cast<std::size_t>(inVocabulary);
    const bool isKnown = at < m_isWholeSize && m_isWhole[at].load(std::memory_order_relaxed) == 1;
    return isKnown ? inVocabulary : PieceTable::none;
}

void ByteLevelBpeTokenizer::rememberWhole(std::int32_t inVocabulary, bool isWhole) const
{
    const auto at = static_cast<std::size_t>(inVocabulary);
    if (inVocabulary != PieceTable::none && at < m_isWholeSize)
        m_isWhole[at].store(isWhole ? 1 : 2, std::memory_order_relaxed);
}

void ByteLevelBpeTokenizer::startSymbols(std::string_view bytes, EncodeSpace& space) const
{
    space.symbols.resize(bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i)
        space.symbols[i] = {m_byteId[static_cast<unsigned char>(bytes[i])], 1};
}

void ByteLevelBpeTokenizer::putWord(std::string_view text, std::size_t begin, std::size_t end,
                                    bool hasPrefixSpace, EncodeSpace& space, TokenSink& sink) const
{
    Word word{text.substr(begin, end - begin), text, begin, 0};
    std::string withSpace;
    if (hasPrefixSpace) {
        withSpace.reserve(word.bytes.size() + 1);
        withSpace.push_back(' ');
        withSpace.append(word.bytes);
        word.bytes = withSpace;
        word.shift = 1;
    }
    if (!m_hasAllBytes)
        putIncomplete(word, space, sink);
    else if (!word.bytes.empty())
        putBytes(word, space, sink);
}

void ByteLevelBpeTokenizer::putBytes(const Word& word, EncodeSpace& space, TokenSink& sink) const
{
    const std::size_t size = word.bytes.size();
    WordCache::Entry* entry = nullptr;
    std::int32_t whole = PieceTable::none;
    if (size <= PieceTable::shortSize) {
        const bool isRoomBehind =
            word.shift == 0 && word.begin + PieceTable::shortSize <= word.text.size();
        const Packed packed =
            isRoomBehind ? packWide(word.bytes.data(), size) : packExact(word.bytes.data(), size);
        entry = &space.cache.place(packed, size);
        if (entry->holds(packed, size)) {
            std::size_t byte = 0;
            for (std::size_t i = 0; i < entry->count; ++i) {
                const std::uint32_t from = beginOf(word, byte);
                byte += entry->sizes[i];
                sink.put(entry->ids[i], from, endOf(word, byte - 1));
            }
            return;
        }
        entry->low = packed.low;
        entry->high = packed.high;
        entry->size = 0; // until its tokens stand there
        whole = m_pieces.find(PieceTable::Kind::opening, packed, size);
    } else {
        whole = m_pieces.find(PieceTable::Kind::opening, word.bytes);
    }
    std::size_t count = 1;
    if (const std::int32_t id = wholeToken(whole); id != PieceTable::none) {
        space.symbols.assign(1, {id, static_cast<std::uint32_t>(size)});
    } else {
        startSymbols(word.bytes, space);
        count = m_merges.mergeAll(space.symbols, space.merging);
        rememberWhole(whole, count == 1 && space.symbols[0].id == whole);
    }
    std::size_t byte = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t from = beginOf(word, byte);
        byte += space.symbols[i].size;
        sink.put(space.symbols[i].id, from, endOf(word, byte - 1));
    }
    if (entry != nullptr && count <= WordCache::maxTokens) {
        entry->size = static_cast<std::uint8_t>(size);
        entry->count = static_cast<std::uint8_t>(count);
        for (std::size_t i = 0; i < count; ++i) {
            entry->sizes[i] = static_cast<std::uint8_t>(space.symbols[i].size);
            entry->ids[i] = space.symbols[i].id;
        }
    }
}

/// The way of a vocabulary without some of the 256 bytes. Sizes count bytes of stand-ins, as
/// Hugging Face counts: when bytes were dropped, the sums fall behind, as Hugging Face's do.
void ByteLevelBpeTokenizer::putIncomplete(const Word& word, EncodeSpace& space,
                                          TokenSink& sink) const
{
    const std::string_view bytes = word.bytes;
    if (bytes.empty())
        return;
    const std::int32_t whole = m_pieces.find(PieceTable::Kind::opening, bytes);
    if (const std::int32_t id = wholeToken(whole); id != PieceTable::none) {
        sink.put(id, beginOf(word, 0), endOf(word, bytes.size() - 1));
        return;
    }
    std::vector<MergeSymbol>& symbols = space.symbols;
    symbols.clear();
    std::uint32_t unknownSize = 0; // of the unknown token that is still open; 0: none
    const auto closeUnknown = [&] {
        if (unknownSize > 0)
            symbols.push_back({m_unk.value_or(0), unknownSize});
        unknownSize = 0;
    };
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        const std::uint32_t size = standInSize(byte);
        if (m_byteId[byte] != PieceTable::none) {
            closeUnknown();
            symbols.push_back({m_byteId[byte], size});
        } else if (m_unk) {
            if (!m_fusesUnk)
                closeUnknown();
            unknownSize += size;
        }
    }
    closeUnknown();
    if (symbols.empty())
        return;
    const std::size_t count = m_merges.mergeAll(symbols, space.merging);
    rememberWhole(whole, count == 1 && symbols[0].id == whole);
    std::size_t byte = 0;       // of the word
    std::uint32_t position = 0; // in stand-in bytes, where `byte` starts
    std::uint32_t sum = 0;
    const auto byteAt = [&](std::uint32_t standIn) {
        while (byte + 1 < bytes.size() &&
               position + standInSize(static_cast<unsigned char>(bytes[byte])) <= standIn) {
            position += standInSize(static_cast<unsigned char>(bytes[byte]));
            ++byte;
        }
        return byte;
    };
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t from = beginOf(word, byteAt(sum));
        sum += symbols[i].size;
        sink.put(symbols[i].id, from, endOf(word, byteAt(sum - 1)));
    }
}

void ByteLevelBpeTokenizer::finish(std::string_view text, bool continues, TokenSink& sink) const
{
    if (m_trims.empty())
        return;
    // Hugging Face counts the blanks of the token's own text and moves the offsets by as many code
    // points, whatever stands there.
    sink.review([&](std::size_t i, std::int32_t id, std::uint32_t& begin, std::uint32_t& end) {
        const auto hit = m_edges.find(id);
        if (hit == m_edges.end())
            return;
        const Edges edges =
            hit->second.isOfText ? edgesOf(text.substr(begin, end - begin)) : hit->second;
        for (const bool keepsOne : m_trims) {
            std::uint32_t leading = edges.leading;
            const bool isFirst = !continues && (i == 0 || begin == 0);
            if (keepsOne && leading == 1 && isFirst)
                leading = 0;
            for (; leading > 0 && begin < end; --leading)
                begin += static_cast<std::uint32_t>(utf8::decode(text, begin).size);
            std::size_t at = end;
            std::uint32_t trailing = edges.trailing;
            for (; trailing > 0 && at > 0; --trailing) {
                do
                    --at;
                while (at > 0 && isContinuation(text[at]));
            }
            if (trailing == 0)
                end = std::max(static_cast<std::uint32_t>(at), begin);
        }
    });
}

} // namespace muster::tokenizer
