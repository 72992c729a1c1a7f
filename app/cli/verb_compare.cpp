// SPDX-License-Identifier: Apache-2.0
#include "verbs.h"

namespace muster::cli {

ExitCode compareVerb(const Context& context)
{
    const Invocation& invocation = context.invocation;
    const ControllerApi& controller = context.controller;
    if (invocation.verb == "explain-ppl") {
        if (!controller.explainPpl)
            return context.console.error(missingPart(invocation.verb));
        auto answer = controller.explainPpl(invocation.explainPpl);
        return answer ? context.console.answer(*answer) : context.console.error(answer.error());
    }
    if (invocation.verb == "report") {
        if (!controller.report)
            return context.console.error(missingPart(invocation.verb));
        auto answer = controller.report(invocation.report);
        return answer ? context.console.answer(*answer) : context.console.error(answer.error());
    }
    if (!controller.compare)
        return context.console.error(missingPart(invocation.verb));
    auto answer = controller.compare(invocation.compare);
    return answer ? context.console.answer(*answer) : context.console.error(answer.error());
}

} // namespace muster::cli
