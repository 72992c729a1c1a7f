// SPDX-License-Identifier: Apache-2.0
#include "config/write.h"

#include "config/settings.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

namespace muster::config {

namespace {

std::string oneLine(std::string_view text)
{
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        out += byte < 0x20 || byte == 0x7F ? '?' : c;
    }
    return out;
}

std::string comment(const Origin& origin, Comments comments)
{
    if (comments == Comments::None)
        return {};
    std::string text = "  # " + std::string(layerName(origin.layer));
    if (!origin.source.empty())
        text += " " + oneLine(origin.text());
    return text;
}

bool isBareKey(std::string_view key)
{
    return key.find('.') == std::string_view::npos;
}

void writeGates(std::string& out, const Resolved& resolved, Comments comments)
{
    const auto& gates = resolved.config.gates;
    if (gates.empty())
        return;
    out += "\n[gates]\n";
    for (std::size_t i = 0; i < gates.size();) {
        std::vector<std::string> texts;
        const std::string& metric = gates[i].metric;
        for (; i < gates.size() && gates[i].metric == metric; ++i)
            texts.push_back(fmt::format("{} {}", gates[i].comparison, gates[i].value));
        const Value value = texts.size() == 1 ? Value(texts.front()) : Value(texts);
        out +=
            fmt::format("{} = {}{}\n", isBareKey(metric) ? metric : tomlText(metric),
                        tomlText(value), comment(resolved.originOf("gates." + metric), comments));
    }
}

std::string jsonText(std::string_view text)
{
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\')
            out += '\\';
        if (byte < 0x20)
            out += fmt::format("\\u{:04x}", byte);
        else
            out += c;
    }
    return out + '"';
}

std::string jsonNumber(double value)
{
    constexpr double largestExact = 9007199254740992.0;
    if (value == std::floor(value) && std::abs(value) <= largestExact)
        return fmt::format("{}", static_cast<std::int64_t>(value));
    if (value == std::floor(value) && std::abs(value) < 1e19)
        return "9223372036854775807";
    return fmt::format("{}", value);
}

std::string jsonType(const Setting& setting)
{
    switch (setting.type) {
    case ValueType::Unsigned:
    case ValueType::OptionalUnsigned:
        return fmt::format(R"("type": "integer", "minimum": {}, "maximum": {})",
                           jsonNumber(setting.minimum), jsonNumber(setting.maximum));
    case ValueType::Real:
        return fmt::format(R"("type": "number", "minimum": {}, "maximum": {})",
                           jsonNumber(setting.minimum), jsonNumber(setting.maximum));
    case ValueType::Choice: {
        std::string fixed;
        std::string open;
        for (const std::string_view name : setting.choices) {
            const std::size_t place = name.find('<');
            if (place != std::string_view::npos)
                open = fmt::format("^{}.+$", name.substr(0, place));
            else
                fixed += (fixed.empty() ? "" : ", ") + jsonText(name);
        }
        if (open.empty())
            return fmt::format(R"("enum": [{}])", fixed);
        return fmt::format(R"("anyOf": [{{"enum": [{}]}}, {{"type": "string", "pattern": {}}}])",
                           fixed, jsonText(open));
    }
    case ValueType::Switch:
        return R"("enum": ["auto", "true", "false", true, false])";
    case ValueType::Text:
    case ValueType::Path:
        return R"("type": "string")";
    case ValueType::TextList:
    case ValueType::PathList:
        return R"("anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}])";
    case ValueType::Gates:
        return R"("type": "object", "additionalProperties": {"anyOf": [{"type": "string"}, )"
               R"({"type": "array", "items": {"type": "string"}}]})";
    }
    return {};
}

/// JSON and TOML write these values alike, except control characters, which no default has.
std::string jsonProperty(const Setting& setting)
{
    static const RunConfig defaults;
    std::string text = fmt::format(R"({}: {{{}, "description": {})", jsonText(setting.leaf()),
                                   jsonType(setting), jsonText(setting.doc));
    const std::string value = tomlText(setting.get(defaults));
    if (!value.empty() && setting.type != ValueType::Gates)
        text += ", \"default\": " + value;
    return text + "}";
}

} // namespace

std::string toToml(const Resolved& resolved, Comments comments)
{
    std::string out;
    std::string_view section;
    for (const Setting& setting : settings()) {
        if (setting.type == ValueType::Gates)
            continue;
        const std::string value = tomlText(setting.get(resolved.config));
        if (value.empty() || (setting.key == "inject" && resolved.config.inject.empty()))
            continue;
        if (setting.section() != section) {
            section = setting.section();
            out += fmt::format("\n[{}]\n", section);
        }
        out += fmt::format("{} = {}{}\n", setting.leaf(), value,
                           comment(resolved.originOf(setting.key), comments));
    }
    writeGates(out, resolved, comments);
    return out;
}

std::string templateToml()
{
    static const RunConfig defaults;
    std::string out = "# Configuration of a Muster run. `muster run FILE` evaluates it;\n"
                      "# `muster config validate FILE` checks it. Paths are relative to this "
                      "file's folder.\n";
    std::string_view section;
    for (const Setting& setting : settings()) {
        if (setting.key == "inject")
            continue;
        if (setting.type == ValueType::Gates) {
            out += fmt::format("\n[gates]\n# {}\n# em = \">= 60\"\n", setting.doc);
            continue;
        }
        if (setting.section() != section) {
            section = setting.section();
            out += fmt::format("\n[{}]\n", section);
        }
        std::string value = tomlText(setting.get(defaults));
        bool isOpen = setting.key == "schema" || setting.key == "task";
        if (setting.key == "model.path") {
            value = "\"path/to/model\"";
            isOpen = true;
        } else if (setting.key == "data.files") {
            value = "[\"path/to/data.json\"]";
            isOpen = true;
        } else if (setting.type == ValueType::OptionalUnsigned) {
            value = "100";
        }
        out += fmt::format("# {}", setting.doc);
        if (!setting.choices.empty())
            out += fmt::format(" One of {}.", fmt::join(setting.choices, ", "));
        out += fmt::format("\n{}{} = {}\n", isOpen ? "" : "# ", setting.leaf(), value);
    }
    return out;
}

std::string jsonSchema()
{
    std::string out = "{\n"
                      "  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
                      "  \"title\": \"Configuration of a Muster run\",\n"
                      "  \"type\": \"object\",\n"
                      "  \"additionalProperties\": false,\n"
                      "  \"properties\": {";
    std::string_view section;
    bool isFirst = true;
    for (const Setting& setting : settings()) {
        if (setting.section() != section) {
            if (!section.empty())
                out += "\n      }\n    }";
            section = setting.section();
            if (!section.empty()) {
                out += fmt::format(",\n    {}: {{\n      \"type\": \"object\",\n      "
                                   "\"additionalProperties\": false,\n      \"properties\": {{",
                                   jsonText(section));
                isFirst = true;
            }
        }
        out += isFirst ? "\n" : ",\n";
        isFirst = false;
        out += (section.empty() ? "    " : "        ") + jsonProperty(setting);
    }
    return out + "\n  }\n}\n";
}

} // namespace muster::config
