// SPDX-License-Identifier: Apache-2.0
#include "config/read.h"

#include "base/file.h"
#include "base/utf8.h"
#include "config/suggest.h"
#include "config/toml_p.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <set>
#include <string>

#include <unistd.h>

namespace muster::config {

namespace {

constexpr std::size_t largestFile = std::size_t{1} << 20U;
/// The parser and its tables recurse once per part of a dotted key, without a limit of their own.
constexpr std::size_t mostDotsPerLine = 32;

/// First line with more dots outside quotes and comments than any configuration needs, or 0.
std::uint32_t lineOfDeepKey(std::string_view text)
{
    std::uint32_t line = 1;
    std::size_t dots = 0;
    char quote = 0;
    bool isComment = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '\n') {
            ++line;
            dots = 0;
            quote = 0;
            isComment = false;
        } else if (isComment) {
            continue;
        } else if (quote != 0) {
            if (c == '\\' && quote == '"')
                ++i;
            else if (c == quote)
                quote = 0;
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (c == '#') {
            isComment = true;
        } else if (c == '.' && ++dots > mostDotsPerLine) {
            return line;
        }
    }
    return 0;
}

std::vector<std::string> namesInSection(std::string_view section)
{
    std::set<std::string> names;
    for (const Setting& setting : settings()) {
        if (setting.section() == section)
            names.emplace(setting.leaf());
        if (section.empty() && !setting.section().empty())
            names.emplace(setting.section());
    }
    return {names.begin(), names.end()};
}

bool isSection(std::string_view name)
{
    return std::any_of(settings().begin(), settings().end(),
                       [name](const Setting& setting) { return setting.section() == name; });
}

std::string anchored(const std::string& text, const std::filesystem::path& folder)
{
    if (folder.empty() || text.empty() || std::filesystem::path(text).is_absolute())
        return text;
    return (folder / text).lexically_normal().string();
}

/// Relative paths of a file become paths below its folder; the built-in model keeps its name.
void anchor(const Setting& setting, const std::filesystem::path& folder, Value& value)
{
    if (setting.type == ValueType::Path) {
        auto& text = std::get<std::string>(value);
        if (setting.key != "model.path" || !text.starts_with("synthetic"))
            text = anchored(text, folder);
    } else if (setting.type == ValueType::PathList) {
        for (std::string& text : std::get<std::vector<std::string>>(value))
            text = anchored(text, folder);
    }
}

class Reader final {
public:
    explicit Reader(Reading& into) : m_reading(into) {}

    void addFile(const std::filesystem::path& path, Layer layer)
    {
        auto text = readFile(path, largestFile);
        if (!text) {
            Error error = std::move(text).error();
            error.code = "E-CONFIG-008";
            report({layer, path.string(), 0, 0}, "", std::move(error));
            return;
        }
        std::filesystem::path folder = path.parent_path();
        addToml({path.string(), std::move(*text), folder.empty() ? "." : folder}, layer);
    }

    void addToml(const TomlText& toml, Layer layer)
    {
        m_toml = &toml;
        m_layer = layer;
        if (toml.text.size() > largestFile) {
            report(at({}), "", invalid("E-CONFIG-008", "the file is larger than 1 MiB"));
            return;
        }
        if (const auto broken = utf8::firstInvalid(toml.text)) {
            const auto lines = std::count(
                toml.text.begin(), toml.text.begin() + static_cast<std::ptrdiff_t>(*broken), '\n');
            Origin where = at({});
            where.line = static_cast<std::uint32_t>(lines) + 1;
            report(std::move(where), "", invalid("E-CONFIG-008", "the file is not UTF-8"));
            return;
        }
        if (const std::uint32_t line = lineOfDeepKey(toml.text)) {
            Origin where = at({});
            where.line = line;
            where.column = 1;
            report(std::move(where), "",
                   invalid("E-CONFIG-001", "a key has more parts than any setting"));
            return;
        }
        try {
            const toml::table root = toml::parse(toml.text, toml.name);
            readTable(root, "");
        } catch (const toml::parse_error& error) {
            report(at(error.source().begin), "",
                   invalid("E-CONFIG-001", std::string(error.description())));
        } catch (const std::exception& error) {
            report(at({}), "", invalid("E-CONFIG-001", error.what()));
        }
    }

