// SPDX-License-Identifier: Apache-2.0
// Any bytes as a configuration file: problems, never a crash; what is accepted is written and read
// back the same.
#include "config/digest.h"
#include "config/read.h"
#include "config/write.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    using namespace muster::config;
    const std::string text(static_cast<const char*>(static_cast<const void*>(data)), size);
    const Reading reading = readToml({"fuzz", text, {}});
    for (const Problem& problem : reading.problems) {
        if (problem.text().empty())
            std::abort();
    }
    const bool hasResult = reading.result().has_value();
    if (hasResult != reading.problems.empty())
        std::abort();
    if (!hasResult)
        return 0;
    const Reading back = readToml({"back", toToml(reading.resolved), {}});
    if (!back.problems.empty() || !(back.resolved.config == reading.resolved.config) ||
        evaluationDigest(back.resolved.config) != evaluationDigest(reading.resolved.config))
        std::abort();
    return 0;
}
