// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/byte_level_bpe_p.h"

#include "base/utf8.h"

#include <fmt/format.h>

#include <cstring>
#include <queue>

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

constexpr std::uint64_t pairOf(std::int32_t left, std::int32_t right)
{
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32U |
           static_cast<std::uint32_t>(right);
}

std::size_t mix(std::uint64_t pair)
{
    pair *= 0x9E3779B97F4A7C15ULL;
    return static_cast<std::size_t>(pair >> 20U);
}

bool isContinuation(char byte)
{
    return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

constexpr std::uint32_t noRank = 0xFFFFFFFFU;

} // namespace

/// A piece of a word while it is merged. `size` counts bytes of stand-ins, as Hugging Face counts.
struct ByteLevelBpeTokenizer::Symbol {
    std::int32_t id = 0;
    std::uint32_t size = 0;
    std::int32_t previous = -1;
    std::int32_t next = -1;
    std::uint32_t rank = noRank; // of the merge with the next symbol
    std::int32_t merged = 0;     // the id that it would give
};

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
    : DescribedTokenizer(parts.description), m_pieces(parts.vocabulary.size()),
      m_fusesUnk(parts.fusesUnk), m_ignoresMerges(parts.ignoresMerges),
      m_addsPrefixSpace(parts.addsPrefixSpace), m_trims(parts.trims)
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
    m_classes.set(unicode::letter, BpeClass::letter);
    m_classes.set(unicode::number, BpeClass::number);
    m_classes.set(unicode::space, BpeClass::space);
    std::vector<AddedToken> byWay[2];
    std::vector<std::string> patterns[2];
    for (const AddedToken& token : description().addedTokens) {
        const std::size_t way = token.isNormalized ? 1 : 0;
        byWay[way].push_back(token);
        patterns[way].push_back(token.content);
    }
    m_rawTokens = AddedTokenMatcher(std::move(byWay[0]), patterns[0]);
    m_normalizedTokens = AddedTokenMatcher(std::move(byWay[1]), patterns[1]);
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
    const std::size_t slots = std::bit_ceil(2 * parts.merges.size() + 16);
    m_merges.resize(slots);
    m_mergeMask = slots - 1;
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
        Merge merge;
        const std::int32_t leftId = lookUp(left);
        const std::int32_t rightId = lookUp(right);
        merge.id = lookUp(joined);
        if (leftId < 0 || rightId < 0 || merge.id < 0)
            return fail(Error::Kind::Invalid, "E-TOK-006",
                        fmt::format("merge {} joins \"{}\" and \"{}\", and one of them or the "
                                    "result does not stand in the vocabulary",
                                    rank + 1, left, right));
        merge.pair = pairOf(leftId, rightId);
        merge.rank = rank++;
        std::size_t at = mix(merge.pair) & m_mergeMask;
        while (m_merges[at].pair != ~std::uint64_t{0} && m_merges[at].pair != merge.pair)
            at = (at + 1) & m_mergeMask;
        m_merges[at] = merge;
    }
    return {};
}

