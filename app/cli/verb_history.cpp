// SPDX-License-Identifier: Apache-2.0
#include "verbs.h"

namespace muster::cli {

ExitCode historyVerb(const Context& context)
{
    if (!context.controller.history)
        return context.console.error(missingPart("history"));
    auto answer = context.controller.history(context.invocation.history);
    return answer ? context.console.answer(*answer) : context.console.error(answer.error());
}

} // namespace muster::cli
