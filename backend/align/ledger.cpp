// SPDX-License-Identifier: Apache-2.0
#include "align/ledger.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace muster::align {

namespace {

constexpr std::size_t shown = 20;
constexpr std::uint32_t nobody = noRank.value;

std::string listOf(std::span<const std::uint64_t> indices, std::uint64_t count)
{
    std::string text = fmt::format("{}", fmt::join(indices, ", "));
    if (count > indices.size())
        text += fmt::format(" and {} more", count - indices.size());
    return text;
}

// The hash that stands for an accepted row: payload and flags, bound to the content it belongs to.
Hash128 rowHash(const wire::Output& output)
{
    Hash128 hash = hash128(std::span<const std::byte>(output.payload), output.hash.low);
    hash.high ^= output.hash.high;
    hash.low ^= output.flags;
    return hash;
}

struct Kind {
    Invariant invariant;
    std::string_view label;
    std::string_view code;
};

constexpr Kind missingRow{Invariant::Coverage, "dropped row", "E-ALIGN-001"};
constexpr Kind repeatedRow{Invariant::Coverage, "duplicate", "E-ALIGN-002"};
constexpr Kind conflict{Invariant::Coverage, "conflicting duplicate", "E-ALIGN-003"};
constexpr Kind foreignSample{Invariant::Identity, "foreign sample", "E-ALIGN-004"};
constexpr Kind wrongHash{Invariant::Identity, "wrong hash", "E-ALIGN-005"};
constexpr Kind outOfRange{Invariant::Range, "out of range", "E-ALIGN-006"};
constexpr Kind wrongOwner{Invariant::Ownership, "wrong owner", "E-ALIGN-007"};
constexpr Kind notOfUnit{Invariant::Ownership, "wrong owner", "E-ALIGN-008"};
constexpr Kind scoredPadding{Invariant::Padding, "scored padding", "E-ALIGN-009"};
constexpr Kind sumMismatch{Invariant::Sums, "ledger mismatch", "E-ALIGN-010"};
constexpr Kind mixedWorld{Invariant::Provenance, "mixed world", "E-ALIGN-011"};
constexpr Kind misOrdered{Invariant::Position, "mis-ordered", "E-ALIGN-012"};
constexpr Kind foreignUnitKind{Invariant::Range, "unknown unit", "E-ALIGN-013"};

struct Violations {
    std::set<std::pair<std::string, std::uint64_t>> keys; ///< label and index, each once
    std::set<std::uint64_t> first;
    std::string label;
    std::string sentence;
};

void add(wire::Sums& sums, const wire::Sums& more)
{
    sums.units += more.units;
    sums.items += more.items;
    sums.errors += more.errors;
    sums.realTokens += more.realTokens;
    sums.padTokens += more.padTokens;
    sums.scoredTokens += more.scoredTokens;
    sums.lossSum += more.lossSum;
}

// Empty when the counts that the controller can form too are equal.
std::string differenceOf(const wire::Sums& own, const wire::Sums& received)
{
    const std::array<std::tuple<const char*, std::int64_t, std::int64_t>, 5> parts = {{
        {"items", own.items, received.items},
        {"errors", own.errors, received.errors},
        {"tokens", own.realTokens, received.realTokens},
        {"padding tokens", own.padTokens, received.padTokens},
        {"scored tokens", own.scoredTokens, received.scoredTokens},
    }};
    for (const auto& [name, theirs, ours] : parts) {
        if (theirs != ours)
            return fmt::format("{} {} and {} arrived", theirs, name, ours);
    }
    // The rank adds item by item and the controller unit by unit: n additions of doubles in another
    // order differ by at most n ulp of the sum, as all losses have one sign.
    const double bound = static_cast<double>(own.items + 1) * 0x1p-52 * std::abs(own.lossSum);
    if (!(std::abs(own.lossSum - received.lossSum) <= bound))
        return fmt::format("a loss of {} and {} arrived", own.lossSum, received.lossSum);
    return {};
}

} // namespace

