// SPDX-License-Identifier: Apache-2.0
#include "run_end.h"
#include "verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace muster::cli {

ExitCode scaleVerb(const Context& context)
{
    const Invocation& invocation = context.invocation;
    const ControllerApi& controller = context.controller;
    if (!controller.run || !controller.compare)
        return context.console.error(missingPart("scale"));
    auto resolved =
        resolvedConfig(invocation.global, invocation.run.configFile, invocation.run.flags);
    if (!resolved)
        return context.console.error(resolved.error());
    if (const auto missing = config::missingForRun(resolved->config); !missing.empty()) {
        const config::Reading reading{*resolved, missing};
        return context.console.error(reading.result().error());
    }
    std::vector<std::uint32_t> counts = invocation.scale.ranks;
    std::sort(counts.begin(), counts.end());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    CompareOptions comparison;
    comparison.preset = "scaling";
    comparison.samples = 0;
    RunListener listener;
    listener.progressed = [](const ProgressView&) {};
    listener.said = [&context](const std::string& level, const std::string& code,
                               const std::string& text) {
        if (level == "error" || level == "warning")
            context.console.note(code.empty() ? text : code + ": " + text);
    };
    for (const std::uint32_t ranks : counts) {
        context.console.note(fmt::format("{} ranks …", ranks));
        config::Resolved one = *resolved;
        one.config.cluster.ranks = ranks;
        const RunEnd end = controller.run(one, listener);
        const ExitCode code = exitCodeOf(end);
        // A gate that is not met says nothing about speed.
        if (code != ExitCode::Done && code != ExitCode::Gate) {
            if (end.error)
                return context.console.error(*end.error);
            context.console.note(lastLine(end));
            return code;
        }
        context.console.note(lastLine(end));
        comparison.runs.push_back(end.folder.string());
    }
    comparison.svg =
        invocation.scale.svg ? *invocation.scale.svg : resolved->config.output / "scaling.svg";
    if (comparison.runs.size() < 2) {
        context.console.note("one rank count alone has nothing to be compared with");
        return ExitCode::Done;
    }
    auto answer = controller.compare(comparison);
    return answer ? context.console.answer(*answer) : context.console.error(answer.error());
}

} // namespace muster::cli
