// SPDX-License-Identifier: Apache-2.0
#include "run/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace muster::run {

namespace {

tl::unexpected<Error> unreadable(std::string_view text, std::string_view what)
{
    return fail(Error::Kind::Usage, "E-RUN-070",
                fmt::format("the condition '{}' cannot be read: {}. Write it as METRIC OP NUMBER "
                            "[pp | %] [@ CONFIDENCE%], such as 'em < -0.5pp @ 95%'.",
                            text, what));
}

void skipBlanks(std::string_view& rest)
{
    while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t'))
        rest.remove_prefix(1);
}

std::optional<double> takeNumber(std::string_view& rest)
{
    if (!rest.empty() && rest.front() == '+')
        rest.remove_prefix(1);
    double value = 0.0;
    const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (problem != std::errc() || !std::isfinite(value))
        return std::nullopt;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    return value;
}

std::string lowered(std::string_view text)
{
    std::string made(text);
    for (char& c : made)
        if (c >= 'A' && c <= 'Z')
            c = static_cast<char>(c - 'A' + 'a');
    return made;
}

bool compares(double found, const std::string& comparison, double value)
{
    if (comparison == "<")
        return found < value;
    if (comparison == "<=")
        return found <= value;
    if (comparison == ">")
        return found > value;
    if (comparison == ">=")
        return found >= value;
    return (found == value) == (comparison == "==");
}

std::optional<double> countOf(const FailCondition& condition, const PairComparison& pair)
{
    if (!pair.changes)
        return std::nullopt;
    const Changes& changes = *pair.changes;
    if (condition.metric == "texts_changed")
        return static_cast<double>(changes.texts);
    if (condition.metric == "scores_changed")
        return static_cast<double>(changes.scores);
    if (condition.metric == "losses_changed")
        return static_cast<double>(changes.losses);
    if (condition.metric == "greatest_loss_difference")
        return changes.greatestLoss;
    return std::nullopt;
}

const MetricDifference* metricNamed(const PairComparison& pair, const std::string& name)
{
    std::string key = name;
    if (name == "em" || name == "exact")
        key = "exact_match";
    else if (name == "ppl")
        key = "perplexity";
    for (const MetricDifference& one : pair.metrics)
        if (one.key == key || lowered(one.label) == name)
            return &one;
    return nullptr;
}

} // namespace

Result<FailCondition> parseFailCondition(std::string_view text)
{
    FailCondition made;
    made.text = std::string(text);
    std::string_view rest = text;
    skipBlanks(rest);
    const std::size_t operatorAt = rest.find_first_of("<>=!");
    if (operatorAt == std::string_view::npos)
        return unreadable(text, "it has no comparison");
    std::string_view name = rest.substr(0, operatorAt);
    while (!name.empty() && (name.back() == ' ' || name.back() == '\t'))
        name.remove_suffix(1);
    const bool isName = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '.' || c == '-' || c == ' ';
    });
    if (!isName)
        return unreadable(text, "it does not begin with the name of a metric");
    made.metric = lowered(name);
    rest.remove_prefix(operatorAt);
    for (const std::string_view one : {"<=", ">=", "==", "!=", "<", ">"})
        if (made.comparison.empty() && rest.starts_with(one)) {
            made.comparison = std::string(one);
            rest.remove_prefix(one.size());
        }
    if (made.comparison.empty())
        return unreadable(text, "the comparison is none of < <= > >= == !=");
    skipBlanks(rest);
    const auto number = takeNumber(rest);
    if (!number)
        return unreadable(text, "no number follows the comparison");
    made.value = *number;
    skipBlanks(rest);
    if (rest.starts_with("pp")) {
        made.unit = FailCondition::Unit::Points;
        rest.remove_prefix(2);
    } else if (rest.starts_with("%")) {
        made.unit = FailCondition::Unit::Percent;
        rest.remove_prefix(1);
    }
    skipBlanks(rest);
    if (rest.empty())
        return made;
    if (rest.front() != '@')
        return unreadable(text, fmt::format("'{}' is too much", rest));
    rest.remove_prefix(1);
    skipBlanks(rest);
    const auto confidence = takeNumber(rest);
    skipBlanks(rest);
    if (!confidence || rest != "%")
        return unreadable(text, "behind @ stands no confidence such as 95%");
    if (!(*confidence > 0.0 && *confidence < 100.0))
        return unreadable(text, "the confidence is not between 0 and 100 %");
    if (made.comparison == "==" || made.comparison == "!=")
        return unreadable(text, "== and != take no confidence");
    made.confidence = *confidence / 100.0;
    return made;
}