struct Ledger::State {
    struct Totals {
        wire::Sums own;
        std::size_t segments = 0; ///< of the rank when it told
    };
    struct Rank {
        std::vector<wire::Sums> segments{wire::Sums{}}; ///< received, one more with each hello
        std::unordered_set<std::uint64_t> seen;         ///< unit and attempt of what was received
        std::vector<Totals> totals;
        std::optional<wire::Sums> latest;
    };
    struct World {
        std::uint64_t size = 0;
        std::string model;
        std::string kernels;
        std::string version;
    };

    PlanFacts facts;
    std::vector<std::uint32_t> unitSize;
    std::vector<std::uint32_t> firstOwner;
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> moreOwners;
    std::vector<std::uint8_t> unitDone;
    std::vector<bool> covered;
    std::vector<bool> failed; ///< covered by a row that says why it could not be computed
    std::vector<std::uint64_t> rowDigest;
    std::vector<std::uint32_t> stamp; ///< number of the block that had the item last
    std::uint32_t blockNumber = 0;
    std::vector<Row> rows;
    UnorderedDigest digest;
    LedgerCounts counts;
    std::map<std::uint32_t, Rank> ranks;
    std::optional<World> world;
    std::optional<wire::Sums> group;
    std::array<Violations, invariantCount> violations;
    std::string headline; ///< of the first violation
    std::unordered_map<std::uint64_t, std::uint64_t> misplaced;
    std::map<std::uint64_t, std::uint32_t> aside; ///< unit and the rank that had it last
    std::string firstDamage;
    std::vector<std::string> filesExported;
    mutable std::vector<std::uint32_t> byHash; ///< items by rising hash, made on first use

    [[nodiscard]] std::uint64_t items() const { return facts.itemUnit.size(); }
    [[nodiscard]] bool hasHashes() const { return facts.itemHash.size() == facts.itemUnit.size(); }

    void violate(const Kind& kind, std::uint64_t index, const std::string& sentence)
    {
        auto& found = violations[static_cast<std::size_t>(kind.invariant)];
        if (!found.keys.emplace(kind.label, index).second)
            return;
        found.first.insert(index);
        if (found.first.size() > shown)
            found.first.erase(std::prev(found.first.end()));
        if (found.sentence.empty()) {
            found.label = kind.label;
            found.sentence = sentence;
        }
        if (headline.empty())
            headline = sentence;
    }

    [[nodiscard]] std::optional<std::uint64_t> itemOf(const Hash128& hash) const
    {
        if (!hasHashes())
            return std::nullopt;
        if (byHash.size() != items()) {
            byHash.resize(items());
            std::iota(byHash.begin(), byHash.end(), 0U);
            std::ranges::sort(byHash, {}, [this](std::uint32_t i) { return facts.itemHash[i]; });
        }
        const auto found = std::ranges::lower_bound(
            byHash, hash, {}, [this](std::uint32_t i) { return facts.itemHash[i]; });
        if (found == byHash.end() || facts.itemHash[*found] != hash)
            return std::nullopt;
        return *found;
    }

    [[nodiscard]] std::string nameOf(std::uint64_t item) const
    {
        if (item >= items() || facts.itemSample.size() != items() || facts.itemSample[item] == item)
            return fmt::format("index {}", item);
        return fmt::format("index {} (sample {})", item, facts.itemSample[item]);
    }

    [[nodiscard]] bool wasGiven(std::uint64_t unit, std::uint32_t rank) const
    {
        if (firstOwner[unit] == rank)
            return true;
        if (unit < facts.owners.size() && facts.owners[unit].value == rank)
            return true;
        const auto more = moreOwners.find(unit);
        return more != moreOwners.end() &&
               std::ranges::find(more->second, rank) != more->second.end();
    }

