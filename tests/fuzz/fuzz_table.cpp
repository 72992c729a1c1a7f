// SPDX-License-Identifier: Apache-2.0
#include "data/table_reader.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

/// Any bytes give a table or an error with a code; a table agrees with itself. The first byte
/// chooses the settings.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size)
{
    using namespace muster::data;
    if (size == 0)
        return 0;
    TableOptions options;
    const std::uint8_t settings = bytes[0];
    options.format = static_cast<TableFormat>(settings & 3U);
    options.header = static_cast<HeaderRule>((settings >> 2U) % 3U);
    options.quotes = static_cast<QuoteRule>((settings >> 4U) % 3U);
    if ((settings & 0x40U) != 0) {
        options.textField = "1";
        options.labelField = "2";
    }
    if ((settings & 0x80U) != 0)
        options.labelSeparator = ";";
    const NamedText text{"fuzz",
                         {static_cast<const char*>(static_cast<const void*>(bytes + 1)), size - 1}};
    const auto read = readTableTexts(std::span(&text, 1), options);
    if (!read) {
        if (read.error().code.empty())
            std::abort();
        return 0;
    }
    for (const TableRow& row : read->rows)
        if (row.hash != rowHash(row) || (!read->isMultiLabel && row.labels.size() != 1))
            std::abort();
    return 0;
}
