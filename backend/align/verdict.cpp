// SPDX-License-Identifier: Apache-2.0
#include "align/verdict.h"

namespace muster::align {

namespace {

constexpr std::array<std::string_view, 5> words = {"ALIGNED", "INCOMPLETE", "MISALIGNED",
                                                   "UNVERIFIED", "RUNNING"};
constexpr std::array<std::string_view, invariantCount> ids = {"I1", "I2", "I3", "I4",
                                                              "I5", "I6", "I7", "I8"};
constexpr std::array<std::string_view, invariantCount> names = {
    "coverage", "identity", "range", "ownership", "position", "sums", "padding", "provenance"};
constexpr std::array<std::string_view, invariantCount> rules = {
    "each index exactly once after padding is removed",
    "the hash of a record is the hash of the data at its index",
    "every index is inside the plan",
    "a rank returns only what it was given",
    "position p of every exported file has index p",
    "counts and totals recomputed from the records equal the ranks' own",
    "padding copies are flagged and never scored",
    "all ranks report the same world, model and program"};

} // namespace

std::string_view word(Verdict verdict)
{
    return words[static_cast<std::size_t>(verdict)];
}

bool parseVerdict(std::string_view text, Verdict& into)
{
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == text) {
            into = static_cast<Verdict>(i);
            return true;
        }
    }
    return false;
}

int exitCode(Verdict verdict)
{
    switch (verdict) {
    case Verdict::Aligned:
    case Verdict::Unverified:
        return 0;
    case Verdict::Incomplete:
    case Verdict::Running:
        return 5;
    case Verdict::Misaligned:
        break;
    }
    return 6;
}

std::string_view idOf(Invariant invariant)
{
    return ids[static_cast<std::size_t>(invariant)];
}

std::string_view nameOf(Invariant invariant)
{
    return names[static_cast<std::size_t>(invariant)];
}

std::string_view ruleOf(Invariant invariant)
{
    return rules[static_cast<std::size_t>(invariant)];
}

std::string_view word(Finding::State state)
{
    switch (state) {
    case Finding::State::Ok:
        return "ok";
    case Finding::State::Violated:
        return "violated";
    case Finding::State::NotCheckable:
        break;
    }
    return "not checkable";
}

} // namespace muster::align