    [[nodiscard]] std::string holderOf(std::uint64_t unit) const
    {
        if (const auto more = moreOwners.find(unit); more != moreOwners.end())
            return fmt::format("rank {}", more->second.back());
        if (firstOwner[unit] != nobody)
            return fmt::format("rank {}", firstOwner[unit]);
        if (unit < facts.owners.size())
            return fmt::format("rank {}", facts.owners[unit].value);
        return "no rank";
    }

    // Checks one row; a violation is recorded, and the first one of a block goes to `result`.
    Row check(const wire::Output& output, std::uint64_t unit, RankId from, BlockResult& result)
    {
        const std::uint64_t item = output.item.value;
        const auto violated = [&](const Kind& kind, const std::string& sentence, Row row) {
            violate(kind, item, sentence);
            if (result.code.empty()) {
                result.code = kind.code;
                result.sentence = sentence;
                result.firstDifferingItem = item;
            }
            return row;
        };
        if ((output.flags & wire::padFlag) != 0)
            return Row::Pad;
        if (item >= items()) {
            const auto real = itemOf(output.hash);
            if (real && item < 2 * items() + 16)
                misplaced.emplace(item, *real);
            return violated(outOfRange,
                            fmt::format("rank {} returned index {}, and the plan ends at {}{}",
                                        from.value, item, items() - 1,
                                        real ? "; its content belongs to " + nameOf(*real) : ""),
                            Row::OutOfRange);
        }
        if (hasHashes() && output.hash != facts.itemHash[item]) {
            if (const auto real = itemOf(output.hash)) {
                misplaced.emplace(item, *real);
                return violated(foreignSample,
                                fmt::format("what rank {} returned as {} has the content of {}",
                                            from.value, nameOf(item), nameOf(*real)),
                                Row::Foreign);
            }
            return violated(
                wrongHash,
                fmt::format("what rank {} returned as {} was computed on other content: hash {} in "
                            "place of {}",
                            from.value, nameOf(item), output.hash.hex(),
                            facts.itemHash[item].hex()),
                Row::WrongHash);
        }
        if (stamp[item] == blockNumber)
            return violated(
                repeatedRow,
                fmt::format("rank {} returned {} twice in unit {}", from.value, nameOf(item), unit),
                Row::Repeated);
        stamp[item] = blockNumber;
        if (facts.itemUnit[item] != unit) {
            if (covered[item])
                return violated(
                    scoredPadding,
                    fmt::format("rank {} returned a copy of {} with unit {} without marking it as "
                                "padding",
                                from.value, nameOf(item), unit),
                    Row::ScoredPadding);
            return violated(notOfUnit,
                            fmt::format("rank {} returned {} with unit {}, to which it does not "
                                        "belong",
                                        from.value, nameOf(item), unit),
                            Row::NotOfUnit);
        }
        if (unitDone[unit] == 0)
            return Row::Accepted;
        if (rowHash(output).low == rowDigest[item])
            return Row::AlreadyHave;
        return violated(
            conflict,
            fmt::format("not reproducible: unit {} came again from rank {} with another "
                        "result for {}; the first result is kept",
                        unit, from.value, nameOf(item)),
            Row::Conflict);
    }

    void findMissingRows(const wire::OutputBlock& block, RankId from, BlockResult& result)
    {
        const std::uint64_t unit = block.unit.value;
        std::vector<std::uint64_t> first;
        std::uint64_t count = 0;
        for (std::uint64_t item = 0; item < items(); ++item) {
            if (facts.itemUnit[item] != unit || stamp[item] == blockNumber)
                continue;
            ++count;
            if (first.size() < shown)
                first.push_back(item);
        }
        if (count == 0)
            return;
        const std::string sentence =
            fmt::format("rank {} returned unit {} as finished without {} of its {} rows: index {}",
                        from.value, unit, count, unitSize[unit], listOf(first, count));
        for (const std::uint64_t item : first)
            violate(missingRow, item, sentence);
        if (result.code.empty()) {
            result.code = missingRow.code;
            result.sentence = sentence;
            result.firstDifferingItem = first.front();
        }
    }

