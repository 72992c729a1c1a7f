// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/json_fields_p.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::tokenizer {

namespace {

/// `{"String": …}` or `{"Regex": …}`.
Result<Pattern> patternOf(const object& step, std::string_view where)
{
    const auto value = field(step, "pattern");
    if (!value)
        return wrongType(fmt::format("{}.pattern", where), "present");
    std::string_view text;
    if (value->get_string().get(text) == simdjson::SUCCESS)
        return Pattern::fixed(std::string(text));
    const Result<object> in = objectOf(*value, fmt::format("{}.pattern", where));
    if (!in)
        return fail(in.error());
    if (const auto fixed = field(*in, "String")) {
        if (fixed->get_string().get(text) == simdjson::SUCCESS)
            return Pattern::fixed(std::string(text));
    }
    if (const auto regex = field(*in, "Regex")) {
        if (regex->get_string().get(text) == simdjson::SUCCESS) {
            Result<Pattern> made = Pattern::regex(text);
            return made ? std::move(made)
                        : fail(made.error().during(fmt::format("{}.pattern", where)));
        }
    }
    return wrongType(fmt::format("{}.pattern", where), "a String or a Regex");
}

Result<SplitBehavior> behaviorOf(const object& step, std::string_view otherwise)
{
    const auto name = stringField(step, "behavior", "pre_tokenizer", std::string(otherwise));
    if (!name)
        return fail(name.error());
    constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> names{{
        {"Removed", SplitBehavior::removed},
        {"Isolated", SplitBehavior::isolated},
        {"MergedWithPrevious", SplitBehavior::mergedWithPrevious},
        {"MergedWithNext", SplitBehavior::mergedWithNext},
        {"Contiguous", SplitBehavior::contiguous},
    }};
    for (const auto& [known, behavior] : names) {
        if (*name == known)
            return behavior;
    }
    return notImplemented("pre_tokenizer.behavior " + *name);
}

Result<std::unique_ptr<const NormalizerStep>> precompiledOf(const object& step)
{
    const auto text = stringField(step, "precompiled_charsmap", "normalizer", "");
    if (!text)
        return fail(text.error());
    const auto blob = fromBase64(*text);
    if (!blob)
        return wrongType("normalizer.precompiled_charsmap", "base64");
    Result<Charsmap> map = Charsmap::parse(*blob);
    if (!map)
        return fail(map.error().during("normalizer.precompiled_charsmap"));
    return makePrecompiled(std::move(*map));
}

Result<std::unique_ptr<const NormalizerStep>> normalizerStep(const object& step,
                                                             NormalizerReading& reading)
{
    const std::string type = typeOf(step);
    constexpr std::array<std::pair<std::string_view, NormalForm>, 4> forms{{
        {"NFC", NormalForm::nfc},
        {"NFD", NormalForm::nfd},
        {"NFKC", NormalForm::nfkc},
        {"NFKD", NormalForm::nfkd},
    }};
    for (const auto& [name, form] : forms) {
        if (type == name)
            return makeNormalForm(form);
    }
    if (type == "Lowercase")
        return makeLowercase();
    if (type == "StripAccents")
        return makeStripAccents();
    if (type == "Nmt")
        return makeNmt();
    if (type == "Precompiled")
        return precompiledOf(step);
    if (type == "Prepend") {
        const auto prefix = stringField(step, "prepend", "normalizer");
        if (!prefix)
            return fail(prefix.error());
        return makePrepend(*prefix);
    }
    if (type == "Replace") {
        Result<Pattern> pattern = patternOf(step, "normalizer");
        const auto content = stringField(step, "content", "normalizer");
        if (!pattern || !content)
            return fail(pattern ? content.error() : pattern.error());
        reading.replacesSpaces =
            reading.replacesSpaces ||
            (!pattern->isRegex() && pattern->source() == " " && *content == blankMark);
        return makeReplace(std::move(*pattern), *content);
    }
    if (type == "Strip") {
        const Result<bool> left = boolField(step, "strip_left", "normalizer", true);
        const Result<bool> right = boolField(step, "strip_right", "normalizer", true);
        if (!left || !right)
            return fail(left ? right.error() : left.error());
        return makeStrip(*left, *right);
    }
    return notImplemented(fmt::format("normalizer {} with BPE or Unigram", type));
}

Result<SplitStep> splitStep(const object& step)
{
    SplitStep made;
    Result<Pattern> pattern = patternOf(step, "pre_tokenizer");
    const Result<SplitBehavior> behavior = behaviorOf(step, "Isolated");
    const Result<bool> isInverted = boolField(step, "invert", "pre_tokenizer", false);
    if (!pattern)
        return fail(pattern.error());
    if (!behavior || !isInverted)
        return fail(behavior ? isInverted.error() : behavior.error());
    made.behavior = *behavior;
    made.isInverted = *isInverted;
    const auto known = pattern->isRegex() ? knownPattern(pattern->source()) : std::nullopt;
    if (known) {
        made.kind = SplitStep::Kind::known;
        made.known = *known;
    } else {
        made.pattern = std::move(*pattern);
    }
    return made;
}

Result<MetaspaceStep> metaspaceStep(const object& step)
{
    MetaspaceStep made;
    const auto mark = stringField(step, "replacement", "pre_tokenizer", std::string(blankMark));
    const auto scheme = stringField(step, "prepend_scheme", "pre_tokenizer", "");
    const Result<bool> prefix = boolField(step, "add_prefix_space", "pre_tokenizer", true);
    const Result<bool> splits = boolField(step, "split", "pre_tokenizer", true);
    if (!mark || !scheme)
        return fail(mark ? scheme.error() : mark.error());
    if (!prefix || !splits)
        return fail(prefix ? splits.error() : prefix.error());
    if (mark->empty() || utf8::length(*mark) != 1)
        return wrongType("pre_tokenizer.replacement", "one character");
    made.mark = *mark;
    made.splits = *splits;
    using Prefix = MetaspaceStep::Prefix;
    if (scheme->empty())
        made.prefix = *prefix ? Prefix::always : Prefix::never;
    else if (*scheme == "always")
        made.prefix = Prefix::always;
    else if (*scheme == "first")
        made.prefix = Prefix::first;
    else if (*scheme == "never")
        made.prefix = Prefix::never;
    else
        return notImplemented("pre_tokenizer.prepend_scheme " + *scheme);
    return made;
}

Status addPreTokenizer(const object& step, PreTokenizerReading& reading)
{
    const std::string type = typeOf(step);
    const auto addKind = [&](SplitStep::Kind kind, SplitBehavior behavior,
                             bool isInverted = false) {
        SplitStep made;
        made.kind = kind;
        made.behavior = behavior;
        made.isInverted = isInverted;
        reading.steps.emplace_back(std::move(made));
    };
    if (type == "ByteLevel") {
        const Result<bool> prefix = boolField(step, "add_prefix_space", "pre_tokenizer", true);
        const Result<bool> usesRegex = boolField(step, "use_regex", "pre_tokenizer", true);
        if (!prefix || !usesRegex)
            return fail(prefix ? usesRegex.error() : prefix.error());
        reading.isByteLevel = true;
        reading.addsPrefixSpace = *prefix;
        reading.usesRegex = *usesRegex;
    } else if (type == "Split") {
        Result<SplitStep> made = splitStep(step);
        if (!made)
            return fail(made.error());
        reading.steps.emplace_back(std::move(*made));
    } else if (type == "Metaspace") {
        Result<MetaspaceStep> made = metaspaceStep(step);
        if (!made)
            return fail(made.error());
        reading.steps.emplace_back(std::move(*made));
    } else if (type == "Digits") {
        const Result<bool> each = boolField(step, "individual_digits", "pre_tokenizer", false);
        if (!each)
            return fail(each.error());
        addKind(SplitStep::Kind::digits,
                *each ? SplitBehavior::isolated : SplitBehavior::contiguous);
    } else if (type == "WhitespaceSplit") {
        addKind(SplitStep::Kind::blanks, SplitBehavior::removed);
    } else if (type == "Whitespace") {
        addKind(SplitStep::Kind::words, SplitBehavior::removed, true);
    } else if (type == "Punctuation") {
        const Result<SplitBehavior> behavior = behaviorOf(step, "Isolated");
        if (!behavior)
            return fail(behavior.error());
        addKind(SplitStep::Kind::punctuation, *behavior);
    } else if (type == "BertPreTokenizer") {
        addKind(SplitStep::Kind::blanks, SplitBehavior::removed);
        addKind(SplitStep::Kind::punctuation, SplitBehavior::isolated);
    } else if (type == "CharDelimiterSplit") {
        const auto delimiter = stringField(step, "delimiter", "pre_tokenizer");
        if (!delimiter)
            return fail(delimiter.error());
        SplitStep made;
        made.behavior = SplitBehavior::removed;
        made.pattern = Pattern::fixed(*delimiter);
        reading.steps.emplace_back(std::move(made));
    } else {
        return notImplemented(fmt::format("pre_tokenizer {} with BPE or Unigram", type));
    }
    return {};
}

} // namespace

Result<NormalizerReading> normalizerOf(const object& root)
{
    const auto list = steps(root, "normalizer", "normalizers");
    if (!list)
        return fail(list.error());
    NormalizerReading reading;
    for (const object& step : *list) {
        auto made = normalizerStep(step, reading);
        if (!made)
            return fail(made.error());
        reading.normalizer.add(std::move(*made));
    }
    return reading;
}

Result<PreTokenizerReading> preTokenizerOf(const object& root)
{
    const auto list = steps(root, "pre_tokenizer", "pretokenizers");
    if (!list)
        return fail(list.error());
    PreTokenizerReading reading;
    for (const object& step : *list) {
        if (reading.isByteLevel)
            return notImplemented(fmt::format("pre_tokenizer {} behind ByteLevel", typeOf(step)));
        const Status added = addPreTokenizer(step, reading);
        if (!added)
            return fail(added.error());
    }
    return reading;
}

} // namespace muster::tokenizer
