// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"
#include "config/digest.h"
#include "config/settings.h"
#include "config/write.h"
#include "run_end.h"
#include "verbs.h"

#include <fmt/format.h>

#include <filesystem>

namespace muster::cli {

namespace {

nlohmann::ordered_json toJson(const config::Value& value)
{
    if (const auto* whole = std::get_if<std::uint64_t>(&value))
        return *whole;
    if (const auto* real = std::get_if<double>(&value))
        return jsonNumber(*real);
    if (const auto* text = std::get_if<std::string>(&value))
        return *text;
    if (const auto* list = std::get_if<std::vector<std::string>>(&value))
        return *list;
    return nullptr;
}

/// `config show`: TOML, or a document from key to value (and origin).
Answer shown(const config::Resolved& resolved, bool hasOrigins)
{
    Answer answer;
    nlohmann::ordered_json values = nlohmann::ordered_json::object();
    nlohmann::ordered_json origins = nlohmann::ordered_json::object();
    for (const config::Setting& setting : config::settings()) {
        const std::string key(setting.key);
        values[key] = toJson(setting.get(resolved.config));
        origins[key] = resolved.originOf(key).text();
    }
    for (const auto& [key, origin] : resolved.origins)
        origins[key] = origin.text();
    answer.json["config"] = std::move(values);
    if (hasOrigins)
        answer.json["origin"] = std::move(origins);
    answer.json["evaluation_digest"] = config::evaluationDigest(resolved.config).hex();
    answer.text =
        config::toToml(resolved, hasOrigins ? config::Comments::Origins : config::Comments::None);
    return answer;
}

ExitCode validate(const Context& context)
{
    const ConfigOptions& options = context.invocation.config;
    auto resolved = resolvedConfig(context.invocation.global, options.file, options.flags);
    if (!resolved)
        return context.console.error(resolved.error());
    Answer answer;
    const auto missing = config::missingForRun(resolved->config);
    answer.json["valid"] = true;
    answer.json["complete"] = missing.empty();
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    answer.text = "the configuration is valid\n";
    for (const config::Problem& problem : missing) {
        answer.text += fmt::format("for a run it still needs: {}\n", problem.error.message);
        list.push_back(problem.error.message);
    }
    answer.json["missing"] = std::move(list);
    return context.console.answer(answer);
}

ExitCode init(const Context& context)
{
    const std::string& file = context.invocation.config.file;
    if (file.empty() || file == "-") {
        context.console.result(config::templateToml());
        return ExitCode::Done;
    }
    std::error_code ignored;
    if (std::filesystem::exists(file, ignored) && !context.invocation.global.isYes)
        return context.console.error({Error::Kind::Invalid, "E-CLI-007",
                                      file + " exists and was left alone; --yes replaces it"});
    if (auto written = writeFileAtomically(file, config::templateToml()); !written)
        return context.console.error(written.error());
    context.console.note(
        fmt::format("{} is written; put in model and data, then `muster run {}`", file, file));
    return ExitCode::Done;
}

} // namespace

ExitCode configVerb(const Context& context)
{
    const ConfigOptions& options = context.invocation.config;
    if (options.action == "schema") {
        context.console.result(config::jsonSchema());
        return ExitCode::Done;
    }
    if (options.action == "validate")
        return validate(context);
    if (options.action == "init")
        return init(context);
    auto resolved = resolvedConfig(context.invocation.global, options.file, options.flags);
    if (!resolved)
        return context.console.error(resolved.error());
    return context.console.answer(shown(*resolved, options.hasOrigins));
}

} // namespace muster::cli
