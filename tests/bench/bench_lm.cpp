// SPDX-License-Identifier: Apache-2.0
// bench_lm DIR [PRECISION] [auto|own|plain] [WINDOWS] [LENGTH] [all|half] [IDS]: tokens per second
// of one thread on windows of LENGTH tokens, all of them or only the second half scored. IDS is a
// file of little-endian int32 token ids; without it ids are made up. Prints time by the clock and
// by the processor, so that other work on the machine is seen.
#include "model/lm_model_p.h"
#include "wire/output.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
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

double clockSeconds()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

std::vector<std::int32_t> readIds(const std::string& path)
{
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    std::vector<std::int32_t> ids(bytes.size() / sizeof(std::int32_t));
    std::memcpy(ids.data(), bytes.data(), ids.size() * sizeof(std::int32_t));
    return ids;
}

} // namespace

int main(int argc, char** argv)
{
    const std::vector<std::string> words(argv + 1, argv + argc);
    const auto word = [&](std::size_t i, const char* absent) {
        return i < words.size() ? words[i] : std::string(absent);
    };
    const std::map<std::string, Precision> precisions{{"float32", Precision::Float32},
                                                      {"bfloat16", Precision::Bfloat16},
                                                      {"int8", Precision::Int8},
                                                      {"int4", Precision::Int4},
                                                      {"int8-dynamic", Precision::Int8Dynamic}};
    const auto precision = precisions.find(word(1, "float32"));
    if (words.empty() || precision == precisions.end()) {
        std::puts("bench_lm DIR [float32|bfloat16|int8|int4|int8-dynamic] [auto|own|plain] "
                  "[WINDOWS] [LENGTH] [all|half] [IDS]");
        return 2;
    }
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    const auto engine = word(2, "auto") == "plain" ? Engine::Plain : Engine::Automatic;
    const auto windows = static_cast<std::size_t>(std::atoi(word(3, "4").c_str()));
    const auto length = static_cast<std::size_t>(std::atoi(word(4, "1024").c_str()));
    const bool isHalf = word(5, "all") == "half";
    const auto ids = words.size() > 6 ? readIds(words[6]) : std::vector<std::int32_t>();
    const auto loadStart = clockSeconds();
    const auto model = loadLmModel(
        {.path = words[0], .kind = wire::UnitKind::Lm, .precision = precision->second}, engine);
    if (!model) {
        std::fprintf(stderr, "%s\n", model.error().text().c_str());
        return 3;
    }
    const auto loadTime = clockSeconds() - loadStart;
    const auto& identity = (*model)->identity();

    std::vector<wire::Unit> units;
    for (std::size_t w = 0; w < windows; ++w) {
        auto& unit = units.emplace_back();
        unit.kind = wire::UnitKind::Lm;
        unit.items = {w};
        unit.offsets = {0, static_cast<std::uint32_t>(length)};
        unit.scoredFrom = {isHalf ? static_cast<std::uint32_t>(length / 2) : 1U};
        for (std::size_t k = 0; k < length; ++k)
            unit.tokens.push_back(
                ids.empty() ? static_cast<std::int32_t>((k * 7919U + w) % identity.vocabulary)
                            : ids.at(w * length + k));
    }
    const auto processorStart = processorSeconds();
    const auto start = clockSeconds();
    double sum = 0;
    double scored = 0;
    double best = 1e9;
    for (const auto& unit : units) {
        const auto windowStart = processorSeconds();
        const auto outputs = (*model)->compute(unit);
        if (!outputs || (outputs->front().flags & wire::errorFlag) != 0)
            return 1;
        const auto output = wire::decodeLm(
            outputs->front().payload, static_cast<std::uint32_t>(length) - unit.scoredFrom.front());
        if (!output)
            return 1;
        std::printf("window %llu: loss sum %.9g, greedy %u of %u\n",
                    static_cast<unsigned long long>(unit.items.front()), output->lossSum,
                    output->greedyHits, output->scored);
        best = std::min(best, processorSeconds() - windowStart);
        sum += output->lossSum;
        scored += output->scored;
    }
    const auto time = clockSeconds() - start;
    const auto processor = processorSeconds() - processorStart;
    const auto tokens = static_cast<double>(windows * length);
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf("%s\nweights %.1f MB, peak %.1f MB, load %.3f s\n"
                "%zu windows of %zu: perplexity %.6f, %.3f s, %.1f tokens/s; by processor time "
                "%.3f s, %.1f tokens/s, best window %.1f\n",
                identity.kernels.c_str(), static_cast<double>(identity.weightBytes) / 1e6,
                static_cast<double>(usage.ru_maxrss) / 1e3, loadTime, windows, length,
                std::exp(sum / scored), time, tokens / time, processor, tokens / processor,
                static_cast<double>(length) / best);
    return 0;
}
