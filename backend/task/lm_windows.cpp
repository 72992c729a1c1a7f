// SPDX-License-Identifier: Apache-2.0
#include "task/lm_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::task {

namespace {

constexpr std::array<std::string_view, 10> protocolNames = {
    "per-document", "non-overlapping",   "stream",     "hf-doc", "hf-exact", "hf-fixed", "lm-eval",
    "llama.cpp",    "llama.cpp-strided", "opencompass"};

bool isHuggingFace(LmProtocol protocol)
{
    return protocol == LmProtocol::HfDoc || protocol == LmProtocol::HfExact ||
           protocol == LmProtocol::HfFixed;
}

void append(std::vector<LmWindow>& windows, LmWindow window)
{
    window.weight = window.scored();
    windows.push_back(window);
}

/// Windows of L inputs that end one before their last target, each predicting the next L − c + 1
/// tokens; the last one reaches back. With a prefix the first token is a target as well.
std::vector<LmWindow> rollingWindows(std::uint64_t tokens, const LmRules& rules)
{
    std::vector<LmWindow> windows;
    const std::uint64_t length = rules.maxLength;
    const std::uint64_t step =
        rules.protocol == LmProtocol::LmEval ? length - rules.contextLength + 1 : length;
    std::uint64_t done = 0;
    if (rules.prefixToken) {
        done = std::min(length, tokens);
        if (done > 0)
            append(windows,
                   {.begin = 0, .end = done, .scoredFrom = 0, .prefix = rules.prefixToken});
    } else if (tokens > 1) {
        done = std::min(length + 1, tokens);
        append(windows, {.begin = 0, .end = done, .scoredFrom = 1});
    } else {
        return windows;
    }
    if (rules.protocol == LmProtocol::PerDocument && rules.longDocument == LongDocument::Truncate)
        return windows;
    while (done < tokens) {
        const std::uint64_t targets = std::min(step, tokens - done);
        done += targets;
        append(windows, {.begin = done - length - 1,
                         .end = done,
                         .scoredFrom = static_cast<std::uint32_t>(length + 1 - targets)});
    }
    return windows;
}

std::vector<LmWindow> blocks(std::uint64_t tokens, const LmRules& rules)
{
    std::vector<LmWindow> windows;
    const std::uint64_t length = rules.maxLength;
    const std::uint32_t from =
        rules.scoredPart == ScoredPart::SecondHalf ? std::max(1U, rules.maxLength / 2) : 1;
    for (std::uint64_t begin = 0; begin < tokens; begin += length) {
        const std::uint64_t end = std::min(begin + length, tokens);
        if (end - begin > from)
            append(windows, {.begin = begin, .end = end, .scoredFrom = from});
    }
    return windows;
}

std::vector<LmWindow> streamBlocks(std::uint64_t tokens, const LmRules& rules)
{
    std::vector<LmWindow> windows;
    const std::uint64_t length = rules.maxLength;
    for (std::uint64_t begin = 0; tokens > length && begin < tokens - length; begin += length)
        append(windows, {.begin = begin, .end = begin + length + 1, .scoredFrom = 1});
    return windows;
}

std::vector<LmWindow> huggingFaceWindows(std::uint64_t tokens, const LmRules& rules)
{
    std::vector<LmWindow> windows;
    std::uint64_t previousEnd = 0;
    for (std::uint64_t begin = 0; begin < tokens; begin += rules.stride) {
        const std::uint64_t end = std::min<std::uint64_t>(begin + rules.maxLength, tokens);
        const std::uint64_t targets = end - previousEnd;
        // The labels are shifted inside the window, so its very first token has no context.
        const std::uint64_t from = std::max<std::uint64_t>(1, end - begin - targets);
        LmWindow window{.begin = begin, .end = end, .scoredFrom = static_cast<std::uint32_t>(from)};
        window.weight = rules.protocol == LmProtocol::HfDoc ? targets - 1 : window.scored();
        if (window.scored() > 0 || (rules.protocol != LmProtocol::HfFixed && tokens > 1))
            windows.push_back(window);
        previousEnd = end;
        if (end == tokens)
            break;
    }
    return windows;
}

Result<std::vector<LmWindow>> llamaChunks(std::uint64_t tokens, const LmRules& rules)
{
    const std::uint64_t length = rules.maxLength;
    if (tokens < 2 * length)
        return fail(Error::Kind::Invalid, "E-TASK-022",
                    fmt::format("llama.cpp's procedure needs at least two chunks of {} tokens, but "
                                "the text has {}; use a length of at most {}, or protocol "
                                "`per-document`, which scores every token of any text",
                                length, tokens, tokens / 2));
    std::vector<LmWindow> windows;
    const auto from = static_cast<std::uint32_t>(length / 2 + 1);
    if (from >= length)
        return windows;
    for (std::uint64_t chunk = 0; chunk < tokens / length; ++chunk)
        append(windows, {.begin = chunk * length,
                         .end = (chunk + 1) * length,
                         .scoredFrom = from,
                         .replaceFirst = rules.chunkBos});
    return windows;
}

Result<std::vector<LmWindow>> llamaStridedChunks(std::uint64_t tokens, const LmRules& rules)
{
    const std::uint64_t length = std::uint64_t{rules.maxLength} + rules.stride / 2;
    if (tokens <= length)
        return fail(Error::Kind::Invalid, "E-TASK-022",
                    fmt::format("llama.cpp's strided procedure needs more than {} tokens for a "
                                "length of {} and a stride of {}, but the text has {}",
                                length, rules.maxLength, rules.stride, tokens));
    std::vector<LmWindow> windows;
    const std::uint64_t chunks = (tokens - length + rules.stride - 1) / rules.stride;
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk)
        append(windows, {.begin = chunk * rules.stride,
                         .end = chunk * rules.stride + length,
                         .scoredFrom = static_cast<std::uint32_t>(length - rules.stride)});
    return windows;
}

