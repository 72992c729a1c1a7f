// SPDX-License-Identifier: Apache-2.0
// bench_model DIR [float32|bfloat16] [auto|own|plain|torch] [ITEMS]: how fast one thread computes
// items whose lengths are spread like those of XQuAD (mean 180 tokens, at most 384). Processor time
// of the program, so that other work on the machine matters little.
#include "model/qa_model_p.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <malloc.h>
#include <sys/resource.h>

using namespace muster;
using namespace muster::model;

namespace {

double processorSeconds()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// 60 + 324 · u^1.7 for evenly spread u: mean 180.
std::vector<std::uint32_t> lengths(std::size_t items)
{
    std::vector<std::uint32_t> all;
    for (std::size_t i = 0; i < items; ++i) {
        const double u = std::fmod(static_cast<double>(i) * 0.6180339887498949, 1.0);
        all.push_back(60 + static_cast<std::uint32_t>(324.0 * std::pow(u, 1.7)));
    }
    std::sort(all.rbegin(), all.rend());
    return all;
}

} // namespace

int main(int argc, char** argv)
{
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.empty()) {
        std::puts("bench_model DIR [float32|bfloat16] [auto|own|plain|torch] [ITEMS]");
        return 2;
    }
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    const auto word = [&](std::size_t i, const char* absent) {
        return i < words.size() ? words[i] : std::string(absent);
    };
    const auto engineName = word(2, "auto");
    const auto engine = engineName == "own"     ? Engine::Own
                        : engineName == "plain" ? Engine::Plain
                        : engineName == "torch" ? Engine::Torch
                                                : Engine::Automatic;
    const auto items = static_cast<std::size_t>(std::atoi(word(3, "400").c_str()));
    const auto loadStart = processorSeconds();
    const auto wallStart = std::chrono::steady_clock::now();
    const auto model = loadQaModel(
        {.path = words[0],
         .precision = word(1, "float32") == "bfloat16" ? Precision::Bfloat16 : Precision::Float32},
        engine);
    if (!model) {
        std::fprintf(stderr, "%s\n", model.error().text().c_str());
        return 3;
    }
    const std::chrono::duration<double> loadWall = std::chrono::steady_clock::now() - wallStart;
    const auto loadTime = processorSeconds() - loadStart;

    std::vector<wire::Unit> units;
    double squares = 0;
    double tokens = 0;
    for (const auto length : lengths(items)) {
        constexpr std::size_t budget = 2048;
        if (units.empty() || units.back().tokens.size() + length > budget) {
            units.emplace_back();
            units.back().offsets = {0};
        }
        auto& unit = units.back();
        unit.items.push_back(unit.items.size());
        for (std::uint32_t k = 0; k < length; ++k)
            unit.tokens.push_back(static_cast<std::int32_t>(1000 + (k * 7919U + length) % 20000U));
        unit.offsets.push_back(static_cast<std::uint32_t>(unit.tokens.size()));
        squares += static_cast<double>(length) * length;
        tokens += length;
    }
    if (!(*model)->compute(units.back()))
        return 1;
    const auto start = processorSeconds();
    for (const auto& unit : units) {
        if (!(*model)->compute(unit))
            return 1;
    }
    const auto time = processorSeconds() - start;
    // MiniLM-L6-H384: 2 · 10.62 M per token and 4 · layers · width · s² for attention.
    const double flop = 2.0 * 10616832.0 * tokens + 4.0 * 6 * 384 * squares;
    std::printf("%s\nload %.3f s (%.3f s of processor time)\n%zu items, %.0f tokens, %zu units: "
                "%.3f s, %.1f items/s, %.0f tokens/s, %.1f GFLOP/s (as MiniLM-L6-H384)\n",
                (*model)->identity().kernels.c_str(), loadWall.count(), loadTime, items, tokens,
                units.size(), time, static_cast<double>(items) / time, tokens / time,
                flop / time / 1e9);
    return 0;
}
