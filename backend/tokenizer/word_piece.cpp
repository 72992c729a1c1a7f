// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/word_piece_p.h"

#include "base/utf8.h"

#include <cstring>

namespace muster::tokenizer {

namespace {

constexpr std::size_t bufferBytes = 1024;
// A word of this many code points fits the buffer with room for a wide read behind it.
constexpr std::size_t maxBufferedChars = (bufferBytes - 2 * PieceTable::shortSize) / 4;

/// Lower case of ASCII letters in eight bytes, none of which is above 0x7F.
std::uint64_t lowerAscii(std::uint64_t bytes)
{
    const std::uint64_t fromA = bytes + 0x3F3F3F3F3F3F3F3FULL;
    const std::uint64_t aboveZ = bytes + 0x2525252525252525ULL;
    return bytes | ((fromA & ~aboveZ & 0x8080808080808080ULL) >> 2U);
}

char lowerAscii(char byte)
{
    return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 0x20) : byte;
}

} // namespace

/// A word that is being put together, with the place of each byte.
struct WordPieceTokenizer::WordBuffer {
    std::size_t size = 0;
    std::size_t chars = 0;
    std::uint32_t firstBegin = 0;
    std::uint32_t lastEnd = 0;
    char bytes[bufferBytes];
    std::uint32_t begin[bufferBytes];
    std::uint32_t end[bufferBytes];

    void add(const char* from, std::size_t count, std::uint32_t placeBegin, std::uint32_t placeEnd)
    {
        if (chars == 0)
            firstBegin = placeBegin;
        lastEnd = placeEnd;
        // A word that is too long keeps its count and its place; its bytes no longer matter.
        if (++chars > maxBufferedChars)
            return;
        for (std::size_t i = 0; i < count; ++i) {
            bytes[size] = from[i];
            begin[size] = placeBegin;
            end[size] = placeEnd;
            ++size;
        }
    }
};

WordPieceTokenizer::WordPieceTokenizer(WordPieceParts parts, std::int32_t unkId)
    : DescribedTokenizer(std::move(parts.description)), m_normalization(parts.normalization),
      m_codePoints(parts.normalization), m_pieces(parts.vocabulary.size()),
      m_continuingPrefix(parts.continuingPrefix), m_unk(unkId), m_maxWordChars(parts.maxWordChars)
{
    for (const auto& [id, token] : parts.vocabulary) {
        if (token.starts_with(m_continuingPrefix))
            m_pieces.add(PieceTable::Kind::continuing, token.substr(m_continuingPrefix.size()), id);
        m_pieces.add(PieceTable::Kind::opening, token, id);
    }
    for (std::size_t byte = 0; byte < 256; ++byte) {
        ByteRole role = ByteRole::high;
        if (byte < 0x80) {
            switch (m_codePoints.action(static_cast<char32_t>(byte))) {
            case CodePointAction::drop:
                role = ByteRole::drop;
                break;
            case CodePointAction::space:
                role = ByteRole::space;
                break;
            case CodePointAction::alone:
                role = ByteRole::alone;
                break;
            default:
                role = ByteRole::word;
            }
        }
        m_roles[byte] = role;
    }
    std::vector<AddedToken> raw;
    std::vector<std::string> rawPatterns;
    std::vector<AddedToken> normalized;
    std::vector<std::string> normalizedPatterns;
    for (const AddedToken& token : description().addedTokens) {
        if (token.isNormalized) {
            normalized.push_back(token);
            normalizedPatterns.push_back(normalize(token.content, 0, m_normalization).bytes);
        } else {
            raw.push_back(token);
            rawPatterns.push_back(token.content);
        }
        m_cuts.consider(token, token.content);
        if (token.isNormalized)
            m_cuts.consider(token, normalizedPatterns.back());
    }
    m_cuts.set(Cuts::beforeSpaceOrNewWords);
    m_rawTokens = AddedTokenMatcher(std::move(raw), rawPatterns);
    m_normalizedTokens = AddedTokenMatcher(std::move(normalized), normalizedPatterns);
    m_alwaysPlain = !m_normalizedTokens.isEmpty() || m_maxWordChars > maxBufferedChars;

    Hasher hasher;
    hasher.add("wordpiece 1").add(parts.unkToken).add(m_continuingPrefix);
    hasher.add(std::uint64_t{m_maxWordChars});
    const unsigned flags =
        (m_normalization.cleansText ? 1U : 0U) | (m_normalization.isolatesChinese ? 2U : 0U) |
        (m_normalization.stripsAccents ? 4U : 0U) | (m_normalization.lowers ? 8U : 0U);
    hasher.add(std::uint64_t{flags});
    addToDigest(hasher, description());
    addToDigest(hasher, std::move(parts.vocabulary));
    setDigest(hasher.result());
}