    void addEnvironment(const std::vector<std::pair<std::string, std::string>>& variables)
    {
        for (const auto& [name, text] : variables) {
            const Setting* setting = settingOfVariable(name);
            if (setting != nullptr)
                addText({Layer::Environment, name, 0, 0}, *setting, text);
        }
    }

    void addFlags(const std::vector<FlagSetting>& flags)
    {
        for (const FlagSetting& flag : flags) {
            const Origin where{Layer::Flag, flag.flag, 0, 0};
            auto setting = settingNamed(flag.name);
            if (!setting) {
                report(where, flag.name, std::move(setting).error());
                continue;
            }
            addText(where, **setting, flag.text);
        }
    }

    void checkWhole()
    {
        const RunConfig& config = m_reading.resolved.config;
        if (config.qa.docStride >= config.qa.maxSeqLength)
            conflict("qa.doc_stride", "qa.max_seq_length",
                     fmt::format("qa.doc_stride ({}) must be below qa.max_seq_length ({})",
                                 config.qa.docStride, config.qa.maxSeqLength));
        if (config.cluster.heartbeatS >= config.cluster.suspectS)
            conflict("cluster.suspect_s", "cluster.heartbeat_s",
                     fmt::format("cluster.heartbeat_s ({}) must be below cluster.suspect_s ({})",
                                 config.cluster.heartbeatS, config.cluster.suspectS));
        if (config.cluster.suspectS > config.cluster.deadS)
            conflict("cluster.dead_s", "cluster.suspect_s",
                     fmt::format("cluster.suspect_s ({}) must not exceed cluster.dead_s ({})",
                                 config.cluster.suspectS, config.cluster.deadS));
    }

private:
    static Error invalid(std::string code, std::string message)
    {
        return {Error::Kind::Invalid, std::move(code), std::move(message)};
    }

    Origin at(const toml::source_position& position) const
    {
        return {m_layer, m_toml->name, static_cast<std::uint32_t>(position.line),
                static_cast<std::uint32_t>(position.column)};
    }

    void report(Origin where, std::string key, Error error)
    {
        m_reading.problems.push_back({std::move(where), std::move(key), std::move(error)});
    }

    void conflict(std::string_view first, std::string_view second, std::string message)
    {
        const Origin a = m_reading.resolved.originOf(first);
        const Origin b = m_reading.resolved.originOf(second);
        const bool secondDecides = b.layer > a.layer;
        report(secondDecides ? b : a, std::string(secondDecides ? second : first),
               invalid("E-CONFIG-006", std::move(message)));
    }

    void unknown(const toml::key& key, std::string_view section)
    {
        const std::string full =
            section.empty() ? std::string(key.str()) : fmt::format("{}.{}", section, key.str());
        const std::vector<std::string> names = namesInSection(section);
        std::string hint = nearest(key.str(), names);
        if (hint.empty()) {
            // A key in the wrong table is as common as a misspelt one.
            for (const Setting& setting : settings()) {
                if (setting.leaf() == key.str())
                    hint = setting.key;
            }
        }
        report(at(key.source().begin), full,
               invalid("E-CONFIG-002",
                       fmt::format("{}: unknown key{}", full,
                                   hint.empty() ? "" : fmt::format("; did you mean {}?", hint))));
    }

    void readTable(const toml::table& table, std::string_view section)
    {
        for (const auto& [key, node] : table) {
            if (section.empty() && key.str() == "gates") {
                readGates(node);
                continue;
            }
            if (section.empty() && isSection(key.str())) {
                if (const toml::table* inner = node.as_table())
                    readTable(*inner, key.str());
                else
                    report(
                        at(node.source().begin), std::string(key.str()),
                        invalid("E-CONFIG-003", fmt::format("{}: a table is wanted", key.str())));
                continue;
            }
            const std::string full =
                section.empty() ? std::string(key.str()) : fmt::format("{}.{}", section, key.str());
            const Setting* setting = findSetting(full);
            if (setting == nullptr || setting->section() != section) {
                unknown(key, section);
                continue;
            }
            readSetting(*setting, node);
        }
    }

