// SPDX-License-Identifier: Apache-2.0
#include "foreign/explain.h"
#include "foreign_input.h"
#include "verbs.h"

#include <fmt/format.h>

namespace muster::cli {

ExitCode explainVerb(const Context& context)
{
    const ExplainOptions& options = context.invocation.explain;
    auto input = readForeign(options.foreign);
    if (!input)
        return context.console.error(input.error());
    auto explained = foreign::explain(input->file, input->references, input->options,
                                      {options.metric, options.name});
    if (!explained)
        return context.console.error(explained.error());
    Answer answer;
    answer.json = nlohmann::ordered_json::parse(foreign::explanationJson(*explained));
    answer.text = foreign::explanationText(*explained);
    return context.console.answer(answer);
}

} // namespace muster::cli
