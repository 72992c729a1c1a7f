// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/whole_text.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace muster::tokenizer {

namespace {

constexpr std::size_t leastPiece = std::size_t{64} << 10U;
constexpr std::size_t mostPiece = std::size_t{4} << 20U;

/// Where the pieces of a text begin, and its size at the end.
std::vector<std::size_t> pieceBounds(const Tokenizer& tokenizer, std::string_view text,
                                     std::size_t target)
{
    std::vector<std::size_t> bounds{0};
    for (std::size_t wanted = target; wanted < text.size(); wanted += target) {
        // What lies further back has been searched before, so that all searches are linear.
        const std::size_t from = std::max(bounds.back(), wanted - target);
        const std::size_t cut = tokenizer.cutBefore(text.substr(from), wanted - from);
        if (cut > 0)
            bounds.push_back(from + cut);
    }
    bounds.push_back(text.size());
    return bounds;
}

void encodePiece(const Tokenizer& tokenizer, std::string_view piece, bool continues, Encoding& into)
{
    if (continues)
        tokenizer.encodeContinuation(piece, into);
    else
        tokenizer.encode(piece, into);
}

/// Encodes with several threads; `continues` as in encodePiece.
void encodeParallel(const Tokenizer& tokenizer, std::string_view text, bool continues,
                    unsigned threads, Encoding& into)
{
    const std::size_t share = text.size() / (std::size_t{4} * std::max(threads, 1U));
    const std::size_t target = std::clamp(share, leastPiece, mostPiece);
    if (threads <= 1 || text.size() < 2 * leastPiece) {
        encodePiece(tokenizer, text, continues, into);
        return;
    }
    const std::vector<std::size_t> bounds = pieceBounds(tokenizer, text, target);
    const std::size_t pieces = bounds.size() - 1;
    if (pieces == 1) {
        encodePiece(tokenizer, text, continues, into);
        return;
    }
    std::vector<Encoding> parts(pieces);
    std::atomic<std::size_t> next = 0;
    const auto work = [&] {
        for (std::size_t i = next++; i < pieces; i = next++)
            encodePiece(tokenizer, text.substr(bounds[i], bounds[i + 1] - bounds[i]),
                        continues || i > 0, parts[i]);
    };
    {
        std::vector<std::jthread> helpers;
        for (std::size_t i = 1; i < std::min<std::size_t>(threads, pieces); ++i)
            helpers.emplace_back(work);
        work();
    }
    std::size_t total = 0;
    for (const Encoding& part : parts)
        total += part.size();
    into.clear();
    into.ids.reserve(total);
    into.begin.reserve(total);
    into.end.reserve(total);
    for (std::size_t i = 0; i < pieces; ++i) {
        const auto shift = static_cast<std::uint32_t>(bounds[i]);
        into.ids.insert(into.ids.end(), parts[i].ids.begin(), parts[i].ids.end());
        for (const std::uint32_t at : parts[i].begin)
            into.begin.push_back(at + shift);
        for (const std::uint32_t at : parts[i].end)
            into.end.push_back(at + shift);
        parts[i] = Encoding();
    }
}

} // namespace

void encodeText(const Tokenizer& tokenizer, std::string_view text, unsigned threads, Encoding& into)
{
    encodeParallel(tokenizer, text.substr(0, 0xFFFFFFFFU), false, threads, into);
}

std::vector<std::int32_t> documentIds(const Tokenizer& tokenizer, std::string_view text,
                                      DocumentEnds ends, unsigned threads)
{
    std::vector<std::int32_t> ids;
    const SingleTemplate& single = tokenizer.singleTemplate();
    if (ends == DocumentEnds::asTemplate)
        ids = single.prefix;
    // Blocks keep the memory for offsets, which nobody asked for, small.
    constexpr std::size_t block = std::size_t{64} << 20U;
    StreamEncoder stream(tokenizer, threads, block);
    Encoding encoding;
    const auto take = [&] { ids.insert(ids.end(), encoding.ids.begin(), encoding.ids.end()); };
    for (std::size_t at = 0; at < text.size(); at += block) {
        stream.push(text.substr(at, block), encoding);
        take();
    }
    stream.finish(encoding);
    take();
    if (ends == DocumentEnds::asTemplate)
        ids.insert(ids.end(), single.suffix.begin(), single.suffix.end());
    return ids;
}

void StreamEncoder::encodePart(std::string_view text, Encoding& into)
{
    m_base = m_done;
    encodeParallel(m_tokenizer, text, m_done > 0, m_threads, into);
    m_done += text.size();
}

void StreamEncoder::push(std::string_view block, Encoding& into)
{
    into.clear();
    m_base = m_done;
    m_pending.append(block);
    if (m_pending.size() < std::max(m_blockBytes, m_nextTry))
        return;
    const std::size_t cut = m_tokenizer.cutBefore(m_pending, m_pending.size());
    if (cut == 0) {
        // Looking again for each block would take time in the square of the text.
        m_nextTry = 2 * m_pending.size();
        return;
    }
    m_nextTry = 0;
    encodePart(std::string_view(m_pending).substr(0, cut), into);
    m_pending.erase(0, cut);
}

void StreamEncoder::finish(Encoding& into)
{
    into.clear();
    encodePart(m_pending, into);
    m_pending.clear();
    m_nextTry = 0;
    m_done = 0;
}

} // namespace muster::tokenizer