    [[nodiscard]] bool compareTotals(std::uint64_t& compared, std::string& sentence,
                                     std::uint64_t& at) const;
};

Ledger::Ledger(PlanFacts facts) : m_state(std::make_unique<State>())
{
    auto& s = *m_state;
    s.facts = std::move(facts);
    const std::size_t items = s.facts.itemUnit.size();
    s.unitSize.resize(s.facts.units);
    for (auto& unit : s.facts.itemUnit) {
        if (unit < s.facts.units)
            ++s.unitSize[unit];
        else
            unit = noUnit;
    }
    s.firstOwner.assign(s.facts.units, nobody);
    s.unitDone.resize(s.facts.units);
    s.covered.resize(items);
    s.failed.resize(items);
    s.rowDigest.resize(items);
    s.stamp.resize(items);
}

Ledger::~Ledger() = default;
Ledger::Ledger(Ledger&&) noexcept = default;
Ledger& Ledger::operator=(Ledger&&) noexcept = default;

void Ledger::assigned(UnitId unit, RankId rank)
{
    auto& s = *m_state;
    if (unit.value >= s.facts.units)
        return;
    if (s.firstOwner[unit.value] == nobody)
        s.firstOwner[unit.value] = rank.value;
    else if (s.firstOwner[unit.value] != rank.value) {
        auto& more = s.moreOwners[unit.value];
        // The last one of the list is the one that holds the unit now.
        std::erase(more, rank.value);
        more.push_back(rank.value);
    }
}

void Ledger::hello(RankId rank, std::uint64_t world, std::string_view modelDigest,
                   std::string_view kernels, std::string_view version)
{
    auto& s = *m_state;
    auto [place, isNew] = s.ranks.try_emplace(rank.value);
    place->second.segments.emplace_back();
    place->second.latest.reset();
    ++s.counts.ranksHeard;
    if (!s.world) {
        s.world = State::World{world, std::string(modelDigest), std::string(kernels),
                               std::string(version)};
        return;
    }
    const auto compare = [&](const char* what, const std::string& theirs,
                             const std::string& others) {
        if (theirs != others)
            s.violate(mixedWorld, rank.value,
                      fmt::format("rank {} reports {} {}, the others {}", rank.value, what, theirs,
                                  others));
    };
    compare("world size", std::to_string(world), std::to_string(s.world->size));
    compare("model digest", std::string(modelDigest), s.world->model);
    compare("kernels", std::string(kernels), s.world->kernels);
    compare("program version", std::string(version), s.world->version);
}

