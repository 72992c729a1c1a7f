// SPDX-License-Identifier: Apache-2.0
// The run file reads bytes that anyone may have changed. The first byte chooses: the rest is a
// whole file, or a list of patches (3 bytes place, 1 byte value) on a sound one.
#include "store/run_file.h"
#include "support/synthetic_run.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <unistd.h>

using namespace muster;

namespace {

std::filesystem::path folder()
{
    // Never destroyed: the clean-up at exit comes after the destructors of statics.
    static const std::filesystem::path& made = *new std::filesystem::path([] {
        const std::filesystem::path memory = "/dev/shm";
        std::error_code problem;
        const auto root = std::filesystem::is_directory(memory, problem)
                              ? memory
                              : std::filesystem::temp_directory_path();
        auto own = root / ("muster-fuzz-" + std::to_string(::getpid()));
        std::filesystem::create_directories(own);
        std::atexit([] { std::filesystem::remove_all(folder()); });
        return own;
    }());
    return made;
}

const std::string& soundFile()
{
    static const std::string bytes = [] {
        const auto path = folder() / "sound.muster";
        {
            auto file = store::RunFile::create(path);
            if (!file || !test::writeSyntheticPlan(*file, 60, 10))
                std::abort();
            auto writer = file->outputWriter();
            for (std::uint64_t unit = 0; writer && unit < 5; ++unit) {
                if (!writer->add(test::syntheticBlock(unit, unit * 10, 10), 0, 0, "node"))
                    std::abort();
            }
            writer->addDuplicate({UnitId(1), RankId(0), 0, 1, 5, true, std::nullopt, ""});
            writer->addEvent({1, 0, "E-RUN-001", "text", RankId(0), std::nullopt});
            writer->addPoint({});
            if (!writer->commit() || !file->setMeta(store::key::runId, "id") ||
                !file->setDocument(store::doc::config, "schema = 1") || !file->setRank({}) ||
                !file->setSum({}) ||
                !file->setPredictions(std::vector<store::PredictionRecord>(60)) || !file->seal())
                std::abort();
        }
        std::ifstream in(path, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(in), {});
    }();
    return bytes;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    if (size < 1)
        return 0;
    std::string bytes;
    if (data[0] % 8 == 0) {
        bytes.assign(static_cast<const char*>(static_cast<const void*>(data + 1)), size - 1);
    } else {
        bytes = soundFile();
        for (std::size_t at = 1; at + 4 <= size; at += 4) {
            const std::size_t place =
                (std::size_t{data[at]} << 16U) | (std::size_t{data[at + 1]} << 8U) | data[at + 2];
            bytes[place % bytes.size()] = static_cast<char>(data[at + 3]);
        }
    }
    const auto path = folder() / "input.muster";
    for (const char* suffix : {"-wal", "-shm", "-journal"})
        std::filesystem::remove(path.string() + suffix);
    std::ofstream(path, std::ios::binary).write(bytes.data(), std::ssize(bytes));
    auto file = store::RunFile::open(path, store::Access::ReadOnly);
    if (!file)
        return 0;
    static_cast<void>(file->checkAll());
    // Each reader by itself too: checkAll() stops at the first damage.
    static_cast<void>(file->doneUnits());
    static_cast<void>(file->forEachItem([](auto, const auto&) { return true; }));
    static_cast<void>(file->forEachUnit([](auto, auto&&) { return true; }));
    static_cast<void>(file->forEachOutput([](const auto&, auto&&) { return true; }));
    static_cast<void>(file->forEachPrediction([](auto, auto&&) { return true; }));
    static_cast<void>(file->context(0));
    static_cast<void>(file->sample(SampleIndex(1)));
    static_cast<void>(file->output(UnitId(1)));
    static_cast<void>(file->events());
    static_cast<void>(file->series());
    static_cast<void>(file->sums());
    static_cast<void>(file->ranks());
    static_cast<void>(file->duplicates());
    return 0;
}
