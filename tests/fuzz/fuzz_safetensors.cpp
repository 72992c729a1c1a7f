// SPDX-License-Identifier: Apache-2.0
#include "model/safetensors.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

using muster::model::parseSafetensors;

namespace {

/// What parseSafetensors() promises about a file that it accepts.
void check(std::span<const std::byte> file)
{
    const auto header = parseSafetensors(file, "fuzz");
    if (!header)
        return;
    std::uint64_t at = 0;
    for (const auto& tensor : header->tensors) {
        if (tensor.begin != at || tensor.end < tensor.begin)
            std::abort();
        at = tensor.end;
    }
    if (header->dataStart + at != file.size())
        std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    check(std::as_bytes(std::span(data, size)));
    // The same bytes as a header of the right length, so that the fuzzer need not find that number.
    const std::uint64_t length = size;
    std::string file(sizeof(length) + size + 64, 'x');
    std::memcpy(file.data(), &length, sizeof(length));
    if (size != 0)
        std::memcpy(file.data() + sizeof(length), data, size);
    check(std::as_bytes(std::span(file)));
    check(std::as_bytes(std::span(file).first(sizeof(length) + size)));
    return 0;
}
