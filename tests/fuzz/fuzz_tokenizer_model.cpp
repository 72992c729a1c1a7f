// SPDX-License-Identifier: Apache-2.0
// Loads any bytes as a SentencePiece model; what loads must encode without a crash. When the input
// ends with a size as one byte, so many bytes before it are the text to encode.
#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view input(static_cast<const char*>(static_cast<const void*>(data)), size);
    if (input.empty())
        return 0;
    const std::size_t wanted = static_cast<unsigned char>(input.back());
    const std::size_t textSize = std::min(wanted, input.size() - 1);
    const std::string_view text = input.substr(input.size() - 1 - textSize, textSize);
    const auto tokenizer =
        muster::tokenizer::loadSentencePieceModel(input.substr(0, input.size() - 1 - textSize));
    if (!tokenizer)
        return 0;
    muster::tokenizer::Encoding encoding;
    (*tokenizer)->encode(text, encoding);
    for (std::size_t i = 0; i < encoding.size(); ++i) {
        if (encoding.begin[i] > encoding.end[i] || encoding.end[i] > text.size())
            std::abort();
    }
    return 0;
}
