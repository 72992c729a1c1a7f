// SPDX-License-Identifier: Apache-2.0
#include "verbs.h"

namespace muster::cli {

ExitCode showVerb(const Context& context)
{
    if (!context.controller.show)
        return context.console.error(missingPart("show"));
    auto answer = context.controller.show(context.invocation.show);
    return answer ? context.console.answer(*answer) : context.console.error(answer.error());
}

} // namespace muster::cli
