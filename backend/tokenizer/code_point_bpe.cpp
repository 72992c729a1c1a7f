// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/word_model_p.h"

#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::tokenizer {

bool hasInnerBlank(std::string_view token)
{
    for (std::size_t at = token.find(blankMark, 1); at != std::string_view::npos;
         at = token.find(blankMark, at + 1)) {
        if (at < blankMark.size() ||
            token.substr(at - blankMark.size(), blankMark.size()) != blankMark)
            return true;
    }
    return false;
}

std::string byteToken(unsigned byte)
{
    return fmt::format("<0x{:02X}>", byte);
}

CodePointBpe::CodePointBpe(const CodePointBpeParts& parts)
    : m_pieces(parts.vocabulary.size()), m_merges(parts.merges.size()), m_unk(parts.unk),
      m_fusesUnk(parts.fusesUnk), m_fallsBack(parts.fallsBackToBytes),
      m_ignoresMerges(parts.ignoresMerges)
{
    for (const auto& [id, token] : parts.vocabulary) {
        m_pieces.add(PieceTable::Kind::opening, token, id);
        if (token.empty())
            continue;
        const utf8::Decoded d = utf8::decode(token, 0);
        if (d.valid && d.size == token.size())
            m_single.set(d.codePoint, id);
    }
    for (unsigned b = 0; b < 256; ++b)
        m_byteId[b] = m_pieces.find(PieceTable::Kind::opening, byteToken(b));
    for (const std::string& symbol : parts.whole) {
        const std::int32_t id = m_pieces.find(PieceTable::Kind::opening, symbol);
        if (id != PieceTable::none)
            m_whole.emplace_back(symbol, id);
    }
    std::ranges::stable_sort(m_whole, std::ranges::greater{},
                             [](const auto& entry) { return entry.first.size(); });
}

Result<std::unique_ptr<WordModel>> CodePointBpe::make(CodePointBpeParts parts)
{
    std::unique_ptr<CodePointBpe> made(new CodePointBpe(parts));
    const auto find = [&](std::string_view token) {
        return made->m_pieces.find(PieceTable::Kind::opening, token);
    };
    // A U+2581 that has a token and that no merge puts behind another character always starts
    // afresh, so that what stands before and behind it never meets.
    // Without an unknown token a character may vanish, and what stood around it meets.
    bool splits = made->m_single[0x2581] != PieceTable::none && parts.unk.has_value();
    for (const std::string& symbol : parts.whole)
        splits = splits && symbol.find(blankMark) == std::string::npos;
    std::string joined;
    for (const CodePointBpeParts::Merge& merge : parts.merges) {
        joined.assign(merge.left).append(merge.right);
        const std::int32_t left = find(merge.left);
        const std::int32_t right = find(merge.right);
        const std::int32_t both = find(joined);
        if (left < 0 || right < 0 || both < 0)
            return fail(Error::Kind::Invalid, "E-TOK-006",
                        fmt::format("the merge of \"{}\" and \"{}\" has a part or a result that "
                                    "does not stand in the vocabulary",
                                    merge.left, merge.right));
        made->m_merges.set(left, right, merge.rank, both);
        splits = splits && !hasInnerBlank(joined);
    }
    made->m_splitsAtBlanks = splits;
    Hasher hasher;
    hasher.add("code point bpe 1").add(std::int64_t{parts.unk.value_or(-1)});
    hasher.add(std::uint64_t{parts.fusesUnk}).add(std::uint64_t{parts.fallsBackToBytes});
    hasher.add(std::uint64_t{parts.ignoresMerges});
    for (const std::string& symbol : parts.whole)
        hasher.add(symbol);
    std::string block;
    for (const CodePointBpeParts::Merge& merge : parts.merges)
        block.append(merge.left)
            .append(" ")
            .append(merge.right)
            .append(fmt::format(" {}\n", merge.rank));
    hasher.add(block);
    tokenizer::addToDigest(hasher, std::move(parts.vocabulary));
    made->m_hash = hasher.result();
    return std::unique_ptr<WordModel>(std::move(made));
}

