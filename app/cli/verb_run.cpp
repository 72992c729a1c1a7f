// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"
#include "progress.h"
#include "run_end.h"
#include "verbs.h"

#include <fmt/format.h>

#include <cstdio>

#include <unistd.h>

namespace muster::cli {

namespace {

/// Shows the end of a run: findings and error on standard error, the result on standard output.
ExitCode report(const Console& console, const RunEnd& end)
{
    const GlobalOptions& options = console.options();
    for (const std::string& finding : end.findings)
        std::fprintf(stderr, "%s\n", finding.c_str());
    for (const GateOutcome& gate : end.gates) {
        if (!gate.isMet)
            std::fprintf(stderr, "gate not met: %s\n", gate.text.c_str());
    }
    if (end.error)
        std::fprintf(stderr, "%s\n", end.error->text().c_str());
    for (const std::string& step : end.nextSteps)
        console.note(step);
    const ExitCode code = exitCodeOf(end);
    if (options.isJson) {
        console.result(jsonText(toJson(end), 1));
    } else if (options.isNdjson) {
        nlohmann::ordered_json event{{"event", "finished"}};
        event.update(toJson(end));
        console.result(jsonText(event));
    } else if (!end.verdict.empty()) {
        console.result(lastLine(end));
    }
    return code;
}

template <typename Start>
ExitCode follow(const Context& context, Start start)
{
    const GlobalOptions& options = context.invocation.global;
    const Terminal terminal = terminalOf(STDERR_FILENO, options);
    const ProgressStyle style = progressStyle(options, terminal);
    std::FILE* stream = style == ProgressStyle::Events ? stdout : stderr;
    ProgressDisplay display(style, terminal, [stream](std::string_view text) {
        std::fwrite(text.data(), 1, text.size(), stream);
        std::fflush(stream);
    });
    RunListener listener;
    listener.progressed = [&display](const ProgressView& view) {
        display.update(view, monotonicNs());
    };
    listener.said = [&](const std::string& level, const std::string& code,
                        const std::string& text) {
        if (style == ProgressStyle::Events) {
            display.say(
                jsonText({{"event", "message"}, {"level", level}, {"code", code}, {"text", text}}));
            return;
        }
        const bool isWorthSaying = level == "error" || level == "warning" ||
                                   (level == "notice" && !options.isQuiet) ||
                                   options.verbosity > 0 || options.isDebug;
        if (isWorthSaying)
            display.say(code.empty() ? text : code + ": " + text);
    };
    const RunEnd end = start(listener);
    display.clear();
    return report(context.console, end);
}

} // namespace

ExitCode runVerb(const Context& context)
{
    const Invocation& invocation = context.invocation;
    const ControllerApi& controller = context.controller;
    const std::string& verb = invocation.verb;

    if (verb == "resume") {
        if (!controller.resume)
            return context.console.error(missingPart(verb));
        auto settings = resolvedConfig(invocation.global, "", invocation.resume.flags);
        if (!settings)
            return context.console.error(settings.error());
        return follow(context, [&](const RunListener& listener) {
            return controller.resume(invocation.resume, *settings, listener);
        });
    }
    if (verb == "demo") {
        if (!controller.run || !controller.demo)
            return context.console.error(missingPart(verb));
        auto resolved = controller.demo(invocation.demo);
        if (!resolved)
            return context.console.error(resolved.error());
        return follow(context, [&](const RunListener& listener) {
            return controller.run(*resolved, listener);
        });
    }
    auto resolved =
        resolvedConfig(invocation.global, invocation.run.configFile, invocation.run.flags);
    if (!resolved)
        return context.console.error(resolved.error());
    if (const auto missing = config::missingForRun(resolved->config); !missing.empty()) {
        const config::Reading reading{*resolved, missing};
        return context.console.error(reading.result().error());
    }
    if (verb == "plan" || invocation.run.isDryRun) {
        if (!controller.plan)
            return context.console.error(missingPart("plan"));
        auto answer = controller.plan(*resolved);
        return answer ? context.console.answer(*answer) : context.console.error(answer.error());
    }
    if (!controller.run)
        return context.console.error(missingPart(verb));
    return follow(context,
                  [&](const RunListener& listener) { return controller.run(*resolved, listener); });
}

} // namespace muster::cli
