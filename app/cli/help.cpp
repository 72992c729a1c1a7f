// SPDX-License-Identifier: Apache-2.0
#include "help.h"

#include "config/settings.h"
#include "config/suggest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::cli {

namespace {

struct Topic {
    const char* name;
    const char* title;
    const char* text;
};

constexpr std::array<Topic, 6> topics{{
    {"exit-codes", "Exit codes",
     "  0    complete, ALIGNED, gates passed\n"
     "  1    another failure\n"
     "  2    the command line is wrong\n"
     "  3    invalid configuration, or a check before the start failed\n"
     "  4    the ranks could not be started or refused at the hello\n"
     "  5    rows are missing; results are saved and `muster resume` can go on\n"
     "  6    MISALIGNED: what was gathered contradicts the plan\n"
     "  7    a gate was not met\n"
     "  8    runs cannot be compared\n"
     "  9    an internal error\n"
     "  124  a time limit ran out\n"
     "  130  interrupted (Ctrl+C)\n"
     "  143  terminated\n"},
    {"configuration", "Where settings come from",
     "Strongest first: flags, MUSTER_* variables, the file given, muster.toml in the working\n"
     "folder, $XDG_CONFIG_HOME/muster/config.toml, muster/config.toml below $XDG_CONFIG_DIRS,\n"
     "defaults. `muster config show --origin` says where each value came from. Relative paths in\n"
     "a file are relative to its folder. MUSTER_QA_DOC_STRIDE sets qa.doc_stride; where the last\n"
     "part is unique, MUSTER_RANKS is enough for cluster.ranks.\n"},
    {"gates", "Gates",
     "A gate is a condition on a metric: --gate 'em >= 60', or in a file\n"
     "  [gates]\n"
     "  em = \">= 60\"\n"
     "Metrics are in percent, as in every report. A run that breaks a gate ends with exit 7.\n"},
    {"output", "What is written where",
     "Standard output carries the result only; progress, log lines and questions go to standard\n"
     "error. --json prints one document, --ndjson one event per line. On a terminal a bar shows\n"
     "the progress; elsewhere a line is written every 30 seconds. NO_COLOR, TERM=dumb and\n"
     "--plain switch colours off. The files of a run stand in OUTPUT/RUN-ID.\n"},
    {"signals", "Ctrl+C and signals",
     "The first Ctrl+C (or SIGTERM) lets the ranks finish what they compute and keeps all "
     "results;\n"
     "the second ends the ranks at once. Either way `muster resume RUN` goes on later.\n"},
    {"settings", "Settings", ""},
}};

std::string settingsText()
{
    static const config::RunConfig defaults;
    std::string out;
    for (const config::Setting& setting : config::settings()) {
        const std::string value = config::tomlText(setting.get(defaults));
        out += fmt::format("  {:<27} {}\n", setting.key, setting.doc);
        if (!setting.choices.empty())
            out += fmt::format("  {:<27} one of {}\n", "", fmt::join(setting.choices, ", "));
        out += fmt::format("  {:<27} default {}\n", "", value.empty() ? "not set" : value);
    }
    return out;
}

std::string topicBody(const Topic& topic)
{
    return *topic.text == '\0' ? settingsText() : std::string(topic.text);
}

/// Breaks a text into lines; every line after the first is indented.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t width)
{
    std::string out;
    std::size_t column = indent;
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        const std::size_t length = end - at;
        if (column > indent && column + 1 + length > width) {
            out += '\n' + std::string(indent, ' ');
            column = indent;
        } else if (column > indent) {
            out += ' ';
            ++column;
        }
        out += text.substr(at, length);
        column += length;
        at = end + 1;
    }
    return out;
}

std::string label(const OptionInfo& option)
{
    std::string text = fmt::format("{}", fmt::join(option.names, ", "));
    if (text.starts_with("--"))
        text = "    " + text;
    if (!option.value.empty())
        text += " " + option.value;
    return text;
}

void addRows(std::string& out, const std::vector<OptionInfo>& options)
{
    constexpr std::size_t column = 30;
    constexpr std::size_t width = 100;
    for (const OptionInfo& option : options) {
        std::string left = "  " + label(option);
        if (left.size() + 2 > column)
            left += '\n' + std::string(column, ' ');
        else
            left.resize(column, ' ');
        std::string doc = option.doc;
        if (!option.choices.empty() && option.names.front() != "TOPIC")
            doc += fmt::format("{} {}", doc.ends_with('.') ? "" : ":",
                               fmt::join(option.choices, ", "));
        out += left + wrapped(doc, column, width) + '\n';
    }
}

std::string usageLine(const std::string& path, const CommandInfo& command)
{
    std::string out = "usage: " + path;
    if (!command.commands.empty())
        out += path == "muster" ? " COMMAND" : " ACTION";
    for (const OptionInfo& positional : command.positionals) {
        const std::string name =
            positional.isRepeatable ? positional.names.front() + "..." : positional.names.front();
        out += positional.isRequired ? " " + name : " [" + name + "]";
    }
    return out + " [options]\n";
}

