// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tokenizer/tokenizer.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::tokenizer {

/// Replaces `into` by the tokens of a text, found by several threads.
///
/// The tokens are those of `tokenizer.encode(text, into)` whatever the number of threads: the text
/// is cut only where Tokenizer::cutBefore() allows it. Where it allows no cut, one thread does the
/// work. Takes time linear in the text (for one word of n bytes: n log n).
///
/// \param text     as for Tokenizer::encode(); at most 4 GiB − 1 bytes
/// \param threads  how many threads may work, the caller's included; 0 counts as 1
void encodeText(const Tokenizer& tokenizer, std::string_view text, unsigned threads,
                Encoding& into);

/// Which special tokens documentIds() puts around a document.
enum class DocumentEnds : std::uint8_t {
    asTemplate, ///< the prefix and suffix of Tokenizer::singleTemplate(), Hugging Face's default
    bare        ///< none
};

/// Ids of a document of any length, with several threads as in encodeText(). The empty text gives
/// what the template puts around it.
[[nodiscard]] std::vector<std::int32_t>
documentIds(const Tokenizer& tokenizer, std::string_view text, DocumentEnds ends, unsigned threads);

/// Encodes a text that arrives in blocks, in memory that does not grow with the text: what cannot
/// be cut yet is kept (at worst all of a text that has no place to cut).
///
/// Owned and used by one thread; it may start others. The tokens of all calls together are those of
/// the whole text. No special tokens are put around it. The tokenizer must outlive it.
class StreamEncoder final {
public:
    /// \param blockBytes  text that is gathered before it is encoded; at least 1
    explicit StreamEncoder(const Tokenizer& tokenizer, unsigned threads = 1,
                           std::size_t blockBytes = std::size_t{4} << 20U)
        : m_tokenizer(tokenizer), m_threads(threads), m_blockBytes(blockBytes)
    {
    }

    /// Takes the next bytes of the text (a code point may be split between two blocks) and replaces
    /// `into` by the tokens that are certain now; their offsets count from base().
    void push(std::string_view block, Encoding& into);
    /// Ends the text and replaces `into` by its last tokens; the next push() starts a new text.
    void finish(Encoding& into);
    /// Byte of the text at which the text of the last push() or finish() starts.
    [[nodiscard]] std::uint64_t base() const { return m_base; }

private:
    void encodePart(std::string_view text, Encoding& into);

    const Tokenizer& m_tokenizer;
    unsigned m_threads;
    std::size_t m_blockBytes;
    std::string m_pending;
    std::size_t m_nextTry = 0;
    std::uint64_t m_base = 0;
    std::uint64_t m_done = 0;
};

} // namespace muster::tokenizer
