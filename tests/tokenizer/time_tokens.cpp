// SPDX-License-Identifier: Apache-2.0
// Measures the speed of tokenizing a file as one text, in megabytes of processor time and of clock.
//
//   time_tokens DIRECTORY TEXT [THREADS [ROUNDS]]
#include "base/file.h"
#include "tokenizer/whole_text.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

int main(int argc, char** argv)
{
    if (argc < 3) {
        std::fputs("usage: time_tokens DIRECTORY TEXT [THREADS [ROUNDS]]\n", stderr);
        return 2;
    }
    const auto tokenizer = muster::tokenizer::loadTokenizer(argv[1]);
    const auto text = muster::readFile(argv[2]);
    if (!tokenizer || !text) {
        std::fprintf(stderr, "%s\n", (tokenizer ? text.error() : tokenizer.error()).text().c_str());
        return 3;
    }
    const auto threads = static_cast<unsigned>(argc > 3 ? std::atoi(argv[3]) : 1);
    const int rounds = argc > 4 ? std::atoi(argv[4]) : 5;
    muster::tokenizer::Encoding encoding;
    double best = 1e30;
    double bestClock = 1e30;
    for (int i = 0; i < rounds; ++i) {
        const auto start = std::chrono::steady_clock::now();
        const std::clock_t cpu = std::clock();
        muster::tokenizer::encodeText(**tokenizer, *text, threads, encoding);
        const double used = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
        best = std::min(best, used);
        bestClock = std::min(bestClock, passed.count());
    }
    const double megabytes = static_cast<double>(text->size()) / 1e6;
    std::printf("%zu tokens, %.1f MB/s of processor time, %.1f MB/s of clock, %u threads\n",
                encoding.size(), megabytes / best, megabytes / bestClock, threads);
    return 0;
}
