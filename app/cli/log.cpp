// SPDX-License-Identifier: Apache-2.0
#include "log.h"

#include "base/clock.h"

#include <QLoggingCategory>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <mutex>

namespace muster::cli {

namespace {

struct Log {
    std::mutex mutex;
    std::FILE* file = nullptr;
    int verbosity = 0;
};

/// Qt's handler is a plain function, so what it needs cannot be passed in.
Log& theLog()
{
    static Log log;
    return log;
}

int rankOf(QtMsgType type)
{
    switch (type) {
    case QtDebugMsg:
        return 2;
    case QtInfoMsg:
        return 1;
    default:
        return 0;
    }
}

void handle(QtMsgType type, const QMessageLogContext& context, const QString& message)
{
    Log& log = theLog();
    const std::string text = message.toStdString();
    const char* category = context.category == nullptr ? "" : context.category;
    const std::lock_guard lock(log.mutex);
    if (rankOf(type) <= log.verbosity)
        fmt::print(stderr, "{}\n", text);
    if (log.file != nullptr) {
        fmt::print(log.file, "{} {} {}\n", utcTime(wallClockNs()), category, text);
        std::fflush(log.file);
    }
}

} // namespace

void installLog(const std::vector<std::string>& arguments)
{
    Log& log = theLog();
    std::string path;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& word = arguments[i];
        constexpr std::string_view option = "--log-file=";
        if (word == "--log-file" && i + 1 < arguments.size())
            path = arguments[i + 1];
        else if (word.starts_with(option))
            path = word.substr(option.size());
        else if (word == "--debug")
            log.verbosity = 2;
        else if (word == "-v" || word == "--verbose")
            ++log.verbosity;
        else if (word == "-vv")
            log.verbosity = 2;
    }
    if (!path.empty()) {
        log.file = std::fopen(path.c_str(), "a");
        if (log.file == nullptr)
            fmt::print(stderr, "E-CLI-006: the log file {} cannot be opened; going on without\n",
                       path);
    }
    if (log.verbosity >= 2 || log.file != nullptr)
        QLoggingCategory::setFilterRules(QStringLiteral("muster.*.debug=true"));
    qInstallMessageHandler(handle);
}

} // namespace muster::cli