BlockResult Ledger::block(const wire::OutputBlock& block, RankId from)
{
    auto& s = *m_state;
    BlockResult result;
    s.rows.clear();
    const std::uint64_t unit = block.unit.value;
    if (unit >= s.facts.units) {
        foreignUnit(block.unit, from);
        result.code = foreignUnitKind.code;
        result.sentence = s.violations[static_cast<std::size_t>(Invariant::Range)].sentence;
        return result;
    }
    if (++s.blockNumber == 0) {
        std::ranges::fill(s.stamp, 0U);
        s.blockNumber = 1;
    }
    result.isDuplicate = s.unitDone[unit] != 0;

    const auto refuseOwner = [&](const std::string& sentence) {
        const std::uint64_t item = block.outputs.empty() ? 0 : block.outputs.front().item.value;
        s.violate(wrongOwner, item, sentence);
        result.code = wrongOwner.code;
        result.sentence = sentence;
        result.isEqual = false;
    };
    if (block.rank != from)
        refuseOwner(
            fmt::format("unit {} came over the connection of rank {} in the name of rank {}", unit,
                        from.value, block.rank.value));
    else if (!s.wasGiven(unit, from.value))
        refuseOwner(fmt::format("rank {} returned unit {}, which it was never given; it belongs to "
                                "{}",
                                from.value, unit, s.holderOf(unit)));
    const bool isOwned = result.code.empty();

    wire::Sums sums{.units = 1,
                    .realTokens = static_cast<std::int64_t>(block.realTokens),
                    .padTokens = static_cast<std::int64_t>(block.padTokens)};
    std::uint64_t right = 0;
    std::uint64_t pads = 0;
    s.rows.reserve(block.outputs.size());
    for (const auto& output : block.outputs) {
        Row row = s.check(output, unit, from, result);
        right += row == Row::Accepted || row == Row::AlreadyHave ? 1U : 0U;
        pads += row == Row::Pad ? 1U : 0U;
        if (row != Row::Pad) {
            ++sums.items;
            const bool isError = (output.flags & wire::errorFlag) != 0;
            sums.errors += isError ? 1 : 0;
            if (s.facts.kind == wire::UnitKind::Lm && !isError) {
                const wire::LmHead head = wire::peekLm(output.payload);
                sums.lossSum += head.lossSum;
                sums.scoredTokens += head.scored;
            }
        }
        s.rows.push_back(isOwned ? row : Row::WrongOwner);
    }
    const bool hasConflict = result.code == conflict.code;
    if (right != s.unitSize[unit] && !hasConflict)
        s.findMissingRows(block, from, result);

    s.counts.rows += block.outputs.size();
    s.counts.pads += pads;
    auto& rank = s.ranks[from.value];
    const bool isFirstTime = rank.seen.insert((unit << 32U) | block.attempt).second;
    if (isFirstTime)
        add(rank.segments.back(), sums);

    if (!result.code.empty()) {
        result.isEqual = false;
        return result;
    }
    if (result.isDuplicate) {
        (isFirstTime ? s.counts.repeated : s.counts.resent) += right;
        return result;
    }
    for (const auto& output : block.outputs) {
        if ((output.flags & wire::padFlag) != 0)
            continue;
        const std::uint64_t item = output.item.value;
        const Hash128 hash = rowHash(output);
        s.covered[item] = true;
        s.failed[item] = (output.flags & wire::errorFlag) != 0;
        s.counts.errors += s.failed[item] ? 1U : 0U;
        s.rowDigest[item] = hash.low;
        s.digest.add(item, hash);
    }
    s.counts.accepted += right;
    s.unitDone[unit] = 1;
    s.aside.erase(unit);
    result.isUsable = true;
    return result;
}

void Ledger::foreignUnit(UnitId unit, RankId from)
{
    m_state->violate(foreignUnitKind, unit.value,
                     fmt::format("rank {} sent outputs of unit {}, and the plan has {} units",
                                 from.value, unit.value, m_state->facts.units));
}

void Ledger::damagedFrame(RankId rank, std::string_view code)
{
    auto& s = *m_state;
    if (++s.counts.damagedFrames == 1)
        s.firstDamage =
            fmt::format("a frame of rank {} was damaged ({}) and thrown away", rank.value, code);
}

void Ledger::setAside(UnitId unit, RankId lastRank)
{
    auto& s = *m_state;
    if (unit.value >= s.facts.units || s.unitDone[unit.value] != 0)
        return;
    if (s.aside.emplace(unit.value, lastRank.value).second)
        ++s.counts.unitsSetAside;
}

void Ledger::totals(RankId rank, const wire::Sums& own)
{
    auto& of = m_state->ranks[rank.value];
    of.totals.push_back({own, of.segments.size()});
    of.latest = own;
}

void Ledger::groupTotals(const wire::Sums& group)
{
    m_state->group = group;
}

