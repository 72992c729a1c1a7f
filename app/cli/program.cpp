// SPDX-License-Identifier: Apache-2.0
#include "help.h"
#include "verbs.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>

namespace muster::cli {

namespace {

ExitCode dispatch(const Context& context)
{
    const std::string& verb = context.invocation.verb;
    if (verb.empty()) {
        context.console.result(helpText(context.tree.info(), ""));
        return ExitCode::Usage;
    }
    if (verb == "run" || verb == "plan" || verb == "resume" || verb == "demo")
        return runVerb(context);
    if (verb == "stop")
        return stopVerb(context);
    if (verb == "verify")
        return verifyVerb(context);
    if (verb == "align")
        return alignVerb(context);
    if (verb == "import")
        return importVerb(context);
    if (verb == "explain")
        return explainVerb(context);
    if (verb == "score")
        return scoreVerb(context);
    if (verb == "show")
        return showVerb(context);
    if (verb == "export")
        return exportVerb(context);
    if (verb == "compare" || verb == "explain-ppl" || verb == "report")
        return compareVerb(context);
    if (verb == "scale")
        return scaleVerb(context);
    if (verb == "history")
        return historyVerb(context);
    if (verb == "doctor")
        return doctorVerb(context);
    if (verb == "config")
        return configVerb(context);
    if (verb == "bench")
        return benchVerb(context);
    if (verb == "version")
        return versionVerb(context);
    return helpVerb(context);
}

/// Global options of a line that could not be read, so that its error still comes as asked.
GlobalOptions guessedOptions(const std::vector<std::string>& arguments)
{
    GlobalOptions options;
    for (const std::string& argument : arguments) {
        options.isJson = options.isJson || argument == "--json";
        options.isNdjson = options.isNdjson || argument == "--ndjson";
    }
    options.isNdjson = options.isNdjson && !options.isJson;
    return options;
}

} // namespace

int runProgram(const std::vector<std::string>& arguments)
{
    try {
        CommandTree tree;
        auto parsed = tree.parse(arguments);
        if (!parsed) {
            const GlobalOptions options = guessedOptions(arguments);
            return static_cast<int>(Console(options).error(parsed.error()));
        }
        if (const auto* printed = std::get_if<Printed>(&*parsed)) {
            std::fputs(printed->text.c_str(), stdout);
            return 0;
        }
        const Invocation& invocation = std::get<Invocation>(*parsed);
        const Console console(invocation.global);
        const ControllerApi controller = controllerApi();
        return static_cast<int>(dispatch({invocation, tree, console, controller}));
    } catch (const std::exception& error) {
        fmt::print(stderr,
                   "E-CLI-099: an internal error: {}. Please report it with the command "
                   "line.\n",
                   error.what());
        return static_cast<int>(ExitCode::Internal);
    }
}

} // namespace muster::cli
