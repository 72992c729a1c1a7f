// SPDX-License-Identifier: Apache-2.0
#include "verbs.h"

namespace muster::cli {

ExitCode stopVerb(const Context& context)
{
    if (!context.controller.stop)
        return context.console.error(missingPart("stop"));
    auto answer = context.controller.stop(context.invocation.stop);
    return answer ? context.console.answer(*answer) : context.console.error(answer.error());
}

} // namespace muster::cli
