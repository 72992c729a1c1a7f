// SPDX-License-Identifier: Apache-2.0
#include "data/subset.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

namespace muster::data {

namespace {

std::string_view trimmed(std::string_view text)
{
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
        text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
        text.remove_suffix(1);
    return text;
}

std::optional<std::uint64_t> number(std::string_view text)
{
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return value;
}

} // namespace

Result<Subset> Subset::parse(std::string_view expression)
{
    Subset subset;
    if (trimmed(expression).empty())
        return subset;
    for (std::size_t at = 0; at <= expression.size();) {
        const std::size_t comma = std::min(expression.find(',', at), expression.size());
        const std::string_view part = trimmed(expression.substr(at, comma - at));
        at = comma + 1;
        const auto refuse = [&](std::string_view why) {
            return fail(Error::Kind::Invalid, "E-DATA-011",
                        fmt::format("The part `{}` of the subset `{}` {}. Write parts such as 17, "
                                    "0-99, 500- or id:TEXT, with commas between them.",
                                    part, expression, why));
        };
        if (part.substr(0, 3) == "id:") {
            if (part.size() == 3)
                return refuse("names no id");
            subset.m_ids.emplace(part.substr(3));
            continue;
        }
        const std::size_t dash = part.find('-');
        const auto first = number(trimmed(part.substr(0, dash)));
        if (!first)
            return refuse("is no index");
        Range range{*first, *first, false};
        if (dash != std::string_view::npos) {
            const std::string_view end = trimmed(part.substr(dash + 1));
            range.isOpen = end.empty();
            const auto last = range.isOpen
                                  ? std::optional(std::numeric_limits<std::uint64_t>::max())
                                  : number(end);
            if (!last)
                return refuse("has an end that is no index");
            if (*last < *first)
                return refuse("ends before it starts");
            range.last = *last;
        }
        subset.m_ranges.push_back(range);
    }
    return subset;
}

bool Subset::contains(SampleIndex original, const std::string& id) const
{
    if (isEverything())
        return true;
    const auto holds = [&](const Range& range) {
        return original.value >= range.first && original.value <= range.last;
    };
    return std::any_of(m_ranges.begin(), m_ranges.end(), holds) || namesId(id);
}

Status Subset::checkAgainst(std::uint64_t samples, const std::set<std::string>& ids) const
{
    for (const Range& range : m_ranges) {
        const std::uint64_t needed = range.isOpen ? range.first : range.last;
        if (needed >= samples)
            return fail(Error::Kind::Invalid, "E-DATA-012",
                        fmt::format("The subset names sample {}, but the data set has {} samples "
                                    "(0 to {}).",
                                    needed, samples, samples == 0 ? 0 : samples - 1));
    }
    for (const std::string& id : m_ids) {
        if (ids.count(id) == 0)
            return fail(Error::Kind::Invalid, "E-DATA-012",
                        fmt::format("The subset names the id `{}`, which no sample has.", id));
    }
    return {};
}

} // namespace muster::data
