// SPDX-License-Identifier: Apache-2.0
// Result files of other programs: the first byte chooses the name, the rest is the file.
#include "foreign/analysis.h"
#include "foreign/result_file.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static constexpr std::array<std::string_view, 7> names{"p.jsonl", "p.json", "p.csv", "p.tsv",
                                                           "p.npy",   "p.pt",   "p"};
    if (size == 0)
        return 0;
    const std::string_view bytes(static_cast<const char*>(static_cast<const void*>(data)) + 1,
                                 size - 1);
    const auto file = muster::foreign::readResultText(names[data[0] % names.size()], bytes);
    if (!file || file->rows.size() > 200)
        return 0;
    muster::foreign::References references;
    references.kind = muster::foreign::References::Kind::Labels;
    references.answers.assign(40, {"1"});
    references.ids.assign(40, "a");
    const auto found = muster::foreign::analyse(*file, references);
    if (found)
        static_cast<void>(muster::foreign::analysisJson(*found, *file, references));
    return 0;
}
