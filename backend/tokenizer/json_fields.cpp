// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/json_fields_p.h"

#include <fmt/format.h>

namespace muster::tokenizer {

namespace {

/// Adds the steps of a possibly nested Sequence, or the one step.
Status flatten(const element& value, std::string_view listKey, std::string_view where,
               std::vector<object>& steps, int depth = 0)
{
    const Result<object> in = objectOf(value, where);
    if (!in)
        return fail(in.error());
    const Result<std::string> type = stringField(*in, "type", where);
    if (!type)
        return fail(type.error());
    if (*type != "Sequence") {
        steps.push_back(*in);
        return {};
    }
    const auto list = field(*in, listKey);
    if (!list || depth > 8)
        return wrongType(fmt::format("{}.{}", where, listKey), "a list of steps");
    const Result<array> items = arrayOf(*list, fmt::format("{}.{}", where, listKey));
    if (!items)
        return fail(items.error());
    for (const element item : *items) {
        const Status added = flatten(item, listKey, where, steps, depth + 1);
        if (!added)
            return added;
    }
    return {};
}

} // namespace

tl::unexpected<Error> wrongType(std::string_view where, std::string_view wanted)
{
    return fail(Error::Kind::Invalid, "E-TOK-003", fmt::format("{} is not {}", where, wanted));
}

tl::unexpected<Error> notImplemented(std::string_view what)
{
    return fail(Error::Kind::Invalid, "E-TOK-004",
                fmt::format("{} is not implemented; nothing was guessed in its place", what));
}

std::optional<element> field(const object& in, std::string_view key)
{
    element value;
    if (in.at_key(key).get(value) != simdjson::SUCCESS || value.is_null())
        return std::nullopt;
    return value;
}

Result<std::string> stringField(const object& in, std::string_view key, std::string_view where,
                                std::optional<std::string> otherwise)
{
    const auto value = field(in, key);
    if (!value) {
        if (otherwise)
            return *otherwise;
        return wrongType(fmt::format("{}.{}", where, key), "present");
    }
    std::string_view text;
    if (value->get_string().get(text) != simdjson::SUCCESS)
        return wrongType(fmt::format("{}.{}", where, key), "a string");
    return std::string(text);
}

Result<bool> boolField(const object& in, std::string_view key, std::string_view where,
                       bool otherwise)
{
    const auto value = field(in, key);
    if (!value)
        return otherwise;
    bool flag = false;
    if (value->get_bool().get(flag) != simdjson::SUCCESS)
        return wrongType(fmt::format("{}.{}", where, key), "true or false");
    return flag;
}

Result<std::int32_t> idOfElement(const element& value, std::string_view where)
{
    std::uint64_t id = 0;
    if (value.get_uint64().get(id) != simdjson::SUCCESS || id > INT32_MAX - 1)
        return wrongType(where, fmt::format("an id from 0 to {}", INT32_MAX - 1));
    return static_cast<std::int32_t>(id);
}

Result<object> objectOf(const element& value, std::string_view where)
{
    object out;
    if (value.get_object().get(out) != simdjson::SUCCESS)
        return wrongType(where, "an object");
    return out;
}

Result<array> arrayOf(const element& value, std::string_view where)
{
    array out;
    if (value.get_array().get(out) != simdjson::SUCCESS)
        return wrongType(where, "a list");
    return out;
}

Result<object> parseJson(simdjson::dom::parser& parser, std::string_view json,
                         std::string_view what)
{
    element root;
    const auto error = parser.parse(simdjson::padded_string(json)).get(root);
    if (error != simdjson::SUCCESS)
        return fail(Error::Kind::Invalid, "E-TOK-002",
                    fmt::format("{} is not JSON: {}", what, simdjson::error_message(error)));
    return objectOf(root, what);
}

Result<AddedToken> addedToken(const element& value, std::string_view where)
{
    const Result<object> in = objectOf(value, where);
    if (!in)
        return fail(in.error());
    AddedToken token;
    const Result<std::string> content = stringField(*in, "content", where);
    if (!content)
        return fail(content.error());
    token.content = *content;
    token.id = -1;
    if (const auto id = field(*in, "id")) {
        const Result<std::int32_t> read = idOfElement(*id, fmt::format("{}.id", where));
        if (!read)
            return fail(read.error());
        token.id = *read;
    }
    const std::pair<const char*, bool AddedToken::*> flags[] = {
        {"single_word", &AddedToken::isSingleWord}, {"lstrip", &AddedToken::stripsLeft},
        {"rstrip", &AddedToken::stripsRight},       {"normalized", &AddedToken::isNormalized},
        {"special", &AddedToken::isSpecial},
    };
    for (const auto& [key, member] : flags) {
        const Result<bool> flag = boolField(*in, key, where, false);
        if (!flag)
            return fail(flag.error());
        token.*member = *flag;
    }
    return token;
}

Result<Vocabulary> vocabularyOf(const object& in)
{
    Vocabulary vocabulary;
    vocabulary.reserve(in.size());
    for (const auto entry : in) {
        std::uint64_t id = 0;
        if (entry.value.get_uint64().get(id) != simdjson::SUCCESS || id > INT32_MAX - 1)
            return fail(Error::Kind::Invalid, "E-TOK-005",
                        fmt::format("token \"{}\" of the vocabulary has no id from 0 to {}",
                                    entry.key, INT32_MAX - 1));
        vocabulary.emplace_back(static_cast<std::int32_t>(id), entry.key);
    }
    return vocabulary;
}

Result<std::vector<object>> steps(const object& root, std::string_view component,
                                  std::string_view listKey)
{
    std::vector<object> out;
    if (const auto value = field(root, component)) {
        const Status read = flatten(*value, listKey, component, out);
        if (!read)
            return fail(read.error());
    }
    return out;
}

std::string typeOf(const object& step)
{
    return stringField(step, "type", "", "").value_or("");
}

} // namespace muster::tokenizer
