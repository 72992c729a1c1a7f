// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/json_fields_p.h"

#include <fmt/format.h>

namespace muster::tokenizer {

namespace {

/// A token and its id as BertProcessing and RobertaProcessing name them: ["[SEP]", 102].
Result<std::int32_t> namedId(const object& step, std::string_view key)
{
    const std::string where = fmt::format("post_processor.{}", key);
    const auto value = field(step, key);
    if (!value)
        return wrongType(where, "present");
    const Result<array> pair = arrayOf(*value, where);
    if (!pair)
        return fail(pair.error());
    element id;
    if (pair->size() != 2 || pair->at(1).get(id) != simdjson::SUCCESS)
        return wrongType(where, "a token and its id");
    return idOfElement(id, where);
}

struct TemplatePart {
    char sequence = 0; // 'A', 'B', or 0 for special tokens
    std::vector<std::int32_t> ids;
    std::int32_t segment = 0;
};

Result<std::vector<TemplatePart>> templateParts(const object& step, std::string_view key)
{
    const std::string where = fmt::format("post_processor.{}", key);
    const auto list = field(step, key);
    if (!list)
        return wrongType(where, "present");
    const Result<array> items = arrayOf(*list, where);
    if (!items)
        return fail(items.error());
    const auto specials = field(step, "special_tokens");
    std::vector<TemplatePart> parts;
    for (const element item : *items) {
        const Result<object> in = objectOf(item, where);
        if (!in)
            return fail(in.error());
        TemplatePart part;
        const auto sequence = field(*in, "Sequence");
        const auto special = field(*in, "SpecialToken");
        if (sequence.has_value() == special.has_value())
            return wrongType(where, "made of Sequence and SpecialToken");
        const Result<object> body = objectOf(sequence ? *sequence : *special, where);
        if (!body)
            return fail(body.error());
        const Result<std::string> name = stringField(*body, "id", where);
        if (!name)
            return fail(name.error());
        if (const auto segment = field(*body, "type_id")) {
            const Result<std::int32_t> read = idOfElement(*segment, where + ".type_id");
            if (!read)
                return fail(read.error());
            part.segment = *read;
        }
        if (sequence) {
            if (*name != "A" && *name != "B")
                return wrongType(where + ".Sequence.id", "A or B");
            part.sequence = (*name)[0];
        } else {
            std::optional<element> entry;
            if (specials && specials->is_object())
                entry = field(object(*specials), *name);
            if (!entry)
                return fail(Error::Kind::Invalid, "E-TOK-008",
                            fmt::format("the template names the special token {}, which is not "
                                        "described",
                                        *name));
            const Result<object> described = objectOf(*entry, "post_processor.special_tokens");
            if (!described)
                return fail(described.error());
            const auto ids = field(*described, "ids");
            if (!ids)
                return wrongType("post_processor.special_tokens.ids", "present");
            const Result<array> idList = arrayOf(*ids, "post_processor.special_tokens.ids");
            if (!idList)
                return fail(idList.error());
            for (const element id : *idList) {
                const Result<std::int32_t> read =
                    idOfElement(id, "post_processor.special_tokens.ids");
                if (!read)
                    return fail(read.error());
                part.ids.push_back(*read);
            }
        }
        parts.push_back(std::move(part));
    }
    return parts;
}

Status setTemplate(const object& step, Description& description)
{
    const auto single = templateParts(step, "single");
    if (!single)
        return fail(single.error());
    const auto pair = templateParts(step, "pair");
    if (!pair)
        return fail(pair.error());
    const auto shape = [](const std::vector<TemplatePart>& parts) {
        std::string text;
        for (const TemplatePart& part : parts) {
            if (part.sequence != 0)
                text.push_back(part.sequence);
        }
        return text;
    };
    if (shape(*single) != "A" || shape(*pair) != "AB")
        return fail(Error::Kind::Invalid, "E-TOK-008",
                    "the template does not have the texts once and in their order");
    SingleTemplate& one = description.single;
    bool isBehind = false;
    for (const TemplatePart& part : *single) {
        if (part.sequence != 0)
            isBehind = true;
        auto& ids = isBehind ? one.suffix : one.prefix;
        ids.insert(ids.end(), part.ids.begin(), part.ids.end());
    }
    PairTemplate& two = description.pair;
    std::vector<std::int32_t>* ids[] = {&two.prefix, &two.middle, &two.suffix};
    std::vector<std::int32_t>* segments[] = {&two.prefixSegments, &two.middleSegments,
                                             &two.suffixSegments};
    std::size_t place = 0;
    for (const TemplatePart& part : *pair) {
        two.usesSegments = two.usesSegments || part.segment != 0;
        if (part.sequence == 'A')
            two.questionSegment = part.segment;
        if (part.sequence == 'B')
            two.contextSegment = part.segment;
        if (part.sequence != 0)
            ++place;
        ids[place]->insert(ids[place]->end(), part.ids.begin(), part.ids.end());
        segments[place]->insert(segments[place]->end(), part.ids.size(), part.segment);
    }
    return {};
}

} // namespace

Status setPostProcessor(const object& root, Description& description, std::vector<bool>& trims)
{
    const auto list = steps(root, "post_processor", "processors");
    if (!list)
        return fail(list.error());
    bool hasTemplate = false;
    for (const object& step : *list) {
        const std::string type = typeOf(step);
        const bool addsTokens = type != "ByteLevel";
        if (addsTokens && hasTemplate)
            return notImplemented("a sequence of post-processors that both add tokens");
        hasTemplate = hasTemplate || addsTokens;
        if (type == "TemplateProcessing") {
            const Status set = setTemplate(step, description);
            if (!set)
                return set;
        } else if (type == "BertProcessing" || type == "RobertaProcessing") {
            const Result<std::int32_t> cls = namedId(step, "cls");
            const Result<std::int32_t> sep = namedId(step, "sep");
            if (!cls || !sep)
                return fail(cls ? sep.error() : cls.error());
            if (type == "BertProcessing")
                setBertTemplate(description, *cls, *sep);
            else
                setRobertaTemplate(description, *cls, *sep);
        } else if (type != "ByteLevel") {
            return notImplemented("post_processor " + type);
        }
        if (type == "RobertaProcessing" || type == "ByteLevel") {
            const Result<bool> trim = boolField(step, "trim_offsets", "post_processor", true);
            const Result<bool> keeps = boolField(step, "add_prefix_space", "post_processor", true);
            if (!trim || !keeps)
                return fail(trim ? keeps.error() : trim.error());
            if (*trim)
                trims.push_back(*keeps);
        }
    }
    return {};
}

} // namespace muster::tokenizer
