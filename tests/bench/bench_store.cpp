// SPDX-License-Identifier: Apache-2.0
// Speed of the run file: plan written, outputs committed, outputs read.
// Usage: bench_store FOLDER [items] [items per unit] [payload bytes]
#include "base/clock.h"
#include "store/run_file.h"
#include "support/synthetic_run.h"

#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <string>

using namespace muster;

namespace {

double secondsSince(std::int64_t start)
{
    return static_cast<double>(monotonicNs() - start) * 1e-9;
}

std::uint64_t argumentOr(int count, char** words, int place, std::uint64_t otherwise)
{
    return count > place ? std::strtoull(words[place], nullptr, 10) : otherwise;
}

} // namespace

int main(int count, char** words)
{
    if (count < 2) {
        std::fprintf(stderr, "usage: bench_store FOLDER [items] [items per unit] [payload]\n");
        return 2;
    }
    const std::uint64_t items = argumentOr(count, words, 2, 1'000'000);
    const std::uint64_t perUnit = argumentOr(count, words, 3, 256);
    const std::uint64_t payload = argumentOr(count, words, 4, 24);
    const std::filesystem::path path = std::filesystem::path(words[1]) / "bench.muster";
    for (const char* suffix : {"", "-wal", "-shm"})
        std::filesystem::remove(path.string() + suffix);
    auto file = store::RunFile::create(path);
    if (!file) {
        std::fprintf(stderr, "%s\n", file.error().text().c_str());
        return 1;
    }
    std::int64_t start = monotonicNs();
    if (auto done = test::writeSyntheticPlan(*file, items, perUnit); !done) {
        std::fprintf(stderr, "%s\n", done.error().text().c_str());
        return 1;
    }
    const double planS = secondsSince(start);
    std::printf("plan      %9.0f items in %7.3f s\n", static_cast<double>(items), planS);

    auto writer = file->outputWriter();
    if (!writer)
        return 1;
    const std::uint64_t units = (items + perUnit - 1) / perUnit;
    double commitS = 0.0;
    std::uint64_t commits = 0;
    for (std::uint64_t unit = 0; unit < units; ++unit) {
        const std::uint64_t first = unit * perUnit;
        const auto block =
            test::syntheticBlock(unit, first, std::min(perUnit, items - first), 0, payload);
        start = monotonicNs();
        if (!writer->add(block, 0, 0, "node"))
            return 1;
        if (writer->pendingUnits() == 64 || unit + 1 == units) {
            if (auto done = writer->commit(); !done) {
                std::fprintf(stderr, "%s\n", done.error().text().c_str());
                return 1;
            }
            ++commits;
        }
        commitS += secondsSince(start);
    }
    std::printf("outputs   %9.0f items in %7.3f s = %10.0f items/s, %.0f commits, %.2f ms each\n",
                static_cast<double>(items), commitS, static_cast<double>(items) / commitS,
                static_cast<double>(commits), 1e3 * commitS / static_cast<double>(commits));
    start = monotonicNs();
    std::uint64_t read = 0;
    if (!file->forEachOutput([&read](const auto&, wire::OutputBlock&& block) {
            read += block.outputs.size();
            return true;
        }))
        return 1;
    const double readS = secondsSince(start);
    std::printf("read      %9.0f items in %7.3f s = %10.0f items/s\n", static_cast<double>(read),
                readS, static_cast<double>(read) / readS);
    start = monotonicNs();
    if (!file->seal())
        return 1;
    std::printf("sealed in %7.3f s, %.1f MB\n", secondsSince(start),
                static_cast<double>(std::filesystem::file_size(path)) / 1e6);
    struct rusage usage {};
    ::getrusage(RUSAGE_SELF, &usage);
    std::printf("peak resident %.0f MB\n", static_cast<double>(usage.ru_maxrss) / 1024.0);
    return 0;
}
