// SPDX-License-Identifier: Apache-2.0
// Tokenises the texts of a file and prints ids and byte offsets, for compare_with_hf.py.
//
//   dump_tokens DIRECTORY TEXTS        TEXTS: for each text, its size in bytes as 8 bytes little
//                                      endian, then its bytes
//
// Output, binary: for each text the number of tokens as 8 bytes, then id, begin, end of each token
// as 4 bytes each.
#include "base/file.h"
#include "tokenizer/tokenizer.h"

#include <cstdio>
#include <cstring>
#include <string>

int main(int argc, char** argv)
{
    if (argc != 3) {
        std::fputs("usage: dump_tokens DIRECTORY TEXTS\n", stderr);
        return 2;
    }
    const auto tokenizer = muster::tokenizer::loadTokenizer(argv[1]);
    if (!tokenizer) {
        std::fprintf(stderr, "%s\n", tokenizer.error().text().c_str());
        return 3;
    }
    const auto texts = muster::readFile(argv[2]);
    if (!texts) {
        std::fprintf(stderr, "%s\n", texts.error().text().c_str());
        return 3;
    }
    muster::tokenizer::Encoding encoding;
    std::string out;
    const auto put = [&](const void* from, std::size_t size) {
        out.append(static_cast<const char*>(from), size);
    };
    for (std::size_t at = 0; at + 8 <= texts->size();) {
        std::uint64_t size = 0;
        std::memcpy(&size, texts->data() + at, 8);
        at += 8;
        if (size > texts->size() - at)
            return 3;
        (*tokenizer)->encode(std::string_view(*texts).substr(at, size), encoding);
        at += size;
        const std::uint64_t count = encoding.size();
        put(&count, 8);
        for (std::size_t i = 0; i < encoding.size(); ++i) {
            put(&encoding.ids[i], 4);
            put(&encoding.begin[i], 4);
            put(&encoding.end[i], 4);
        }
    }
    std::fwrite(out.data(), 1, out.size(), stdout);
    return 0;
}
