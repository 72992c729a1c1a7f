// SPDX-License-Identifier: Apache-2.0
#include "foreign_input.h"
#include "verbs.h"

#include <fmt/format.h>

#include <filesystem>

namespace muster::cli {

namespace {

/// A run folder, a run file or a run's id; everything else is a result file of another program.
bool isRun(const VerifyOptions& options)
{
    std::error_code ignored;
    const std::filesystem::path target = options.target;
    if (target.filename() == "run.muster" ||
        std::filesystem::exists(target / "run.muster", ignored))
        return true;
    return options.data.empty() && !std::filesystem::exists(target, ignored) &&
           options.target.find_first_of("*?") == std::string::npos;
}

} // namespace

ExitCode verifyVerb(const Context& context)
{
    const VerifyOptions& options = context.invocation.verify;
    if (isRun(options)) {
        if (!context.controller.verify)
            return context.console.error(missingPart("verify"));
        VerifyOptions run = options;
        run.data.clear();
        auto answer = context.controller.verify(run);
        return answer ? context.console.answer(*answer) : context.console.error(answer.error());
    }
    auto checked = analyseForeign(options.foreign);
    if (!checked)
        return context.console.error(checked.error());
    const Answer answer = answerOf(*checked, foreign::Detail::Short);
    if (checked->analysis.repairedRowOf != checked->analysis.rowOf) {
        std::string data;
        for (const auto& path : options.foreign.data)
            data += " --data " + shellWord(path.string());
        context.console.note(fmt::format("muster align {}{} shows the whole analysis; --repair OUT "
                                         "writes the order found",
                                         shellWord(options.target), data));
    }
    return context.console.answer(answer);
}

} // namespace muster::cli