    void readSetting(const Setting& setting, const toml::node& node)
    {
        const Origin where = at(node.source().begin);
        auto value = valueOf(setting, node);
        if (value)
            value = check(setting, std::move(*value));
        if (!value) {
            Error error = std::move(value).error();
            if (setting.key == "schema")
                error = invalid("E-CONFIG-007", "schema: this program reads layout 1");
            report(where, std::string(setting.key), std::move(error));
            return;
        }
        anchor(setting, m_toml->folder, *value);
        take(where, setting, *value);
    }

    static Result<Value> valueOf(const Setting& setting, const toml::node& node)
    {
        if (const auto* whole = node.as_integer()) {
            if (setting.type == ValueType::Real)
                return static_cast<double>(whole->get());
            if (whole->get() < 0)
                return fail(invalid("E-CONFIG-004",
                                    fmt::format("{}: {} is negative", setting.key, whole->get())));
            return static_cast<std::uint64_t>(whole->get());
        }
        if (const auto* real = node.as_floating_point())
            return real->get();
        if (const auto* text = node.as_string())
            return text->get();
        if (const auto* flag = node.as_boolean(); flag && setting.type == ValueType::Switch)
            return std::string(flag->get() ? "true" : "false");
        if (const auto* array = node.as_array()) {
            std::vector<std::string> list;
            for (const toml::node& element : *array) {
                const auto* text = element.as_string();
                if (text == nullptr)
                    return fail(invalid(
                        "E-CONFIG-003",
                        fmt::format("{}: every element must be a text in quotes", setting.key)));
                list.push_back(text->get());
            }
            return list;
        }
        const char* found = node.is_table()     ? "a table"
                            : node.is_boolean() ? "true or false"
                                                : "a date or time";
        return fail(
            invalid("E-CONFIG-003", fmt::format("{}: {} is not wanted here", setting.key, found)));
    }

    void readGates(const toml::node& node)
    {
        const toml::table* table = node.as_table();
        if (table == nullptr) {
            report(at(node.source().begin), "gates",
                   invalid("E-CONFIG-003", "gates: a table such as em = \">= 60\" is wanted"));
            return;
        }
        const Setting& setting = *findSetting("gates");
        for (const auto& [key, value] : *table) {
            const std::string full = fmt::format("gates.{}", key.str());
            auto texts = valueOf(setting, value);
            if (texts && std::holds_alternative<std::string>(*texts))
                texts = std::vector<std::string>{std::get<std::string>(*texts)};
            if (texts && !std::holds_alternative<std::vector<std::string>>(*texts))
                texts = fail(invalid("E-CONFIG-003",
                                     fmt::format("{}: a text such as \">= 60\" is wanted", full)));
            if (!texts) {
                report(at(value.source().begin), full, std::move(texts).error());
                continue;
            }
            std::vector<Gate> gates;
            bool isGood = true;
            for (const std::string& text : std::get<std::vector<std::string>>(*texts)) {
                auto gate = parseGate(fmt::format("{} {}", key.str(), text));
                if (gate && gate->metric == key.str()) {
                    gates.push_back(std::move(*gate));
                    continue;
                }
                isGood = false;
                Error error = gate ? invalid("E-CONFIG-009",
                                             fmt::format("{}: '{}' is no comparison", full, text))
                                   : std::move(gate).error();
                report(at(value.source().begin), full, std::move(error));
            }
            if (isGood)
                takeGates(at(value.source().begin), std::move(gates));
        }
    }

    void addText(const Origin& where, const Setting& setting, std::string_view text)
    {
        auto value = valueFromText(setting, text);
        if (!value) {
            Error error = std::move(value).error();
            if (where.layer == Layer::Flag)
                error.kind = Error::Kind::Usage;
            report(where, std::string(setting.key), std::move(error));
            return;
        }
        take(where, setting, *value);
    }

