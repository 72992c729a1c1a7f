// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/pattern_p.h"

#include "base/utf8.h"

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace muster::tokenizer {

namespace {

constexpr std::string_view whiteSpace =
    R"(\x{9}-\x{d}\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::uint32_t stepLimit = 1'000'000'000;
constexpr std::size_t longestExpression = std::size_t{64} << 10U;

tl::unexpected<Error> bad(std::string_view expression, std::string_view why)
{
    return fail(Error::Kind::Invalid, "E-TOK-010",
                fmt::format("the regular expression {} cannot be used: {}", expression, why));
}

/// The expression with what the two engines read differently written out, or the reason why not.
Result<std::string> translated(std::string_view from)
{
    std::string out;
    bool isInClass = false;
    for (std::size_t at = 0; at < from.size(); ++at) {
        const char c = from[at];
        if (c == '\\' && at + 1 < from.size()) {
            const char what = from[++at];
            if (what == 's' && isInClass)
                out.append(whiteSpace);
            else if (what == 's')
                out.append("[").append(whiteSpace).append("]");
            else if (what == 'S' && !isInClass)
                out.append("[^").append(whiteSpace).append("]");
            else if (std::string_view("ShHRXCQEKgk").find(what) != std::string_view::npos)
                return bad(from, fmt::format("\\{} has another meaning here", what));
            else
                out.append({'\\', what});
            // A name in braces is no repetition.
            if (std::string_view("pPx").find(what) != std::string_view::npos &&
                from.substr(at + 1).starts_with('{')) {
                const std::size_t stop = std::min(from.find('}', at), from.size() - 1);
                out.append(from.substr(at + 1, stop - at));
                at = stop;
            }
            continue;
        }
        const std::string_view rest = from.substr(at);
        if (isInClass) {
            if (c == '[' || rest.starts_with("&&"))
                return bad(from, "sets inside a set are not implemented");
            isInClass = c != ']';
        } else if (c == '[') {
            isInClass = true;
            out.push_back(c);
            if (rest.substr(1).starts_with('^'))
                out.push_back(from[++at]);
            if (from.substr(at + 1).starts_with(']'))
                return bad(from, "a set begins with ]");
            continue;
        } else if (c == '}' && rest.substr(1).starts_with('+')) {
            return bad(from, "a repeated repetition is not implemented");
        } else if (rest.starts_with("(?") && rest.size() > 2 &&
                   std::string_view(":=!<>i-").find(rest[2]) == std::string_view::npos) {
            return bad(from, "this kind of group is not implemented");
        } else if (rest.starts_with("(*")) {
            return bad(from, "a verb is not implemented");
        }
        out.push_back(c);
    }
    return out;
}

} // namespace

struct Pattern::Code {
    pcre2_code* code = nullptr;
    bool isCompiled = false; // to machine code

    Code() = default;
    Code(const Code&) = delete;
    Code& operator=(const Code&) = delete;
    ~Code() { pcre2_code_free(code); }
};

Pattern Pattern::fixed(std::string text)
{
    Pattern made;
    made.m_source = std::move(text);
    return made;
}

Result<Pattern> Pattern::regex(std::string_view expression)
{
    if (expression.size() > longestExpression)
        return bad("of model and pre-tokenizer", "it is longer than 64 KiB");
    const Result<std::string> text = translated(expression);
    if (!text)
        return fail(text.error());
    int error = 0;
    PCRE2_SIZE place = 0;
    const auto code = std::make_shared<Code>();
    pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
    if (context == nullptr)
        return bad(expression, "no memory");
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, 100);
    const auto* bytes = static_cast<PCRE2_SPTR>(static_cast<const void*>(text->data()));
    code->code = pcre2_compile(bytes, text->size(),
                               PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                               &error, &place, context);
    pcre2_compile_context_free(context);
    if (code->code == nullptr) {
        PCRE2_UCHAR message[128] = {};
        pcre2_get_error_message(error, message, sizeof message);
        return bad(expression,
                   fmt::format("{} at byte {}",
                               static_cast<const char*>(static_cast<void*>(message)), place));
    }
    code->isCompiled = pcre2_jit_compile(code->code, PCRE2_JIT_COMPLETE) == 0;
    Pattern made;
    made.m_source = std::string(expression);
    made.m_code = code;
    return made;
}

std::size_t Pattern::next(std::string_view text, std::size_t at)
{
    return at < text.size() ? at + utf8::decode(text, at).size : at + 1;
}

std::optional<Pattern::Range> Pattern::find(std::string_view text, std::size_t from) const
{
    if (m_code == nullptr) {
        const std::size_t at =
            m_source.empty() ? std::string_view::npos : text.find(m_source, from);
        if (at == std::string_view::npos)
            return std::nullopt;
        return Range{at, at + m_source.size()};
    }
    /// Memory that one match needs; kept by each thread, because making it costs more than a match.
    struct Scratch {
        pcre2_match_context* context = pcre2_match_context_create(nullptr);
        pcre2_match_data* data = pcre2_match_data_create(8, nullptr);
        Scratch() = default;
        Scratch(const Scratch&) = delete;
        Scratch& operator=(const Scratch&) = delete;
        ~Scratch()
        {
            pcre2_match_data_free(data);
            pcre2_match_context_free(context);
        }
    };
    thread_local const Scratch scratch;
    if (scratch.context == nullptr || scratch.data == nullptr)
        return std::nullopt;
    pcre2_set_match_limit(scratch.context, stepLimit);
    const auto* bytes = static_cast<PCRE2_SPTR>(static_cast<const void*>(text.data()));
    int found = PCRE2_ERROR_JIT_STACKLIMIT;
    if (m_code->isCompiled)
        found = pcre2_match(m_code->code, bytes, text.size(), from, PCRE2_NO_UTF_CHECK,
                            scratch.data, scratch.context);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
        found = pcre2_match(m_code->code, bytes, text.size(), from,
                            PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, scratch.data, scratch.context);
    if (found < 0)
        return std::nullopt;
    const PCRE2_SIZE* places = pcre2_get_ovector_pointer(scratch.data);
    // A match may start before `from` when a look-behind moves it (\K is refused above).
    return Range{std::max<std::size_t>(places[0], from), std::max<std::size_t>(places[1], from)};
}

} // namespace muster::tokenizer