void ByteLevelBpeTokenizer::setDigestOf(ByteLevelBpeParts& parts)
{
    Hasher hasher;
    hasher.add("byte-level bpe 1").add(parts.unkToken.value_or("")).add(std::uint64_t{m_fusesUnk});
    hasher.add(std::uint64_t{m_ignoresMerges}).add(std::uint64_t{m_addsPrefixSpace});
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

const ByteLevelBpeTokenizer::Merge* ByteLevelBpeTokenizer::findMerge(std::int32_t left,
                                                                     std::int32_t right) const
{
    const std::uint64_t pair = pairOf(left, right);
    for (std::size_t at = mix(pair) & m_mergeMask;; at = (at + 1) & m_mergeMask) {
        if (m_merges[at].pair == pair)
            return &m_merges[at];
        if (m_merges[at].pair == ~std::uint64_t{0})
            return nullptr;
    }
}

void ByteLevelBpeTokenizer::encode(std::string_view text, Encoding& into) const
{
    text = text.substr(0, maxTextBytes);
    if (!utf8::firstInvalid(text)) {
        TokenSink sink(into, text.size() / 3 + 16);
        encodeValid(text, sink);
        return;
    }
    // The repaired text is longer; its offsets are mapped back, so that a token covers the broken
    // byte that became its U+FFFD.
    std::string repaired;
    std::vector<std::uint32_t> begin;
    std::vector<std::uint32_t> end;
    for (std::size_t at = 0; at < text.size();) {
        const utf8::Decoded d = utf8::decode(text, at);
        char bytes[4];
        const std::size_t size = writeUtf8(d.codePoint, bytes);
        repaired.append(bytes, size);
        for (std::size_t i = 0; i < size; ++i) {
            begin.push_back(static_cast<std::uint32_t>(d.valid ? at + i : at));
            end.push_back(static_cast<std::uint32_t>(d.valid ? at + i + 1 : at + 1));
        }
        at += d.size;
    }
    begin.push_back(static_cast<std::uint32_t>(text.size()));
    {
        TokenSink sink(into, repaired.size() / 3 + 16);
        encodeValid(repaired, sink);
    }
    for (std::size_t i = 0; i < into.size(); ++i) {
        const std::uint32_t from = into.begin[i];
        const std::uint32_t to = into.end[i];
        into.begin[i] = begin[from];
        into.end[i] = to > from ? end[to - 1] : begin[from];
    }
}

void ByteLevelBpeTokenizer::encodeValid(std::string_view text, TokenSink& sink) const
{
    const auto put = [&](std::size_t shift, const AddedTokenMatcher::Part& part) {
        const std::size_t begin = shift + part.begin;
        const std::size_t end = shift + part.end;
        putTrimmed(text, *part.id, begin, end, edgesOf(text.substr(begin, end - begin)), sink);
    };
    m_rawTokens.split(text, [&](const AddedTokenMatcher::Part& outer) {
        if (outer.id) {
            put(0, outer);
            return;
        }
        const std::string_view between = text.substr(outer.begin, outer.end - outer.begin);
        m_normalizedTokens.split(between, [&](const AddedTokenMatcher::Part& inner) {
            if (inner.id)
                put(outer.begin, inner);
            else
                encodePart(text, outer.begin + inner.begin, outer.begin + inner.end, sink);
        });
    });
}

/// Cuts a part of the text as the regular expression of GPT-2 does:
/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
void ByteLevelBpeTokenizer::encodePart(std::string_view text, std::size_t begin, std::size_t end,
                                       TokenSink& sink) const
{
    struct Seen {
        BpeClass kind = BpeClass::other;
        std::size_t size = 0; // 0 at the end
    };
    const auto look = [&](std::size_t at) -> Seen {
        if (at >= end)
            return {};
        const auto byte = static_cast<unsigned char>(text[at]);
        if (byte < 0x80)
            return {m_classes[byte], 1};
        const utf8::Decoded d = utf8::decode(text, at);
        return {m_classes[d.codePoint], d.size};
    };
    bool hasPrefixSpace = m_addsPrefixSpace && begin < end && text[begin] != ' ';
    for (std::size_t at = begin; at < end;) {
        const std::size_t start = at;
        if (text[at] == '\'' && !hasPrefixSpace) {
            const std::string_view rest =
                text.substr(at + 1, std::min<std::size_t>(2, end - at - 1));
            std::size_t size = 0;
            if (rest.starts_with("re") || rest.starts_with("ve") || rest.starts_with("ll"))
                size = 3;
            else if (!rest.empty() && std::strchr("stmd", rest[0]) != nullptr && rest[0] != '\0')
                size = 2;
            if (size != 0) {
                putWord(text, at, at + size, false, sink);
                at += size;
                continue;
            }
        }
        Seen first = look(at);
        if (hasPrefixSpace && first.kind == BpeClass::space) {
            // The added space is the first of a run of white space; the last one of the run goes to
            // what follows, so with one more it stands alone.
            std::size_t stop = at;
            std::size_t last = at;
            for (Seen s = first; s.size != 0 && s.kind == BpeClass::space; s = look(stop)) {
                last = stop;
                stop += s.size;
            }
            const std::size_t cut = stop == end ? stop : last;
            putWord(text, at, cut, true, sink);
            hasPrefixSpace = false;
            at = cut;
            continue;
        }
        std::size_t from = at;
        if (text[at] == ' ') {
            const Seen second = look(at + 1);
            if (second.size != 0 && second.kind != BpeClass::space) {
                from = at + 1;
                first = second;
            }
        }
        if (first.kind != BpeClass::space) {
            std::size_t stop = from;
            Seen s = first;
            do {
                stop += s.size;
                s = look(stop);
            } while (s.size != 0 && s.kind == first.kind);
            putWord(text, start, stop, hasPrefixSpace, sink);
            hasPrefixSpace = false;
            at = stop;
            continue;
        }
        std::size_t stop = at;
        std::size_t last = at;
        for (Seen s = first; s.size != 0 && s.kind == BpeClass::space; s = look(stop)) {
            last = stop;
            stop += s.size;
        }
        // All white space but the last, unless the text ends or there is only one.
        const std::size_t cut = stop == end || last == at ? stop : last;
        putWord(text, at, cut, false, sink);
        at = cut;
    }
}

void ByteLevelBpeTokenizer::putWord(std::string_view text, std::size_t begin, std::size_t end,
                                    bool hasPrefixSpace, TokenSink& sink) const
{
    std::string withSpace;
    std::string_view word = text.substr(begin, end - begin);
    if (hasPrefixSpace) {
        withSpace.reserve(word.size() + 1);
        withSpace.push_back(' ');
        withSpace.append(word);
        word = withSpace;
    }
    // The place of byte i of the word in the text, as the code point that it belongs to; an added
    // space belongs to the code point behind it.
    const std::size_t shift = hasPrefixSpace ? 1 : 0;
    const auto isInner = [&](std::size_t at) {
        return at < text.size() && isContinuation(text[at]);
    };
    const auto put = [&](std::int32_t id, std::uint32_t from, std::uint32_t to) {
        if (m_trims.empty()) {
            sink.put(id, from, to);
            return;
        }
        const auto edges = m_edges.find(id);
        if (edges == m_edges.end())
            sink.put(id, from, to);
        else
            putTrimmed(text, id, from, to, edges->second, sink);
    };
    const auto beginOf = [&](std::size_t i) {
        std::size_t at = begin + (i < shift ? 0 : i - shift);
        while (at > begin && isInner(at))
            --at;
        return static_cast<std::uint32_t>(at);
    };
    const auto endOf = [&](std::size_t i) { // of the byte i
        std::size_t at = begin + (i < shift ? 0 : i - shift) + 1;
        while (isInner(at))
            ++at;
        return static_cast<std::uint32_t>(at);
    };
    if (word.empty())
        return;

    const std::int32_t whole = m_pieces.find(PieceTable::Kind::opening, word);
    const bool remembers =
        whole != PieceTable::none && static_cast<std::size_t>(whole) < m_isWholeSize;
    if (whole != PieceTable::none) {
        const bool isWhole =
            m_ignoresMerges || (remembers && m_isWhole[static_cast<std::size_t>(whole)].load(
                                                 std::memory_order_relaxed) == 1);
        if (isWhole) {
            put(whole, beginOf(0), endOf(word.size() - 1));
            return;
        }
    }

    constexpr std::size_t smallWord = 64;
    Symbol small[smallWord];
    std::vector<Symbol> large;
    Symbol* symbols = small;
    if (word.size() > smallWord) {
        large.resize(word.size());
        symbols = large.data();
    }
    std::size_t count = 0;
    std::uint32_t unknownSize = 0; // of the unknown token that is still open; 0: none
    const auto push = [&](Symbol symbol) {
        symbol.previous = static_cast<std::int32_t>(count) - 1;
        symbol.next = static_cast<std::int32_t>(count) + 1;
        symbols[count++] = symbol;
    };
    const auto closeUnknown = [&] {
        if (unknownSize > 0)
            push(Symbol{.id = m_unk.value_or(0), .size = unknownSize});
        unknownSize = 0;
    };
    for (const char c : word) {
        const auto byte = static_cast<unsigned char>(c);
        const std::int32_t id = m_byteId[byte];
        const std::uint32_t size = standInSize(byte);
        if (id != PieceTable::none) {
            closeUnknown();
            push(Symbol{.id = id, .size = size});
        } else if (m_unk) {
            if (!m_fusesUnk)
                closeUnknown();
            unknownSize += size;
        }
    }
    closeUnknown();
    if (count == 0)
        return;
    symbols[count - 1].next = -1;

    const auto rate = [&](std::size_t i) {
        Symbol& s = symbols[i];
        const Merge* merge =
            s.next < 0 ? nullptr : findMerge(s.id, symbols[static_cast<std::size_t>(s.next)].id);
        s.rank = merge == nullptr ? noRank : merge->rank;
        s.merged = merge == nullptr ? 0 : merge->id;
    };
    const auto mergeAt = [&](std::size_t i) {
        Symbol& s = symbols[i];
        Symbol& gone = symbols[static_cast<std::size_t>(s.next)];
        s.id = s.merged;
        s.size += gone.size;
        s.next = gone.next;
        gone.size = 0;
        gone.rank = noRank;
        if (s.next >= 0)
            symbols[static_cast<std::size_t>(s.next)].previous = static_cast<std::int32_t>(i);
        rate(i);
        if (s.previous >= 0)
            rate(static_cast<std::size_t>(s.previous));
    };
    for (std::size_t i = 0; i < count; ++i)
        rate(i);
    if (count <= smallWord) {
        for (;;) {
            std::uint32_t best = noRank;
            std::size_t place = 0;
            for (std::int32_t i = 0; i >= 0; i = symbols[i].next) {
                if (symbols[i].rank < best) {
                    best = symbols[i].rank;
                    place = static_cast<std::size_t>(i);
                }
            }
            if (best == noRank)
                break;
            mergeAt(place);
        }
    } else {
        struct Waiting {
            std::uint32_t rank;
            std::uint32_t place;
            bool operator>(const Waiting& other) const
            {
                return rank != other.rank ? rank > other.rank : place > other.place;
            }
        };
        std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> queue;
        const auto enqueue = [&](std::size_t i) {
            if (symbols[i].rank != noRank)
                queue.push({symbols[i].rank, static_cast<std::uint32_t>(i)});
        };
        for (std::size_t i = 0; i < count; ++i)
            enqueue(i);
        while (!queue.empty()) {
            const Waiting top = queue.top();
            queue.pop();
            if (symbols[top.place].size == 0 || symbols[top.place].rank != top.rank)
                continue;
            mergeAt(top.place);
            enqueue(top.place);
            if (symbols[top.place].previous >= 0)
                enqueue(static_cast<std::size_t>(symbols[top.place].previous));
        }
    }

    if (remembers)
        m_isWhole[static_cast<std::size_t>(whole)].store(
            symbols[0].next < 0 && symbols[0].id == whole ? 1 : 2, std::memory_order_relaxed);

    // Sizes count stand-in bytes. When bytes were dropped, the sums fall behind, as Hugging Face's
    // do.
    std::size_t byte = 0;       // of the word
    std::uint32_t position = 0; // in stand-in bytes, where `byte` starts
    std::uint32_t sum = 0;
    const auto byteAt = [&](std::uint32_t standIn) {
        while (byte + 1 < word.size() &&
               position + standInSize(static_cast<unsigned char>(word[byte])) <= standIn) {
            position += standInSize(static_cast<unsigned char>(word[byte]));
            ++byte;
        }
        return byte;
    };
    for (std::int32_t i = 0; i >= 0; i = symbols[i].next) {
        const std::uint32_t from = beginOf(byteAt(sum));
        sum += symbols[i].size;
        put(symbols[i].id, from, endOf(byteAt(sum - 1)));
    }
}

void ByteLevelBpeTokenizer::putTrimmed(std::string_view text, std::int32_t id, std::size_t begin,
                                       std::size_t end, Edges edges, TokenSink& sink) const
{
    // Hugging Face counts the blanks of the token's own text and moves the offsets by as many code
    // points, whatever stands there.
    for (const bool keepsOne : m_trims) {
        std::uint32_t leading = edges.leading;
        if (keepsOne && leading == 1 && (sink.count() == 0 || begin == 0))
            leading = 0;
        for (; leading > 0 && begin < end; --leading)
            begin += utf8::decode(text, begin).size;
        std::size_t at = end;
        std::uint32_t trailing = edges.trailing;
        for (; trailing > 0 && at > 0; --trailing) {
            do
                --at;
            while (at > 0 && isContinuation(text[at]));
        }
        if (trailing == 0)
            end = std::max(at, begin);
    }
    sink.put(id, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end));
}

} // namespace muster::tokenizer
