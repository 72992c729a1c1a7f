// SPDX-License-Identifier: Apache-2.0
#include "foreign_input.h"

#include "align/verdict.h"
#include "metrics/normalize.h"

#include <fmt/format.h>

namespace muster::cli {

Result<ForeignInput> readForeign(const ForeignOptions& options)
{
    ForeignInput made;
    auto normalizer = metrics::normalizerByName(options.normalizer);
    if (!normalizer)
        return fail(normalizer.error());
    made.options.normalizer = *normalizer;
    made.options.shift = options.shift;
    made.options.worldSize = options.world;
    foreign::FieldNames fields;
    fields.index = options.indexField;
    fields.id = options.idField;
    fields.prediction = options.predictionField;
    fields.label = options.labelField;
    auto file = foreign::readResultFile(options.target, fields);
    if (!file)
        return fail(file.error());
    made.file = std::move(*file);
    auto references = options.data.empty()
                          ? foreign::referencesOf(made.file)
                          : foreign::readReferences(
                                options.data, {options.dataTextField, options.dataLabelField});
    if (!references)
        return fail(references.error());
    made.references = std::move(*references);
    return made;
}

Result<ForeignAnalysis> analyseForeign(const ForeignOptions& options)
{
    auto input = readForeign(options);
    if (!input)
        return fail(input.error());
    auto analysis = foreign::analyse(input->file, input->references, input->options);
    if (!analysis)
        return fail(analysis.error());
    return ForeignAnalysis{std::move(*input), std::move(*analysis)};
}

Answer answerOf(const ForeignAnalysis& checked, foreign::Detail detail)
{
    const auto& [input, analysis] = checked;
    Answer answer;
    answer.exitCode = align::exitCode(analysis.verdict);
    answer.json = nlohmann::ordered_json::parse(
        foreign::analysisJson(analysis, input.file, input.references));
    answer.json["exit"] = answer.exitCode;
    answer.text = foreign::analysisText(analysis, input.file, input.references, detail) +
                  foreign::verdictLine(analysis) + "\n";
    return answer;
}

std::string shellWord(const std::string& text)
{
    if (text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_-./=+:,@%") == std::string::npos &&
        !text.empty())
        return text;
    std::string quoted = "'";
    for (const char c : text)
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

} // namespace muster::cli
