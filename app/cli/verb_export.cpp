// SPDX-License-Identifier: Apache-2.0
#include "verbs.h"

namespace muster::cli {

ExitCode exportVerb(const Context& context)
{
    if (!context.controller.exported)
        return context.console.error(missingPart("export"));
    auto answer = context.controller.exported(context.invocation.exported);
    return answer ? context.console.answer(*answer) : context.console.error(answer.error());
}

} // namespace muster::cli