std::optional<std::int32_t> CodePointBpe::idOf(std::string_view token) const
{
    const std::int32_t id = m_pieces.find(PieceTable::Kind::opening, token);
    return id == PieceTable::none ? std::nullopt : std::optional(id);
}

void CodePointBpe::put(std::string_view word, std::uint32_t at, EncodeSpace& space,
                       TokenSink& sink) const
{
    if (m_ignoresMerges) {
        const std::int32_t whole = m_pieces.find(PieceTable::Kind::opening, word);
        if (whole != PieceTable::none) {
            sink.put(whole, at, at + static_cast<std::uint32_t>(word.size()));
            return;
        }
    }
    if (!m_splitsAtBlanks) {
        putBetweenBlanks(word, at, space, sink);
        return;
    }
    splitAtBlanks(word, [&](std::size_t begin, std::size_t end) {
        putBetweenBlanks(word.substr(begin, end - begin), at + static_cast<std::uint32_t>(begin),
                         space, sink);
    });
}

void CodePointBpe::start(std::string_view word, std::vector<MergeSymbol>& symbols) const
{
    symbols.clear();
    std::uint32_t unknownSize = 0; // of the unknown token that is still open; 0: none
    const auto closeUnknown = [&] {
        if (unknownSize > 0)
            symbols.push_back({m_unk.value_or(0), unknownSize});
        unknownSize = 0;
    };
    for (std::size_t i = 0; i < word.size();) {
        const auto whole = std::ranges::find_if(
            m_whole, [&](const auto& entry) { return word.substr(i).starts_with(entry.first); });
        if (whole != m_whole.end()) {
            closeUnknown();
            symbols.push_back({whole->second, static_cast<std::uint32_t>(whole->first.size())});
            i += whole->first.size();
            continue;
        }
        const utf8::Decoded d = utf8::decode(word, i);
        const auto size = static_cast<std::uint32_t>(d.size);
        const std::string_view bytes = word.substr(i, d.size);
        i += d.size;
        if (const std::int32_t id = m_single[d.codePoint]; id != PieceTable::none) {
            closeUnknown();
            symbols.push_back({id, size});
            continue;
        }
        const auto hasToken = [&](char byte) {
            return m_byteId[static_cast<unsigned char>(byte)] != PieceTable::none;
        };
        if (m_fallsBack && std::ranges::all_of(bytes, hasToken)) {
            // Hugging Face keeps an unknown token open over the bytes; so their places change.
            for (const char byte : bytes)
                symbols.push_back({m_byteId[static_cast<unsigned char>(byte)], 1});
        } else if (m_unk) {
            if (!m_fusesUnk)
                closeUnknown();
            unknownSize += size;
        }
    }
    closeUnknown();
}

void CodePointBpe::putBetweenBlanks(std::string_view word, std::uint32_t at, EncodeSpace& space,
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
    start(word, space.symbols);
    const std::size_t count = m_merges.mergeAll(space.symbols, space.merging);
    std::size_t total = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const MergeSymbol& symbol = space.symbols[i];
        // Characters without a token may have been dropped; the sums then fall behind, as
        // Hugging Face's do.
        sink.put(symbol.id, at, at + symbol.size);
        at += symbol.size;
        total += symbol.size;
    }
    if (entry == nullptr || count > WordCache::maxTokens || total > PieceTable::shortSize)
        return;
    entry->low = packed.low;
    entry->high = packed.high;
    entry->size = static_cast<std::uint8_t>(word.size());
    entry->count = static_cast<std::uint8_t>(count);
    for (std::size_t i = 0; i < count; ++i) {
        entry->sizes[i] = static_cast<std::uint8_t>(space.symbols[i].size);
        entry->ids[i] = space.symbols[i].id;
    }
}

} // namespace muster::tokenizer
