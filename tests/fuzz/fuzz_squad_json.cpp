// SPDX-License-Identifier: Apache-2.0
#include "data/squad_reader.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

/// Any bytes give a data set or an error with a code; a data set agrees with itself.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size)
{
    const muster::data::NamedText text{
        "fuzz", {static_cast<const char*>(static_cast<const void*>(bytes)), size}};
    const auto read = muster::data::readSquadTexts(std::span(&text, 1));
    if (!read) {
        if (read.error().code.empty())
            std::abort();
        return 0;
    }
    for (const auto& sample : read->samples) {
        if (sample.context >= read->contexts.size() ||
            sample.hash != muster::data::sampleHash(sample, read->contexts[sample.context]))
            std::abort();
    }
    return 0;
}
