// SPDX-License-Identifier: Apache-2.0
// Encodes any bytes with small tokenizers: offsets stay inside the text, the ids are those of the
// repaired text, and a second encoding gives the same.
#include "base/utf8.h"
#include "tokenizer/tokenizer.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace muster;

std::vector<std::unique_ptr<tokenizer::Tokenizer>> made()
{
    const std::string vocabulary = "[UNK]\n[SEP]\n[PAD]\n[CLS]\n[MASK]\na\nb\n##a\n##b\nab\n.\n#\n"
                                   "internationalisation\n##internationalisation\ne\n##e\n\xE4\xB8"
                                   "\xAD\n";
    std::vector<std::unique_ptr<tokenizer::Tokenizer>> all;
    for (const bool lowers : {true, false}) {
        auto t = tokenizer::loadBertVocabulary(vocabulary, {.doLowerCase = lowers});
        if (!t)
            std::abort();
        all.push_back(std::move(*t));
    }
    auto t = tokenizer::loadTokenizerJson(
        R"({"added_tokens":[{"id":0,"content":"<s>","lstrip":true,"rstrip":true,"normalized":true,
            "single_word":true,"special":true}],"pre_tokenizer":{"type":"ByteLevel",
            "add_prefix_space":true},"post_processor":{"type":"RobertaProcessing","sep":["<s>",0],
            "cls":["<s>",0]},"model":{"type":"BPE","unk_token":"<s>","fuse_unk":true,
            "vocab":{"<s>":0,"a":1,"b":2,"ab":3,"Ġ":4,"Ġab":5,"'":6,"ĠĠ":7},
            "merges":["a b","Ġ ab","Ġ Ġ"]}})");
    if (!t)
        std::abort();
    all.push_back(std::move(*t));
    return all;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static const auto tokenizers = made();
    const std::string_view text(static_cast<const char*>(static_cast<const void*>(data)), size);
    const std::string repaired = utf8::repaired(text);
    tokenizer::Encoding first;
    tokenizer::Encoding second;
    for (const auto& t : tokenizers) {
        t->encode(text, first);
        t->encode(repaired, second);
        if (first.ids != second.ids)
            std::abort();
        for (std::size_t i = 0; i < first.size(); ++i) {
            if (first.begin[i] > first.end[i] || first.end[i] > text.size())
                std::abort();
        }
        t->encode(text, second);
        if (first != second)
            std::abort();
    }
    return 0;
}
