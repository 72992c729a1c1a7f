// SPDX-License-Identifier: Apache-2.0
// Loads any bytes as tokenizer.json; what loads must encode without a crash. When the input has the
// byte 0xFF, which no JSON has, what follows it is the text to encode.
#include "tokenizer/tokenizer.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view input(static_cast<const char*>(static_cast<const void*>(data)), size);
    const std::size_t cut = input.find('\xFF');
    const auto tokenizer = muster::tokenizer::loadTokenizerJson(input.substr(0, cut));
    if (!tokenizer)
        return 0;
    const std::string_view text = cut == std::string_view::npos ? input : input.substr(cut + 1);
    muster::tokenizer::Encoding encoding;
    (*tokenizer)->encode(text, encoding);
    for (std::size_t i = 0; i < encoding.size(); ++i) {
        if (encoding.begin[i] > encoding.end[i] || encoding.end[i] > text.size())
            std::abort();
    }
    return 0;
}