void Ledger::exported(std::string_view file, std::span<const std::uint64_t> indices)
{
    auto& s = *m_state;
    s.filesExported.emplace_back(file);
    std::vector<Misplaced> wrong;
    for (std::uint64_t place = 0; place < indices.size(); ++place) {
        if (indices[place] != place)
            wrong.push_back({place, indices[place]});
    }
    if (wrong.empty())
        return;
    const auto diagnosis = diagnose(wrong, indices.size());
    for (const auto& row : std::span(wrong).first(std::min(wrong.size(), shown)))
        s.violate(misOrdered, row.claimed, fmt::format("{}: {}", file, diagnosis.sentence));
}

void Ledger::contradiction(Invariant invariant, std::string_view label, std::string_view sentence)
{
    m_state->violate({invariant, label, "E-ALIGN-014"}, 0, std::string(sentence));
}

bool Ledger::hasItem(ItemIndex item) const
{
    return item.value < m_state->items() && m_state->covered[item.value];
}

std::uint64_t Ledger::itemsCovered() const
{
    return m_state->counts.accepted;
}

std::span<const Row> Ledger::lastRows() const
{
    return m_state->rows;
}

// A rank that computed more units than arrived was cut off or lost a race for a unit: nothing can
// be compared then, and coverage tells whether anything is missing. With equal unit counts all must
// be equal. Blocks of one process may lie on both sides of a reconnect, hence the sums from the
// back.
bool Ledger::State::compareTotals(std::uint64_t& compared, std::string& sentence,
                                  std::uint64_t& at) const
{
    for (const auto& [number, rank] : ranks) {
        for (const auto& totals : rank.totals) {
            wire::Sums received;
            std::string difference;
            bool isEqual = false;
            bool hasSameUnits = false;
            for (std::size_t i = totals.segments; i > 0 && !isEqual; --i) {
                add(received, rank.segments[i - 1]);
                if (received.units != totals.own.units)
                    continue;
                hasSameUnits = true;
                difference = differenceOf(totals.own, received);
                isEqual = difference.empty();
            }
            if (isEqual) {
                ++compared;
            } else if (hasSameUnits ||
                       totals.own.units < rank.segments[totals.segments - 1].units) {
                at = number;
                sentence = hasSameUnits ? fmt::format("rank {} counted {}", number, difference)
                                        : fmt::format("rank {} counted {} units, and {} arrived",
                                                      number, totals.own.units,
                                                      rank.segments[totals.segments - 1].units);
                return false;
            }
        }
    }
    if (!group || !world)
        return true;
    wire::Sums all;
    std::uint64_t told = 0;
    for (const auto& [number, rank] : ranks) {
        if (rank.latest) {
            add(all, *rank.latest);
            ++told;
        }
    }
    if (told != world->size)
        return true;
    std::string difference = differenceOf(*group, all);
    if (difference.empty() &&
        (group->units != all.units || group->scoredTokens != all.scoredTokens))
        difference = "other units or scored tokens";
    // Adding W doubles in another order moves the sum by at most W ulp.
    const double bound = static_cast<double>(world->size + 1) * 0x1p-52 * std::abs(all.lossSum);
    if (difference.empty() && !(std::abs(group->lossSum - all.lossSum) <= bound))
        difference = fmt::format("a loss of {} in place of {}", group->lossSum, all.lossSum);
    if (difference.empty()) {
        ++compared;
        return true;
    }
    at = 0;
    sentence = "the ranks' common reduction disagrees with their own totals: " + difference;
    return false;
}