std::vector<LmWindow> openCompassWindows(std::uint64_t tokens, const LmRules& rules)
{
    std::vector<LmWindow> windows;
    const std::uint64_t length = std::uint64_t{rules.maxLength} + 1;
    for (std::uint64_t begin = 0; begin + length <= tokens; begin += rules.stride)
        append(windows,
               {.begin = begin,
                .end = begin + length,
                .scoredFrom = begin == 0 ? 1 : static_cast<std::uint32_t>(length - rules.stride)});
    return windows;
}

/// The shortest window that scores a token.
std::uint32_t shortestWindow(LmProtocol protocol)
{
    switch (protocol) {
    case LmProtocol::LmEval:
    case LmProtocol::PerDocument:
    case LmProtocol::Stream:
    case LmProtocol::OpenCompass:
        return 1;
    case LmProtocol::LlamaCpp:
        return 3;
    default:
        return 2;
    }
}

/// The largest stride that scores each token at least once, 0 when the protocol has no stride.
std::uint64_t largestStride(const LmRules& rules)
{
    if (isHuggingFace(rules.protocol) || rules.protocol == LmProtocol::OpenCompass)
        return rules.maxLength;
    // llama.cpp: the window grows by half the stride, and its first token is never a target.
    if (rules.protocol == LmProtocol::LlamaCppStrided)
        return 2 * (std::uint64_t{rules.maxLength} - 1);
    return 0;
}

} // namespace

std::string_view lmProtocolName(LmProtocol protocol)
{
    return protocolNames[static_cast<std::size_t>(protocol)];
}

std::optional<LmProtocol> lmProtocolByName(std::string_view name)
{
    const auto at = std::find(protocolNames.begin(), protocolNames.end(), name);
    if (at == protocolNames.end())
        return std::nullopt;
    return static_cast<LmProtocol>(at - protocolNames.begin());
}

std::span<const std::string_view> lmProtocolNames()
{
    return protocolNames;
}

Status checkLmRules(const LmRules& rules)
{
    const bool isLmEval = rules.protocol == LmProtocol::LmEval;
    const std::uint32_t least = shortestWindow(rules.protocol);
    if (rules.maxLength < least)
        return fail(Error::Kind::Invalid, "E-TASK-020",
                    fmt::format("protocol `{}` needs windows of at least {} tokens, not {}",
                                lmProtocolName(rules.protocol), least, rules.maxLength));
    if (const std::uint64_t most = largestStride(rules); most != 0) {
        if (rules.stride == 0 || rules.stride > most)
            return fail(Error::Kind::Invalid, "E-TASK-021",
                        fmt::format("windows of {} tokens at a stride of {} {}; the stride of "
                                    "protocol `{}` must lie between 1 and {}",
                                    rules.maxLength, rules.stride,
                                    rules.stride == 0 ? "do not advance" : "leave gaps",
                                    lmProtocolName(rules.protocol), most));
    }
    if (isLmEval && !rules.prefixToken)
        return fail(Error::Kind::Invalid, "E-TASK-023",
                    "protocol `lm-eval` scores the first token from a prefix token (BOS, else "
                    "EOS), and the tokenizer has none; name one, or use protocol `per-document`");
    if (isLmEval && (rules.contextLength == 0 || rules.contextLength > rules.maxLength))
        return fail(Error::Kind::Invalid, "E-TASK-023",
                    fmt::format("the context length of protocol `lm-eval` must lie between 1 and "
                                "the window's {} tokens, not {}",
                                rules.maxLength, rules.contextLength));
    return {};
}