    void take(const Origin& where, const Setting& setting, const Value& value)
    {
        if (setting.type == ValueType::Gates) {
            std::vector<Gate> gates;
            for (const std::string& text : std::get<std::vector<std::string>>(value)) {
                if (auto gate = parseGate(text))
                    gates.push_back(std::move(*gate));
            }
            takeGates(where, std::move(gates));
            return;
        }
        // A list given by repeated flags grows; a stronger layer replaces it.
        Value merged = value;
        const std::string key(setting.key);
        const bool isList =
            setting.type == ValueType::PathList || setting.type == ValueType::TextList;
        if (isList && where.layer == Layer::Flag &&
            m_reading.resolved.originOf(key).layer == Layer::Flag) {
            auto list = std::get<std::vector<std::string>>(setting.get(m_reading.resolved.config));
            const auto& more = std::get<std::vector<std::string>>(value);
            list.insert(list.end(), more.begin(), more.end());
            merged = std::move(list);
        }
        setting.set(m_reading.resolved.config, merged);
        m_reading.resolved.origins.insert_or_assign(key, where);
    }

    /// Replaces the gates that weaker layers put on the same metric and keeps all others.
    void takeGates(const Origin& where, std::vector<Gate> gates)
    {
        std::vector<Gate>& all = m_reading.resolved.config.gates;
        for (Gate& gate : gates) {
            const std::string key = "gates." + gate.metric;
            const auto known = m_reading.resolved.origins.find(key);
            if (known == m_reading.resolved.origins.end() || known->second.layer != where.layer)
                std::erase_if(all, [&gate](const Gate& g) { return g.metric == gate.metric; });
            m_reading.resolved.origins.insert_or_assign(key, where);
            all.push_back(std::move(gate));
        }
        std::stable_sort(all.begin(), all.end(),
                         [](const Gate& a, const Gate& b) { return a.metric < b.metric; });
    }

    static const Setting* settingOfVariable(std::string_view name)
    {
        constexpr std::string_view prefix = "MUSTER_";
        if (!name.starts_with(prefix))
            return nullptr;
        std::string wanted;
        for (const char c : name.substr(prefix.size()))
            wanted += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        std::vector<const Setting*> byLeaf;
        for (const Setting& setting : settings()) {
            std::string full(setting.key);
            std::replace(full.begin(), full.end(), '.', '_');
            if (full == wanted)
                return &setting;
            if (setting.leaf() == wanted)
                byLeaf.push_back(&setting);
        }
        return byLeaf.size() == 1 ? byLeaf.front() : nullptr;
    }

    Reading& m_reading;
    const TomlText* m_toml = nullptr;
    Layer m_layer = Layer::Default;
};

std::string environmentOr(const char* name, std::string fallback)
{
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' ? std::string(value) : std::move(fallback);
}

} // namespace

