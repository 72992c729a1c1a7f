// SPDX-License-Identifier: Apache-2.0
#include "foreign/write.h"
#include "foreign_input.h"
#include "verbs.h"

#include <fmt/format.h>

#include <filesystem>

namespace muster::cli {

ExitCode alignVerb(const Context& context)
{
    const AlignOptions& options = context.invocation.align;
    auto checked = analyseForeign(options.foreign);
    if (!checked)
        return context.console.error(checked.error());
    Answer answer = answerOf(*checked, foreign::Detail::Whole);
    if (options.output) {
        std::error_code ignored;
        if (std::filesystem::exists(*options.output, ignored) && !context.console.options().isYes)
            return context.console.error(
                {Error::Kind::Usage, "E-CLI-007",
                 fmt::format("{} exists; --yes replaces it", options.output->string())});
        auto repaired =
            foreign::writeRepaired(*options.output, checked->input.file, checked->input.references,
                                   checked->analysis, checked->input.options);
        if (!repaired)
            return context.console.error(repaired.error());
        answer.json["repaired"] = {{"file", options.output->string()},
                                   {"rows", repaired->rows},
                                   {"missing", repaired->missing},
                                   {"verdict", std::string(align::word(repaired->verdict))}};
        context.console.note(fmt::format(
            "{}: {} rows in data set order, {} samples without a row; its verdict is {}{}",
            options.output->string(), repaired->rows, repaired->missing,
            align::word(repaired->verdict),
            repaired->verdict == align::Verdict::Unverified
                ? ": the order is the likeliest one, and no hashes prove it"
                : ""));
    }
    return context.console.answer(answer);
}

} // namespace muster::cli