Proof Ledger::proof(Stage stage) const
{
    const auto& s = *m_state;
    Proof proof;
    proof.samples = s.facts.samples;
    proof.items = s.items();
    proof.itemsCovered = s.counts.accepted;
    proof.units = s.facts.units;
    proof.planDigest = s.facts.planDigest;
    proof.dataDigest = s.facts.dataDigest;
    proof.outputDigest = s.digest.result();
    proof.counts = s.counts;

    std::uint64_t missing = 0;
    std::uint64_t missingSamples = 0;
    std::optional<std::uint64_t> lastMissingSample;
    for (std::uint64_t item = 0; item < proof.items; ++item) {
        if (s.covered[item] && !s.failed[item])
            continue;
        const std::uint64_t sample =
            item < s.facts.itemSample.size() ? s.facts.itemSample[item] : item;
        if (lastMissingSample != sample) {
            ++missingSamples;
            lastMissingSample = sample;
            if (proof.missingSamples.size() < shown)
                proof.missingSamples.push_back(sample);
        }
        if (s.covered[item])
            continue;
        ++missing;
        if (proof.missingItems.size() < shown)
            proof.missingItems.push_back(item);
    }
    proof.samplesCovered = proof.samples - std::min(missingSamples, proof.samples);

    std::vector<Misplaced> misplaced;
    for (const auto& [claimed, actual] : s.misplaced)
        misplaced.push_back({claimed, actual});
    proof.diagnosis = diagnose(misplaced, proof.items);

    std::string sumsSentence;
    std::uint64_t sumsAt = 0;
    const bool sumsAgree = s.compareTotals(proof.counts.totalsCompared, sumsSentence, sumsAt);

    bool isViolated = !sumsAgree;
    for (std::size_t i = 0; i < invariantCount; ++i) {
        const auto& violations = s.violations[i];
        Finding finding;
        finding.invariant = static_cast<Invariant>(i);
        finding.violations = violations.keys.size();
        finding.first.assign(violations.first.begin(), violations.first.end());
        finding.label = violations.label;
        finding.sentence = violations.sentence;
        if (finding.violations > 0) {
            finding.state = Finding::State::Violated;
            isViolated = true;
        }
        proof.findings.push_back(std::move(finding));
    }
    const auto findingOf = [&proof](Invariant invariant) -> Finding& {
        return proof.findings[static_cast<std::size_t>(invariant)];
    };
    auto& coverage = findingOf(Invariant::Coverage);
    if (missing > 0 && coverage.violations == 0) {
        coverage.state =
            stage == Stage::Finished ? Finding::State::Violated : Finding::State::NotCheckable;
        coverage.violations = missing;
        coverage.first = proof.missingItems;
        coverage.label = "missing";
    }
    auto& sums = findingOf(Invariant::Sums);
    if (!sumsAgree) {
        sums.state = Finding::State::Violated;
        ++sums.violations;
        sums.first.push_back(sumsAt);
        sums.label = sumMismatch.label;
        sums.sentence = sumsSentence;
    } else if (proof.counts.totalsCompared == 0 && sums.violations == 0) {
        sums.state = Finding::State::NotCheckable;
    }
    if (!s.hasHashes() && proof.items > 0)
        findingOf(Invariant::Identity).state = Finding::State::NotCheckable;
    if (s.filesExported.empty() && findingOf(Invariant::Position).violations == 0)
        findingOf(Invariant::Position).state = Finding::State::NotCheckable;
    if (!s.world && findingOf(Invariant::Provenance).violations == 0)
        findingOf(Invariant::Provenance).state = Finding::State::NotCheckable;

    if (isViolated) {
        proof.verdict = Verdict::Misaligned;
        std::string what = s.headline.empty() ? sumsSentence : s.headline;
        if (proof.diagnosis.pattern != Pattern::None)
            what = proof.diagnosis.sentence + " (" + what + ")";
        proof.sentence = what;
        if (missing > 0)
            proof.sentence += fmt::format("; {} of {} indices are missing: {}", missing,
                                          proof.items, listOf(proof.missingItems, missing));
        proof.sentence += ". Do not use the numbers of this run; find the cause in the gather and "
                          "run again.";
    } else if (stage == Stage::Running) {
        proof.verdict = Verdict::Running;
        proof.sentence = fmt::format("{} of {} indices arrived, nothing contradicts.",
                                     proof.itemsCovered, proof.items);
    } else if (missing > 0 || s.counts.errors > 0) {
        proof.verdict = Verdict::Incomplete;
        if (missing > 0) {
            const std::uint32_t unit = s.facts.itemUnit[proof.missingItems.front()];
            proof.sentence = fmt::format("{} of {} indices are missing: {}", missing, proof.items,
                                         listOf(proof.missingItems, missing));
            if (unit != noUnit)
                proof.sentence += fmt::format("; index {} is of unit {}, which {} had last",
                                              proof.missingItems.front(), unit, s.holderOf(unit));
        }
        if (!s.aside.empty())
            proof.sentence += fmt::format("{}unit {} was set aside", missing > 0 ? "; " : "",
                                          s.aside.begin()->first);
        if (missing > 0 && !s.firstDamage.empty())
            proof.sentence += "; " + s.firstDamage;
        if (s.counts.errors > 0)
            proof.sentence += fmt::format("{}{} could not be computed",
                                          proof.sentence.empty() ? "" : "; ", s.counts.errors);
        proof.sentence += ". What was gathered is saved; `muster resume` computes the rest.";
    } else if (!s.hasHashes() && proof.items > 0) {
        proof.verdict = Verdict::Unverified;
        proof.sentence = "Each index is there once, and without hashes their content and order "
                         "cannot be proved.";
    } else {
        proof.verdict = Verdict::Aligned;
        proof.sentence = fmt::format("{} of {} samples, each exactly once, with the content and at "
                                     "the place that were planned.",
                                     proof.samplesCovered, proof.samples);
    }
    return proof;
}

