// SPDX-License-Identifier: Apache-2.0
#include "help.h"
#include "verbs.h"

#include <CLI/Version.hpp>
#include <QtGlobal>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <simdjson.h>
#include <sqlite3.h>
#include <unicode/uvernum.h>

#include <utility>
#include <vector>

namespace muster::cli {

ExitCode versionVerb(const Context& context)
{
    const std::vector<std::pair<std::string, std::string>> parts{
        {"muster", MUSTER_VERSION},
        {"build", MUSTER_BUILD_TYPE},
        {"compiler", MUSTER_COMPILER},
        {"qt", qVersion()},
        {"sqlite", sqlite3_libversion()},
        {"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)},
        {"icu", U_ICU_VERSION},
        {"simdjson", fmt::format("{}.{}.{}", static_cast<int>(simdjson::SIMDJSON_VERSION_MAJOR),
                                 static_cast<int>(simdjson::SIMDJSON_VERSION_MINOR),
                                 static_cast<int>(simdjson::SIMDJSON_VERSION_REVISION))},
        {"nlohmann-json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR,
                                      NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)},
        {"fmt",
         fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
        {"cli11", CLI11_VERSION},
    };
    Answer answer;
    for (const auto& [name, version] : parts) {
        answer.json[name] = version;
        answer.text += fmt::format("{:<14} {}\n", name, version);
    }
    return context.console.answer(answer);
}

} // namespace muster::cli
