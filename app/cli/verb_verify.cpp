// SPDX-License-Identifier: Apache-2.0
#include "verbs.h"

namespace muster::cli {

ExitCode verifyVerb(const Context& context)
{
    if (!context.controller.verify)
        return context.console.error(missingPart("verify"));
    auto answer = context.controller.verify(context.invocation.verify);
    return answer ? context.console.answer(*answer) : context.console.error(answer.error());
}

} // namespace muster::cli
