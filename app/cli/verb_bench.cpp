// SPDX-License-Identifier: Apache-2.0
#include "verbs.h"

namespace muster::cli {

ExitCode benchVerb(const Context& context)
{
    if (!context.controller.bench)
        return context.console.error(missingPart("bench"));
    const BenchOptions& options = context.invocation.bench;
    auto resolved = resolvedConfig(context.invocation.global, "", options.flags);
    if (!resolved)
        return context.console.error(resolved.error());
    auto answer = context.controller.bench(options, *resolved);
    return answer ? context.console.answer(*answer) : context.console.error(answer.error());
}

} // namespace muster::cli
