// SPDX-License-Identifier: Apache-2.0
// Speed of tokenising on one thread, and of loading.
//
//   bench_tokenizer DIRECTORY FILE [REPETITIONS]     FILE: one text a line
#include "base/file.h"
#include "tokenizer/tokenizer.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace {

double secondsSince(std::chrono::steady_clock::time_point start)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values)
{
    std::ranges::sort(values);
    return values[values.size() / 2];
}

} // namespace

int main(int argc, char** argv)
{
    if (argc < 3) {
        std::fputs("usage: bench_tokenizer DIRECTORY FILE [REPETITIONS]\n", stderr);
        return 2;
    }
    const int repetitions = argc > 3 ? std::max(1, std::atoi(argv[3])) : 5;
    const auto text = muster::readFile(argv[2]);
    if (!text) {
        std::fprintf(stderr, "%s\n", text.error().text().c_str());
        return 3;
    }
    std::vector<std::string_view> lines;
    for (std::string_view rest = *text; !rest.empty();) {
        const std::size_t stop = std::min(rest.find('\n'), rest.size() - 1) + 1;
        lines.push_back(rest.substr(0, stop));
        rest.remove_prefix(stop);
    }
    std::vector<double> loading;
    std::vector<double> cold;
    std::vector<double> warm;
    std::size_t tokens = 0;
    for (int i = 0; i < repetitions; ++i) {
        auto start = std::chrono::steady_clock::now();
        const auto tokenizer = muster::tokenizer::loadTokenizer(argv[1]);
        loading.push_back(secondsSince(start));
        if (!tokenizer) {
            std::fprintf(stderr, "%s\n", tokenizer.error().text().c_str());
            return 3;
        }
        muster::tokenizer::Encoding encoding;
        for (auto* seconds : {&cold, &warm}) {
            tokens = 0;
            start = std::chrono::steady_clock::now();
            for (const std::string_view line : lines) {
                (*tokenizer)->encode(line, encoding);
                tokens += encoding.size();
            }
            seconds->push_back(secondsSince(start));
        }
    }
    const double megabytes = static_cast<double>(text->size()) / 1e6;
    std::printf("load %.2f ms; %zu texts, %.2f MB, %zu tokens; cold %.1f MB/s, warm %.1f MB/s\n",
                median(loading) * 1e3, lines.size(), megabytes, tokens, megabytes / median(cold),
                megabytes / median(warm));
    return 0;
}