std::optional<std::int32_t> WordPieceTokenizer::idOf(std::string_view token) const
{
    for (const AddedToken& added : description().addedTokens) {
        if (added.content == token)
            return added.id;
    }
    const std::int32_t id = m_pieces.find(PieceTable::Kind::opening, token);
    return id == PieceTable::none ? std::nullopt : std::optional(id);
}

void WordPieceTokenizer::encode(std::string_view text, Encoding& into) const
{
    text = text.substr(0, maxTextBytes);
    TokenSink sink(into, text.size() / 3 + 16);
    m_rawTokens.split(text, [&](const AddedTokenMatcher::Part& part) {
        if (part.id) {
            sink.put(*part.id, static_cast<std::uint32_t>(part.begin),
                     static_cast<std::uint32_t>(part.end));
            return;
        }
        const std::size_t before = sink.count();
        if (m_alwaysPlain || !encodeFast(text, part.begin, part.end, sink)) {
            sink.rewind(before);
            encodePlain(text, part.begin, part.end, sink);
        }
    });
}

void WordPieceTokenizer::encodePlainly(std::string_view text, Encoding& into) const
{
    text = text.substr(0, maxTextBytes);
    TokenSink sink(into, text.size() / 3 + 16);
    m_rawTokens.split(text, [&](const AddedTokenMatcher::Part& part) {
        if (part.id)
            sink.put(*part.id, static_cast<std::uint32_t>(part.begin),
                     static_cast<std::uint32_t>(part.end));
        else
            encodePlain(text, part.begin, part.end, sink);
    });
}

bool WordPieceTokenizer::encodeFast(std::string_view text, std::size_t begin, std::size_t end,
                                    TokenSink& sink) const
{
    // What follows `end` is another part of the text: nothing may be decoded across it.
    const std::string_view part = text.substr(0, end);
    std::size_t at = begin;
    while (at < end) {
        const std::size_t start = at;
        while (at < end && role(text[at]) == ByteRole::word)
            ++at;
        const ByteRole next = at < end ? role(text[at]) : ByteRole::space;
        if (next <= ByteRole::alone) {
            if (start < at)
                putAsciiWord(text, start, at, sink);
            if (next == ByteRole::alone)
                putAlone(&text[at], 1, static_cast<std::uint32_t>(at),
                         static_cast<std::uint32_t>(at + 1), sink);
            ++at;
            continue;
        }
        if (start == at && next == ByteRole::drop) {
            ++at;
            continue;
        }
        WordBuffer word;
        for (std::size_t i = start; i < at; ++i) {
            const char byte = m_normalization.lowers ? lowerAscii(text[i]) : text[i];
            word.add(&byte, 1, static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i + 1));
        }
        bool isOpen = true;
        while (isOpen && at < end) {
            const auto from = static_cast<std::uint32_t>(at);
            const ByteRole byteRole = role(text[at]);
            if (byteRole != ByteRole::high) {
                if (byteRole == ByteRole::word) {
                    const char byte = m_normalization.lowers ? lowerAscii(text[at]) : text[at];
                    word.add(&byte, 1, from, from + 1);
                } else if (byteRole != ByteRole::drop) {
                    break;
                }
                ++at;
                continue;
            }
            const utf8::Decoded d = utf8::decode(part, at);
            const auto to = static_cast<std::uint32_t>(at + d.size);
            at += d.size;
            switch (m_codePoints.action(d.codePoint)) {
            case CodePointAction::keep: {
                char bytes[4];
                word.add(bytes, writeUtf8(d.codePoint, bytes), from, to);
                break;
            }
            case CodePointAction::drop:
                break;
            case CodePointAction::space:
                isOpen = false;
                break;
            case CodePointAction::alone: {
                putBuffer(word, sink);
                char bytes[4];
                putAlone(bytes, writeUtf8(d.codePoint, bytes), from, to, sink);
                isOpen = false;
                break;
            }
            case CodePointAction::replace:
                for (const ReplacementPart& r : m_codePoints.replacement(d.codePoint)) {
                    if (r.role == ReplacementPart::Role::word) {
                        word.add(r.bytes, r.size, from, to);
                        continue;
                    }
                    putBuffer(word, sink);
                    if (r.role == ReplacementPart::Role::alone)
                        putAlone(r.bytes, r.size, from, to, sink);
                }
                break;
            case CodePointAction::hangul:
                for (int i = 0; i < 3; ++i) {
                    char bytes[4];
                    if (const char32_t letter = hangulPart(d.codePoint, i))
                        word.add(bytes, writeUtf8(letter, bytes), from, to);
                }
                break;
            case CodePointAction::reorder:
                return false;
            }
        }
        putBuffer(word, sink);
    }
    return true;
}

