// SPDX-License-Identifier: Apache-2.0
#include "align/ledger.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cassert>

namespace muster::align {

namespace {

constexpr std::size_t firstCount = 20;
constexpr std::size_t mostDisplaced = 1U << 20U;

std::size_t at(std::uint64_t index)
{
    return static_cast<std::size_t>(index);
}

std::string plural(std::uint64_t count, const char* one, const char* many)
{
    return fmt::format("{} {}", count, count == 1 ? one : many);
}

} // namespace

Ledger::Ledger(PlanFacts facts)
    : m_facts(std::move(facts)), m_unitOf(m_facts.itemHash.size(), 0),
      m_have(m_facts.itemHash.size(), false), m_payloadHash(m_facts.itemHash.size()),
      m_source(m_facts.unitItems.size(), noRank), m_given(m_facts.unitItems.size())
{
    assert(m_facts.itemSample.size() == m_facts.itemHash.size());
    for (std::size_t u = 0; u < m_facts.unitItems.size(); ++u)
        for (const std::uint64_t item : m_facts.unitItems[u])
            m_unitOf[at(item)] = static_cast<std::uint32_t>(u);
}

void Ledger::violate(Invariant invariant, std::uint64_t item, const std::string& sentence)
{
    Finding& finding = m_findings[static_cast<std::size_t>(invariant)];
    ++finding.count;
    finding.first.insert(item);
    if (finding.first.size() > firstCount)
        finding.first.erase(std::prev(finding.first.end()));
    if (finding.sentence.empty())
        finding.sentence = sentence;
}

void Ledger::assigned(UnitId unit, RankId rank)
{
    auto& given = m_given[at(unit.value)];
    if (std::find(given.begin(), given.end(), rank) == given.end())
        given.push_back(rank);
}

void Ledger::hello(RankId rank, std::uint32_t generation, std::uint32_t world,
                   const std::string& modelDigest, const std::string& kernels,
                   const std::string& version)
{
    RankBook& book = m_ranks[rank.value];
    if (!book.saidHello || book.generation != generation) {
        book.arrived.clear();
        book.own.reset();
    }
    book.saidHello = true;
    book.generation = generation;
    book.world = world;
    book.modelDigest = modelDigest;
    book.kernels = kernels;
    book.version = version;
}

std::optional<std::uint64_t> Ledger::itemWithHash(const Hash128& hash)
{
    if (m_byHash.empty())
        for (std::size_t i = 0; i < m_facts.itemHash.size(); ++i)
            m_byHash[m_facts.itemHash[i].low].push_back(i);
    const auto found = m_byHash.find(hash.low);
    if (found == m_byHash.end())
        return std::nullopt;
    for (const std::uint64_t item : found->second)
        if (m_facts.itemHash[at(item)] == hash)
            return item;
    return std::nullopt;
}

BlockReceipt Ledger::block(const wire::OutputBlock& block, RankId by)
{
    BlockReceipt receipt;
    const std::uint64_t unit = block.unit.value;
    const auto fault = [&](Invariant invariant, std::uint64_t item, const char* code,
                           std::string sentence) {
        violate(invariant, item, sentence);
        receipt.isUsable = false;
        if (receipt.sentence.empty()) {
            receipt.code = code;
            receipt.sentence = std::move(sentence);
        }
    };
    if (unit >= m_facts.unitItems.size()) {
        foreignUnit(block.unit, by);
        receipt.isUsable = false;
        receipt.code = "E-ALIGN-003";
        receipt.sentence =
            fmt::format("rank {} sent unit {}, which is not in the plan", by.value, unit);
        return receipt;
    }
    const auto& planned = m_facts.unitItems[at(unit)];
    const std::uint64_t anchor = planned.empty() ? 0 : planned.front();
    RankBook& book = m_ranks[by.value];
    book.arrived[{unit, block.attempt}] = static_cast<std::uint64_t>(
        std::count_if(block.outputs.begin(), block.outputs.end(),
                      [](const wire::Output& o) { return (o.flags & wire::padFlag) == 0; }));
    m_rows += block.outputs.size();

    if (block.rank != by)
        fault(Invariant::Ownership, anchor, "E-ALIGN-004",
              fmt::format("rank {} sent unit {} in the name of rank {}", by.value, unit,
                          block.rank.value));
    const auto& given = m_given[at(unit)];
    if (std::find(given.begin(), given.end(), by) == given.end())
        fault(Invariant::Ownership, anchor, "E-ALIGN-004",
              fmt::format("rank {} returned unit {}, which it was never given", by.value, unit));

    // Places of the unit's items in this block.
    std::unordered_map<std::uint64_t, std::size_t> seen;
    seen.reserve(block.outputs.size());
    for (std::size_t row = 0; row < block.outputs.size(); ++row) {
        const wire::Output& output = block.outputs[row];
        const std::uint64_t item = output.item.value;
        if ((output.flags & wire::padFlag) != 0) {
            ++m_pads;
            continue;
        }
        if (item >= m_facts.itemHash.size()) {
            fault(Invariant::Range, item, "E-ALIGN-003",
                  fmt::format("rank {} returned index {}, but the last one is {}", by.value, item,
                              m_facts.itemHash.size() - 1));
            continue;
        }
        const bool isPlanned = m_unitOf[at(item)] == unit;
        const bool hashFits = output.hash == m_facts.itemHash[at(item)];
        if (!hashFits) {
            const auto owner = itemWithHash(output.hash);
            if (owner && m_displaced.size() < mostDisplaced)
                m_displaced.push_back({item, *owner});
            fault(Invariant::Identity, item, "E-ALIGN-002",
                  owner ? fmt::format("the row of rank {} at index {} has the content of index {}",
                                      by.value, item, *owner)
                        : fmt::format("the row of rank {} at index {} has a content that is not in "
                                      "the plan",
                                      by.value, item));
        } else if (!isPlanned) {
            fault(Invariant::Padding, item, "E-ALIGN-007",
                  fmt::format("rank {} returned index {} once more, with unit {}, as if padding "
                              "were to be scored",
                              by.value, item, unit));
        }
        if (!isPlanned)
            continue;
        if (const auto earlier = seen.find(item); earlier != seen.end()) {
            const bool isEqual = block.outputs[earlier->second].payload == output.payload;
            fault(Invariant::Coverage, item, "E-ALIGN-001",
                  fmt::format("rank {} returned index {} twice in one unit, {}", by.value, item,
                              isEqual ? "with the same result" : "with two results"));
            continue;
        }
        seen.emplace(item, row);
    }
    for (const std::uint64_t item : planned)
        if (!seen.contains(item))
            fault(Invariant::Coverage, item, "E-ALIGN-001",
                  fmt::format("rank {} returned unit {} without index {}", by.value, unit, item));
    if (!receipt.isUsable)
        return receipt;

    if (m_source[at(unit)] != noRank) {
        receipt.isDuplicate = true;
        for (const std::uint64_t item : planned) {
            const wire::Output& output = block.outputs[seen.at(item)];
            if (hash128(output.payload) != m_payloadHash[at(item)]) {
                receipt.isEqual = false;
                if (!receipt.firstDifferingItem)
                    receipt.firstDifferingItem = item;
            }
        }
        if (receipt.isEqual) {
            m_duplicates += planned.size();
            return receipt;
        }
        receipt.code = "E-ALIGN-005";
        receipt.sentence = fmt::format(
            "not reproducible: rank {} returned unit {} again with another result for index {}; "
            "the first result was kept",
            by.value, unit, *receipt.firstDifferingItem);
        violate(Invariant::Coverage, *receipt.firstDifferingItem, receipt.sentence);
        return receipt;
    }
    m_source[at(unit)] = by;
    for (const std::uint64_t item : planned) {
        m_have[at(item)] = true;
        m_payloadHash[at(item)] = hash128(block.outputs[seen.at(item)].payload);
        ++m_received;
    }
    return receipt;
}

void Ledger::foreignUnit(UnitId unit, RankId by)
{
    violate(Invariant::Range, unit.value,
            fmt::format("rank {} sent outputs of unit {}, which is not in the plan", by.value,
                        unit.value));
}

void Ledger::damagedFrame(RankId rank, const std::string& code)
{
    ++m_ranks[rank.value].damaged;
    ++m_damaged;
    (void)code;
}

void Ledger::setAside(UnitId unit, RankId last)
{
    (void)last;
    m_setAside.push_back(unit);
}

void Ledger::totals(RankId rank, const wire::Sums& own)
{
    m_ranks[rank.value].own = own;
}

void Ledger::groupTotals(const wire::Sums& sums)
{
    m_group = sums;
}

void Ledger::exported(std::uint64_t rows, bool inOrder)
{
    m_isExported = true;
    m_exportedRows = rows;
    m_exportInOrder = inOrder;
}

std::optional<RankId> Ledger::sourceOf(UnitId unit) const
{
    const RankId source = m_source[at(unit.value)];
    return source == noRank ? std::nullopt : std::optional(source);
}

Hash128 Ledger::outputsDigest() const
{
    UnorderedDigest digest;
    for (std::size_t i = 0; i < m_have.size(); ++i)
        if (m_have[i]) {
            const std::array<Hash128, 2> both{m_facts.itemHash[i], m_payloadHash[i]};
            digest.add(i, hash128(std::as_bytes(std::span(both))));
        }
    return digest.result();
}

Conclusion Ledger::conclude(bool isOver) const
{
    Conclusion result;
    const std::uint64_t total = m_facts.itemHash.size();
    result.missing = total - m_received;
    result.duplicates = m_duplicates;
    result.padsRemoved = m_pads;
    auto findings = m_findings;
    const auto add = [&](Invariant invariant, std::string sentence) {
        Finding& finding = findings[static_cast<std::size_t>(invariant)];
        ++finding.count;
        if (finding.sentence.empty())
            finding.sentence = std::move(sentence);
    };

    // I5: what was written.
    if (m_isExported && (!m_exportInOrder || m_exportedRows != m_facts.samples))
        add(Invariant::Position,
            fmt::format("the exported file has {} rows for {} samples{}", m_exportedRows,
                        m_facts.samples, m_exportInOrder ? "" : ", not in order"));
    // I6: the ranks' own totals against what arrived from them, and rank 0's against all.
    std::uint64_t sumsChecked = 0;
    std::int64_t allItems = 0;
    bool allSaid = !m_ranks.empty();
    for (const auto& [number, book] : m_ranks) {
        if (!book.saidHello)
            continue;
        if (!book.own) {
            allSaid = false;
            continue;
        }
        std::int64_t rows = 0;
        for (const auto& [unit, count] : book.arrived)
            rows += static_cast<std::int64_t>(count);
        ++sumsChecked;
        allItems += book.own->items;
        if (rows != book.own->items)
            add(Invariant::Sums, fmt::format("rank {} counted {} items itself, but {} arrived",
                                             number, book.own->items, rows));
    }
    if (m_group && allSaid) {
        ++sumsChecked;
        if (m_group->items != allItems)
            add(Invariant::Sums, fmt::format("the ranks' common total is {} items, their own "
                                             "totals add up to {}",
                                             m_group->items, allItems));
    }
    // I8: one world.
    const RankBook* model = nullptr;
    std::uint64_t hellos = 0;
    for (const auto& [number, book] : m_ranks) {
        if (!book.saidHello)
            continue;
        ++hellos;
        if (book.world != m_facts.ranks)
            add(Invariant::Provenance, fmt::format("rank {} belongs to a world of {} ranks, not {}",
                                                   number, book.world, m_facts.ranks));
        if (model == nullptr) {
            model = &book;
            continue;
        }
        if (book.modelDigest != model->modelDigest)
            add(Invariant::Provenance, fmt::format("rank {} has another model", number));
        if (book.version != model->version)
            add(Invariant::Provenance, fmt::format("rank {} is of version {}, others of {}", number,
                                                   book.version, model->version));
        if (book.kernels != model->kernels)
            add(Invariant::Provenance,
                fmt::format("rank {} computes with other kernels: {} instead of {}", number,
                            book.kernels, model->kernels));
    }

    std::vector<Displacement> displaced = m_displaced;
    std::sort(displaced.begin(), displaced.end(), [](const auto& a, const auto& b) {
        return std::pair(a.claimed, a.found) < std::pair(b.claimed, b.found);
    });
    displaced.erase(std::unique(displaced.begin(), displaced.end()), displaced.end());
    if (!displaced.empty())
        findings[static_cast<std::size_t>(Invariant::Identity)].sentence = diagnose(displaced);

    const auto checked = [&](Invariant invariant) -> std::uint64_t {
        switch (invariant) {
        case Invariant::Coverage:
        case Invariant::Identity:
        case Invariant::Range:
        case Invariant::Ownership:
            return total;
        case Invariant::Position:
            return m_isExported ? m_exportedRows : 0;
        case Invariant::Sums:
            return sumsChecked;
        case Invariant::Padding:
            return total;
        case Invariant::Provenance:
            return hellos;
        }
        return 0;
    };
    std::string worst;
    for (std::size_t i = 0; i < invariantCount; ++i) {
        InvariantResult& invariant = result.invariants[i];
        const Finding& finding = findings[i];
        invariant.checked = checked(static_cast<Invariant>(i));
        invariant.violations = finding.count;
        invariant.first.assign(finding.first.begin(), finding.first.end());
        invariant.sentence = finding.sentence;
        invariant.state = finding.count > 0                     ? InvariantState::Violated
                          : invariant.checked == 0 && total > 0 ? InvariantState::NotChecked
                                                                : InvariantState::Ok;
        if (finding.count > 0 && worst.empty())
            worst = fmt::format("{} {} is violated: {}", invariantCode(static_cast<Invariant>(i)),
                                invariantName(static_cast<Invariant>(i)), finding.sentence);
    }
    // Identity says more than the hole that a displaced row leaves.
    const InvariantResult& identity =
        result.invariants[static_cast<std::size_t>(Invariant::Identity)];
    if (identity.violations > 0)
        worst = "I2 identity is violated: " + identity.sentence;

    InvariantResult& coverage = result.invariants[static_cast<std::size_t>(Invariant::Coverage)];
    std::string hole;
    if (result.missing > 0 && isOver) {
        coverage.state = InvariantState::Violated;
        coverage.violations += result.missing;
        std::string list;
        std::vector<std::uint64_t> first;
        for (std::size_t i = 0; i < m_have.size() && first.size() < firstCount; ++i)
            if (!m_have[i])
                first.push_back(i);
        if (coverage.first.empty())
            coverage.first = first;
        hole = fmt::format("{} of {} are missing, the first {}",
                           plural(result.missing, "item", "items"), total,
                           fmt::join(first.begin(),
                                     first.begin() + static_cast<std::ptrdiff_t>(
                                                         std::min<std::size_t>(first.size(), 5)),
                                     ", "));
        if (!m_setAside.empty())
            hole += fmt::format("; {} could not be computed by any rank",
                                plural(m_setAside.size(), "unit", "units"));
        if (m_damaged > 0)
            hole += fmt::format("; {} arrived damaged (wrong checksum or cut off)",
                                plural(m_damaged, "frame", "frames"));
        if (coverage.sentence.empty())
            coverage.sentence = hole;
    }

    if (!worst.empty()) {
        result.verdict = Verdict::Misaligned;
        result.sentence =
            worst + ". Do not use these numbers; the findings stand in proof.json and in the log.";
    } else if (result.missing > 0 && !isOver) {
        result.verdict = Verdict::Running;
        result.sentence = fmt::format("{} of {} items are here.", m_received, total);
    } else if (result.missing > 0) {
        result.verdict = Verdict::Incomplete;
        result.sentence = hole + ". What is there is right; `muster resume` computes the rest.";
    } else {
        result.verdict = Verdict::Aligned;
        result.sentence =
            fmt::format("{} of {} items, each exactly once, in its own place.", m_received, total);
    }
    return result;
}

std::string proofJson(const ProofFacts& facts, const Conclusion& conclusion,
                      const Hash128& outputsDigest)
{
    nlohmann::ordered_json proof;
    proof["format"] = "muster-proof/1";
    proof["version"] = facts.version;
    proof["verdict"] = verdictWord(conclusion.verdict);
    proof["sentence"] = conclusion.sentence;
    proof["samples"] = facts.samples;
    proof["items"] = facts.items;
    proof["units"] = facts.units;
    proof["missing"] = conclusion.missing;
    nlohmann::ordered_json digests;
    digests["data"] = facts.data.hex();
    digests["tokenizer"] = facts.tokenizer.hex();
    digests["evaluation"] = facts.evaluation.hex();
    digests["plan"] = facts.plan.hex();
    digests["model"] = facts.model;
    digests["outputs"] = outputsDigest.hex();
    proof["digests"] = std::move(digests);
    nlohmann::ordered_json invariants = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < invariantCount; ++i) {
        const InvariantResult& found = conclusion.invariants[i];
        nlohmann::ordered_json entry;
        entry["id"] = invariantCode(static_cast<Invariant>(i));
        entry["name"] = invariantName(static_cast<Invariant>(i));
        entry["state"] = found.state == InvariantState::Ok         ? "ok"
                         : found.state == InvariantState::Violated ? "violated"
                                                                   : "not checked";
        entry["violations"] = found.violations;
        if (!found.first.empty())
            entry["first"] = found.first;
        if (!found.sentence.empty())
            entry["sentence"] = found.sentence;
        invariants.push_back(std::move(entry));
    }
    proof["invariants"] = std::move(invariants);
    return proof.dump(2) + "\n";
}

} // namespace muster::align