std::string proofJson(const Proof& proof, std::string_view version)
{
    nlohmann::ordered_json json;
    json["schema"] = 1;
    json["program"] = fmt::format("muster {}", version);
    json["verdict"] = word(proof.verdict);
    json["samples"] = {{"planned", proof.samples}, {"covered", proof.samplesCovered}};
    json["items"] = {{"planned", proof.items}, {"covered", proof.itemsCovered}};
    json["units"] = proof.units;
    json["errors"] = proof.counts.errors;
    json["missing_items"] = proof.missingItems;
    json["missing_samples"] = proof.missingSamples;
    auto& invariants = json["invariants"] = nlohmann::ordered_json::array();
    for (const auto& finding : proof.findings)
        invariants.push_back({{"id", idOf(finding.invariant)},
                              {"name", nameOf(finding.invariant)},
                              {"rule", ruleOf(finding.invariant)},
                              {"violations", finding.violations},
                              {"first", finding.first}});
    json["digests"] = {{"plan", proof.planDigest.hex()},
                       {"data", proof.dataDigest.hex()},
                       {"outputs", proof.outputDigest.hex()}};
    json["digest_rule"] = "sum modulo 2^128 of XXH3-128 over (index, hash of content and payload)";
    // Sentences may hold text of a rank; broken UTF-8 must not end the program.
    return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string ledgerJson(const Proof& proof)
{
    nlohmann::ordered_json json;
    json["verdict"] = word(proof.verdict);
    json["sentence"] = proof.sentence;
    auto& invariants = json["invariants"] = nlohmann::ordered_json::array();
    for (const auto& finding : proof.findings)
        invariants.push_back({{"id", idOf(finding.invariant)},
                              {"name", nameOf(finding.invariant)},
                              {"state", word(finding.state)},
                              {"violations", finding.violations},
                              {"first", finding.first},
                              {"label", finding.label},
                              {"sentence", finding.sentence}});
    const auto& counts = proof.counts;
    json["counts"] = {{"rows", counts.rows},
                      {"accepted", counts.accepted},
                      {"errors", counts.errors},
                      {"pads_removed", counts.pads},
                      {"resent", counts.resent},
                      {"repeated", counts.repeated},
                      {"damaged_frames", counts.damagedFrames},
                      {"units_set_aside", counts.unitsSetAside},
                      {"ranks_heard", counts.ranksHeard},
                      {"totals_compared", counts.totalsCompared}};
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace muster::align