void WordPieceTokenizer::encodePlain(std::string_view text, std::size_t begin, std::size_t end,
                                     TokenSink& sink) const
{
    const NormalizedText normalized = normalize(text.substr(begin, end - begin),
                                                static_cast<std::uint32_t>(begin), m_normalization);
    std::string word;
    const auto put = [&](std::size_t from, std::size_t to) {
        if (from == to)
            return;
        const auto place = [&](std::size_t b, std::size_t e) {
            return std::pair(normalized.begin[from + b], normalized.end[from + e - 1]);
        };
        const std::string_view bytes(normalized.bytes.data() + from, to - from);
        if (utf8::length(bytes) > m_maxWordChars) {
            const auto [b, e] = place(0, bytes.size());
            sink.put(m_unk, b, e);
            return;
        }
        word.assign(bytes);
        word.append(PieceTable::shortSize, '\0');
        putPieces(word.data(), bytes.size(), sink, place);
    };
    m_normalizedTokens.split(normalized.bytes, [&](const AddedTokenMatcher::Part& part) {
        if (part.id) {
            sink.put(*part.id, normalized.begin[part.begin], normalized.end[part.end - 1]);
            return;
        }
        std::size_t start = part.begin;
        for (std::size_t at = part.begin; at < part.end;) {
            const utf8::Decoded d = utf8::decode(normalized.bytes, at);
            const bool isSpace = contains(unicode::separator, d.codePoint);
            if (isSpace || contains(unicode::punctuation, d.codePoint)) {
                put(start, at);
                if (!isSpace)
                    put(at, at + d.size);
                start = at + d.size;
            }
            at += d.size;
        }
        put(start, part.end);
    });
}

void WordPieceTokenizer::putAsciiWord(std::string_view text, std::size_t begin, std::size_t end,
                                      TokenSink& sink) const
{
    const std::size_t size = end - begin;
    const auto from = static_cast<std::uint32_t>(begin);
    if (size > m_maxWordChars) {
        sink.put(m_unk, from, static_cast<std::uint32_t>(end));
        return;
    }
    char word[bufferBytes];
    if (size <= PieceTable::shortSize) {
        Packed packed = text.size() - begin >= PieceTable::shortSize
                            ? packWide(text.data() + begin, size)
                            : packExact(text.data() + begin, size);
        if (m_normalization.lowers)
            packed = {lowerAscii(packed.low), lowerAscii(packed.high)};
        const std::int32_t id = m_pieces.find(PieceTable::Kind::opening, packed, size);
        if (id != PieceTable::none) {
            sink.put(id, from, static_cast<std::uint32_t>(end));
            return;
        }
        std::memcpy(word, &packed.low, 8);
        std::memcpy(word + 8, &packed.high, 8);
        std::memset(word + 16, 0, 16);
    } else {
        for (std::size_t i = 0; i < size; ++i)
            word[i] = m_normalization.lowers ? lowerAscii(text[begin + i]) : text[begin + i];
        std::memset(word + size, 0, PieceTable::shortSize);
    }
    putPieces(word, size, sink, [&](std::size_t b, std::size_t e) {
        return std::pair(static_cast<std::uint32_t>(from + b),
                         static_cast<std::uint32_t>(from + e));
    });
}

void WordPieceTokenizer::putBuffer(WordBuffer& word, TokenSink& sink) const
{
    if (word.chars == 0)
        return;
    if (word.chars > m_maxWordChars) {
        sink.put(m_unk, word.firstBegin, word.lastEnd);
    } else {
        std::memset(word.bytes + word.size, 0, PieceTable::shortSize);
        putPieces(word.bytes, word.size, sink, [&](std::size_t b, std::size_t e) {
            return std::pair(word.begin[b], word.end[e - 1]);
        });
    }
    word.size = 0;
    word.chars = 0;
}

void WordPieceTokenizer::putAlone(const char* bytes, std::size_t size, std::uint32_t begin,
                                  std::uint32_t end, TokenSink& sink) const
{
    std::int32_t id = PieceTable::none;
    if (m_maxWordChars > 0)
        id = m_pieces.find(PieceTable::Kind::opening, packExact(bytes, size), size);
    sink.put(id == PieceTable::none ? m_unk : id, begin, end);
}

template <typename Place>
void WordPieceTokenizer::putPieces(const char* bytes, std::size_t size, TokenSink& sink,
                                   Place place) const
{
    const std::size_t before = sink.count();
    PieceTable::Kind kind = PieceTable::Kind::opening;
    for (std::size_t at = 0; at < size;) {
        const PieceTable::Longest piece = m_pieces.longest(kind, bytes + at, size - at);
        if (piece.id == PieceTable::none) {
            sink.rewind(before);
            const auto [begin, end] = place(0, size);
            sink.put(m_unk, begin, end);
            return;
        }
        const auto [begin, end] = place(at, at + piece.size);
        sink.put(piece.id, begin, end);
        at += piece.size;
        kind = PieceTable::Kind::continuing;
    }
}

} // namespace muster::tokenizer