std::optional<std::vector<std::string>> tomlStringList(std::string_view text)
{
    if (text.size() > largestFile || lineOfDeepKey(text) != 0 ||
        text.find('\n') != std::string_view::npos)
        return std::nullopt;
    try {
        const toml::table root = toml::parse(fmt::format("list = {}\n", text));
        const toml::array* array = root["list"].as_array();
        if (array == nullptr || root.size() != 1)
            return std::nullopt;
        std::vector<std::string> list;
        for (const toml::node& element : *array) {
            const auto* string = element.as_string();
            if (string == nullptr)
                return std::nullopt;
            list.push_back(string->get());
        }
        return list;
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

std::string_view layerName(Layer layer)
{
    static constexpr std::array<std::string_view, 7> names{
        "default", "site", "user", "project", "given", "environment", "flag"};
    return names[static_cast<std::size_t>(layer)];
}

std::string Origin::text() const
{
    if (source.empty())
        return std::string(layerName(layer));
    if (line == 0)
        return source;
    return column == 0 ? fmt::format("{}:{}", source, line)
                       : fmt::format("{}:{}:{}", source, line, column);
}

std::string Problem::text() const
{
    return where.source.empty() ? error.text() : fmt::format("{}: {}", where.text(), error.text());
}

Origin Resolved::originOf(std::string_view key) const
{
    const auto found = origins.find(key);
    return found == origins.end() ? Origin{} : found->second;
}

Result<Resolved> Reading::result() const
{
    if (problems.empty())
        return resolved;
    if (problems.size() == 1) {
        Error error = problems.front().error;
        if (!problems.front().where.source.empty())
            error.message = fmt::format("{}: {}", problems.front().where.text(), error.message);
        return fail(std::move(error));
    }
    const bool isUsage = std::all_of(problems.begin(), problems.end(), [](const Problem& p) {
        return p.error.kind == Error::Kind::Usage;
    });
    std::string text = fmt::format("the configuration has {} problems", problems.size());
    for (const Problem& problem : problems)
        text += "\n  " + problem.text();
    return fail(isUsage ? Error::Kind::Usage : Error::Kind::Invalid, "E-CONFIG-000",
                std::move(text));
}

Reading readToml(const TomlText& toml, Layer layer)
{
    Reading reading;
    Reader reader(reading);
    reader.addToml(toml, layer);
    reader.checkWhole();
    return reading;
}

Reading readTomlFile(const std::filesystem::path& path)
{
    Reading reading;
    Reader reader(reading);
    reader.addFile(path, Layer::Given);
    reader.checkWhole();
    return reading;
}

Result<FlagSetting> parseSet(std::string_view text)
{
    const std::size_t equal = text.find('=');
    if (equal == std::string_view::npos || equal == 0)
        return fail(Error::Kind::Usage, "E-CONFIG-010",
                    fmt::format("--set '{}': key=value is wanted, such as qa.doc_stride=64", text));
    return FlagSetting{"--set", std::string(text.substr(0, equal)),
                       std::string(text.substr(equal + 1))};
}

Sources standardSources()
{
    Sources sources;
    const std::string folders = environmentOr("XDG_CONFIG_DIRS", "/etc/xdg");
    std::size_t begin = 0;
    while (begin <= folders.size()) {
        const std::size_t end = std::min(folders.find(':', begin), folders.size());
        const std::filesystem::path folder = folders.substr(begin, end - begin);
        if (folder.is_absolute())
            sources.siteFiles.insert(sources.siteFiles.begin(), folder / "muster" / "config.toml");
        begin = end + 1;
    }
    const std::string home = environmentOr("HOME", "");
    const std::filesystem::path userFolder =
        environmentOr("XDG_CONFIG_HOME", home.empty() ? "" : home + "/.config");
    if (userFolder.is_absolute())
        sources.userFile = userFolder / "muster" / "config.toml";
    sources.projectFile = "muster.toml";
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::size_t equal = text.find('=');
        if (text.starts_with("MUSTER_") && equal != std::string_view::npos)
            sources.environment.emplace_back(text.substr(0, equal), text.substr(equal + 1));
    }
    std::sort(sources.environment.begin(), sources.environment.end());
    return sources;
}

Reading resolve(const Sources& sources)
{
    Reading reading;
    Reader reader(reading);
    std::error_code ignored;
    const auto addIfThere = [&](const std::filesystem::path& path, Layer layer) {
        if (std::filesystem::exists(path, ignored))
            reader.addFile(path, layer);
    };
    for (const auto& path : sources.siteFiles)
        addIfThere(path, Layer::Site);
    if (sources.userFile)
        addIfThere(*sources.userFile, Layer::User);
    const bool isSameFile =
        sources.projectFile && sources.givenFile &&
        std::filesystem::equivalent(*sources.projectFile, *sources.givenFile, ignored);
    if (sources.projectFile && !isSameFile)
        addIfThere(*sources.projectFile, Layer::Project);
    if (sources.givenFile)
        reader.addFile(*sources.givenFile, Layer::Given);
    if (sources.givenText)
        reader.addToml(*sources.givenText, Layer::Given);
    reader.addEnvironment(sources.environment);
    reader.addFlags(sources.flags);
    reader.checkWhole();
    return reading;
}

std::vector<Problem> missingForRun(const RunConfig& config)
{
    std::vector<Problem> problems;
    const auto miss = [&problems](std::string key, std::string message) {
        problems.push_back(
            {{}, std::move(key), {Error::Kind::Invalid, "E-CONFIG-012", std::move(message)}});
    };
    if (config.model.path.empty())
        miss("model.path", "no model is given: set model.path or --model DIR");
    if (config.data.files.empty() && !config.model.path.string().starts_with("synthetic"))
        miss("data.files", "no data are given: set data.files or --data FILE");
    return problems;
}

} // namespace muster::config
