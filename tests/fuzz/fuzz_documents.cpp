// SPDX-License-Identifier: Apache-2.0
#include "data/text_reader.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

/// Any bytes give documents or an error with a code. The first byte chooses the settings.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size)
{
    using namespace muster;
    using namespace muster::data;
    if (size == 0)
        return 0;
    TextOptions options;
    const std::uint8_t settings = bytes[0];
    options.documents = static_cast<DocumentRule>((settings & 7U) % 6U);
    options.separator = "<e>";
    if ((settings & 0x08U) != 0)
        options.idField = "id";
    options.lineEnds = static_cast<LineEnds>((settings >> 4U) & 1U);
    options.ends = static_cast<DocumentEnds>((settings >> 5U) & 1U);
    options.unfinished = static_cast<UnfinishedDocument>((settings >> 6U) & 1U);
    const NamedText text{"fuzz",
                         {static_cast<const char*>(static_cast<const void*>(bytes + 1)), size - 1}};
    std::uint64_t seen = 0;
    const auto read =
        readDocumentTexts(std::span(&text, 1), options, [&](const Document& document) -> Status {
            if (document.index.value != seen++ || document.line == 0 ||
                document.hash != documentHash(document.id, document.text))
                std::abort();
            return {};
        });
    if (read ? read->documents != seen : read.error().code.empty())
        std::abort();
    return 0;
}
