// SPDX-License-Identifier: Apache-2.0
#include "run_end.h"
#include "verbs.h"

#include <cstdio>

namespace muster::cli {

namespace {

void put(std::FILE* stream, std::string_view text)
{
    std::fwrite(text.data(), 1, text.size(), stream);
    if (!text.empty() && !text.ends_with('\n'))
        std::fputc('\n', stream);
    std::fflush(stream);
}

} // namespace

void Console::result(std::string_view text) const
{
    put(stdout, text);
}

void Console::note(std::string_view text) const
{
    if (!m_options.isQuiet)
        put(stderr, text);
}

ExitCode Console::error(const Error& error) const
{
    const ExitCode code = exitCodeOf(error.kind);
    put(stderr, error.text());
    if (m_options.isJson || m_options.isNdjson) {
        nlohmann::ordered_json document;
        if (m_options.isNdjson)
            document["event"] = "error";
        document["error"] = toJson(error);
        document["exit"] = static_cast<int>(code);
        put(stdout, jsonText(document));
    }
    return code;
}

ExitCode Console::answer(const Answer& answer) const
{
    if (m_options.isJson || m_options.isNdjson)
        put(stdout, jsonText(answer.json, m_options.isNdjson ? -1 : 1));
    else
        put(stdout, answer.text);
    return static_cast<ExitCode>(answer.exitCode);
}

Error missingPart(std::string_view command)
{
    return {Error::Kind::Invalid, "E-CLI-010",
            "this build has no part for `muster " + std::string(command) + "`"};
}

} // namespace muster::cli