std::string commandHelp(const std::string& path, const CommandInfo& command)
{
    std::string out = usageLine(path, command) + command.doc + ".\n";
    if (!command.commands.empty()) {
        out += path == "muster" ? "\nCommands\n" : "\nActions\n";
        for (const CommandInfo& inner : command.commands)
            out += fmt::format("  {:<12} {}\n", inner.name, inner.doc);
    }
    if (!command.positionals.empty()) {
        out += "\nArguments\n";
        std::vector<OptionInfo> rows = command.positionals;
        for (OptionInfo& row : rows)
            row.value.clear();
        addRows(out, rows);
    }
    out += "\nOptions\n";
    addRows(out, command.options);
    return out;
}

const CommandInfo* findCommand(const CommandInfo& in, const std::string& name)
{
    for (const CommandInfo& command : in.commands) {
        if (command.name == name)
            return &command;
    }
    return nullptr;
}

std::string roff(std::string_view text)
{
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const bool isLineStart = i == 0 || text[i - 1] == '\n';
        if (isLineStart && (c == '.' || c == '\''))
            out += "\\&";
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else
            out += c;
    }
    return out;
}

void addManOptions(std::string& out, const std::vector<OptionInfo>& options)
{
    for (const OptionInfo& option : options) {
        std::string names;
        for (const std::string& name : option.names)
            names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
        if (!option.value.empty() && option.names.front().starts_with("-"))
            names += fmt::format(" \\fI{}\\fR", roff(option.value));
        std::string doc = option.doc;
        if (!option.choices.empty() && option.names.front() != "TOPIC")
            doc += fmt::format(". One of {}", fmt::join(option.choices, ", "));
        out += fmt::format(".TP\n{}\n{}\n", names, roff(doc));
    }
}

} // namespace

std::vector<std::string> helpTopics()
{
    std::vector<std::string> names;
    for (const Topic& topic : topics)
        names.emplace_back(topic.name);
    return names;
}

std::string versionLine()
{
    return std::string("muster ") + MUSTER_VERSION + "\n";
}

std::string helpText(const CommandInfo& root, const std::string& command)
{
    if (command.empty()) {
        std::string out = commandHelp("muster", root);
        out += fmt::format("\nTopics of `muster help`: {}.\n", fmt::join(helpTopics(), ", "));
        out += "Try `muster demo`, or `muster run --task qa --model DIR --data FILE`.\n";
        return out;
    }
    if (const CommandInfo* found = findCommand(root, command))
        return commandHelp("muster " + command, *found) +
               "\nOptions of every command: muster --help.\n";
    const std::size_t space = command.find(' ');
    const CommandInfo* outer = findCommand(root, command.substr(0, space));
    if (outer == nullptr || space == std::string::npos)
        return {};
    if (const CommandInfo* found = findCommand(*outer, command.substr(space + 1)))
        return commandHelp("muster " + command, *found);
    return {};
}

Result<std::string> topicText(const CommandInfo& root, const std::string& topic)
{
    if (topic.empty())
        return helpText(root, "");
    for (const Topic& one : topics) {
        if (topic == one.name)
            return std::string(one.title) + "\n\n" + topicBody(one);
    }
    if (const CommandInfo* found = findCommand(root, topic)) {
        std::string out = helpText(root, topic);
        for (const CommandInfo& inner : found->commands)
            out += "\n" + commandHelp("muster " + topic + " " + inner.name, inner);
        for (const Topic& one : topics) {
            const bool belongs = topic == "run" && *one.text != '\0';
            if (belongs)
                out += fmt::format("\n{}\n{}", one.title, topicBody(one));
        }
        return out;
    }
    std::vector<std::string> names = helpTopics();
    for (const CommandInfo& command : root.commands)
        names.push_back(command.name);
    const std::string meant = config::nearest(topic, names);
    return fail(Error::Kind::Usage, "E-CLI-005",
                fmt::format("there is no help on '{}'{}", topic,
                            meant.empty() ? fmt::format("; topics: {}", fmt::join(names, ", "))
                                          : fmt::format("; did you mean {}?", meant)));
}

std::string manPage(const CommandInfo& root)
{
    std::string out = fmt::format(".TH MUSTER 1 \"\" \"muster {}\" \"User Commands\"\n"
                                  ".SH NAME\nmuster \\- {}\n"
                                  ".SH SYNOPSIS\n.B muster\n.I COMMAND\n[\\fIoptions\\fR]\n",
                                  MUSTER_VERSION, roff(root.doc));
    out += ".SH GLOBAL OPTIONS\n";
    addManOptions(out, root.options);
    out += ".SH COMMANDS\n";
    const auto addCommand = [&out](const std::string& path, const CommandInfo& command) {
        out += fmt::format(".SS {}\n{}.\n", roff(path), roff(command.doc));
        addManOptions(out, command.positionals);
        std::vector<OptionInfo> own;
        for (const OptionInfo& option : command.options) {
            if (option.names.front() != "-h")
                own.push_back(option);
        }
        addManOptions(out, own);
    };
    for (const CommandInfo& command : root.commands) {
        addCommand("muster " + command.name, command);
        for (const CommandInfo& inner : command.commands)
            addCommand("muster " + command.name + " " + inner.name, inner);
    }
    for (const Topic& topic : topics) {
        std::string title = topic.title;
        std::transform(title.begin(), title.end(), title.begin(),
                       [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
        out += fmt::format(".SH {}\n.nf\n{}.fi\n", title, roff(topicBody(topic)));
    }
    return out;
}

} // namespace muster::cli
