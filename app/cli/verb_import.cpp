// SPDX-License-Identifier: Apache-2.0
#include "foreign/write.h"
#include "foreign_input.h"
#include "verbs.h"

#include <fmt/format.h>

#include <filesystem>

namespace muster::cli {

ExitCode importVerb(const Context& context)
{
    const AlignOptions& options = context.invocation.align;
    const std::filesystem::path folder = options.output.value_or("");
    std::error_code ignored;
    if (std::filesystem::exists(folder / "samples.jsonl", ignored) &&
        !context.console.options().isYes)
        return context.console.error(
            {Error::Kind::Usage, "E-CLI-007",
             fmt::format("{} holds results; --yes replaces them", folder.string())});
    auto checked = analyseForeign(options.foreign);
    if (!checked)
        return context.console.error(checked.error());
    auto stored = foreign::writeImport(folder, checked->input.file, checked->input.references,
                                       checked->analysis, checked->input.options, MUSTER_VERSION);
    if (!stored)
        return context.console.error(stored.error());
    Answer answer = answerOf(*checked, foreign::Detail::Short);
    answer.json["folder"] = folder.string();
    answer.json["stored"] = *stored;
    for (const std::string& line : *stored)
        context.console.note(line);
    return context.console.answer(answer);
}

} // namespace muster::cli