Result<FailOutcome> checkCondition(const FailCondition& condition,
                                   std::span<const ComparedRun> runs, const PairComparison& pair)
{
    const auto refused = [&condition](std::string_view why) {
        return fail(Error::Kind::Usage, "E-RUN-071",
                    fmt::format("the condition '{}' cannot be checked: {}.", condition.text, why));
    };
    FailOutcome outcome;
    outcome.condition = condition;
    outcome.b = pair.b;
    if (const auto count = countOf(condition, pair)) {
        if (condition.confidence || condition.unit != FailCondition::Unit::Own)
            return refused("a count takes no unit and no confidence");
        outcome.holds = compares(*count, condition.comparison, condition.value);
        outcome.sentence = fmt::format("{}: {} {}", condition.text, condition.metric,
                                       fmt::format("is {:g}", *count));
        return outcome;
    }
    const MetricDifference* metric = metricNamed(pair, condition.metric);
    if (metric == nullptr) {
        std::string names;
        for (const MetricDifference& one : pair.metrics)
            names += (names.empty() ? "" : ", ") + one.key;
        return refused(
            fmt::format("the runs have no metric '{}'; they have {}", condition.metric, names));
    }
    if (condition.unit == FailCondition::Unit::Points && metric->unit != "%")
        return refused(fmt::format("{} is not in percent, so pp means nothing", metric->key));
    // The interval at the confidence that was asked for.
    PairComparison again;
    if (condition.confidence && *condition.confidence != metric->confidence) {
        CompareOptions options;
        options.confidence = *condition.confidence;
        options.bootstrap = 0;
        auto made = comparePair(runs, pair.a, pair.b, options);
        if (!made)
            return fail(std::move(made).error());
        again = std::move(*made);
        metric = metricNamed(again, condition.metric);
    }
    if (metric == nullptr || !metric->difference)
        return refused(fmt::format("{} has no value in one of the runs", condition.metric));
    double scale = 1.0;
    if (condition.unit == FailCondition::Unit::Percent) {
        if (!metric->a || *metric->a == 0.0)
            return refused("a share of A's value is asked for, and that is 0");
        scale = 100.0 / std::abs(*metric->a);
    }
    const double found = *metric->difference * scale;
    const std::string_view unit = condition.unit == FailCondition::Unit::Percent ? " %"
                                  : metric->unit == "%"                          ? " pp"
                                                                                 : "";
    if (!condition.confidence) {
        outcome.holds = compares(found, condition.comparison, condition.value);
        outcome.sentence = fmt::format("{}: the difference is {:+.{}f}{}", condition.text, found,
                                       std::max(metric->decimals, 2), unit);
        return outcome;
    }
    if (!metric->low || !metric->high) {
        if (metric->reading != Reading::Equal)
            return refused(fmt::format("{} has no interval ({})", metric->key, metric->reason));
        outcome.holds = compares(0.0, condition.comparison, condition.value);
        outcome.sentence = condition.text + ": every sample has the same value";
        return outcome;
    }
    const double low = *metric->low * scale;
    const double high = *metric->high * scale;
    outcome.holds = compares(low, condition.comparison, condition.value) &&
                    compares(high, condition.comparison, condition.value);
    outcome.sentence = fmt::format(
        "{}: the difference is {:+.{}f}{}, {:g} % interval {:+.{}f} to {:+.{}f}", condition.text,
        found, std::max(metric->decimals, 2), unit, 100.0 * *condition.confidence, low,
        std::max(metric->decimals, 2), high, std::max(metric->decimals, 2));
    return outcome;
}

} // namespace muster::run
