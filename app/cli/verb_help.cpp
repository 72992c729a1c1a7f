// SPDX-License-Identifier: Apache-2.0
#include "help.h"
#include "verbs.h"

namespace muster::cli {

ExitCode helpVerb(const Context& context)
{
    const HelpOptions& options = context.invocation.help;
    const CommandInfo info = context.tree.info();
    Result<std::string> text = context.invocation.verb == "completion"
                                   ? completionScript(info, options.shell)
                               : options.isMan ? Result<std::string>(manPage(info))
                                               : topicText(info, options.topic);
    if (!text)
        return context.console.error(text.error());
    context.console.result(*text);
    return ExitCode::Done;
}

} // namespace muster::cli