Result<std::vector<LmWindow>> planLmWindows(std::uint64_t tokens, const LmRules& rules)
{
    if (const Status checked = checkLmRules(rules); !checked)
        return fail(checked.error());
    switch (rules.protocol) {
    case LmProtocol::PerDocument:
    case LmProtocol::LmEval:
        return rollingWindows(tokens, rules);
    case LmProtocol::NonOverlapping:
        return blocks(tokens, rules);
    case LmProtocol::Stream:
        return streamBlocks(tokens, rules);
    case LmProtocol::HfDoc:
    case LmProtocol::HfExact:
    case LmProtocol::HfFixed:
        return huggingFaceWindows(tokens, rules);
    case LmProtocol::LlamaCpp:
        return llamaChunks(tokens, rules);
    case LmProtocol::LlamaCppStrided:
        return llamaStridedChunks(tokens, rules);
    case LmProtocol::OpenCompass:
        return openCompassWindows(tokens, rules);
    }
    return fail(Error::Kind::Internal, "E-TASK-020", "no such protocol");
}

std::vector<std::int32_t> lmItemTokens(std::span<const std::int32_t> tokens, const LmWindow& window)
{
    std::vector<std::int32_t> item;
    const auto part = tokens.subspan(static_cast<std::size_t>(window.begin),
                                     static_cast<std::size_t>(window.end - window.begin));
    item.reserve(part.size() + 1);
    if (window.prefix)
        item.push_back(*window.prefix);
    const std::size_t first = item.size();
    item.insert(item.end(), part.begin(), part.end());
    if (window.replaceFirst && !part.empty())
        item[first] = *window.replaceFirst;
    return item;
}

std::uint32_t lmItemScoredFrom(const LmWindow& window)
{
    return window.scoredFrom + (window.prefix ? 1U : 0U);
}

std::uint64_t hfDocWeight(const LmWindow& window, const LmRules& rules)
{
    const std::uint64_t scored = window.scored();
    const bool losesFirstTarget = window.begin == 0 || rules.stride == rules.maxLength;
    return isHuggingFace(rules.protocol) && !losesFirstTarget && scored > 0 ? scored - 1 : scored;
}

std::string lmProtocolSentence(const LmRules& rules)
{
    const std::string_view name = lmProtocolName(rules.protocol);
    const auto prefix = [&]() -> std::string {
        return rules.prefixToken ? fmt::format("after token {}", *rules.prefixToken)
                                 : "without a token in front";
    };
    switch (rules.protocol) {
    case LmProtocol::PerDocument:
        if (rules.longDocument == LongDocument::Truncate)
            return fmt::format("{}: each document {}, cut off after {} inputs; weighted by tokens "
                               "scored",
                               name, prefix(), rules.maxLength);
        return fmt::format("{}: each document {}, windows of {} inputs that together score every "
                           "token{}; weighted by tokens scored",
                           name, prefix(), rules.maxLength,
                           rules.prefixToken ? "" : " but the first");
    case LmProtocol::NonOverlapping:
        return fmt::format(
            "{}: blocks of {} tokens without a token in front; {} of a block scored; "
            "weighted by tokens scored",
            name, rules.maxLength,
            rules.scoredPart == ScoredPart::SecondHalf ? "the second half"
                                                       : "all but the first token");
    case LmProtocol::Stream:
        return fmt::format("{}: blocks of {} inputs, the next token of each scored; a tail that "
                           "fills no block is dropped; weighted by tokens scored",
                           name, rules.maxLength);
    case LmProtocol::HfDoc:
        return fmt::format("{}: windows of {} tokens every {}, only new tokens scored, no token in "
                           "front; each window's mean weighted by its new tokens less one",
                           name, rules.maxLength, rules.stride);
    case LmProtocol::HfExact:
    case LmProtocol::HfFixed:
        return fmt::format("{}: windows of {} tokens every {}, only new tokens scored, no token in "
                           "front; weighted by tokens scored",
                           name, rules.maxLength, rules.stride);
    case LmProtocol::LmEval:
        return fmt::format("{}: rolling windows of {} inputs {}, context of {}; every token scored "
                           "once; weighted by tokens scored",
                           name, rules.maxLength, prefix(), rules.contextLength);
    case LmProtocol::LlamaCpp:
        return fmt::format("{}: chunks of {} tokens{}, the second half less one token scored, tail "
                           "ignored; weighted by tokens scored",
                           name, rules.maxLength,
                           rules.chunkBos
                               ? fmt::format(", the first replaced by token {}", *rules.chunkBos)
                               : std::string());
    case LmProtocol::LlamaCppStrided:
        return fmt::format("{}: windows of {} + {} tokens every {}, the last {} scored, no token "
                           "replaced; weighted by tokens scored",
                           name, rules.maxLength, rules.stride / 2, rules.stride, rules.stride);
    case LmProtocol::OpenCompass:
        return fmt::format("{}: windows of {} + 1 tokens every {}, only new tokens scored, tail "
                           "ignored; weighted by tokens scored",
                           name, rules.maxLength, rules.stride);
    }
    return std::string(name);
}

} // namespace muster::task
