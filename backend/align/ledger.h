// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "align/verdict.h"
#include "base/hash.h"
#include "base/ids.h"
#include "wire/message.h"
#include "wire/output.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace muster::align {

/// What the plan says, before anything arrives.
struct PlanFacts {
    std::uint64_t samples = 0;
    std::vector<std::uint64_t> itemSample; ///< sample of each item [items]
    std::vector<Hash128> itemHash;         ///< planned content hash of each item [items]
    std::vector<std::vector<std::uint64_t>> unitItems; ///< items of each unit [units]
    std::vector<RankId> owners;                        ///< of fixed shares [units]; else empty
    std::uint32_t ranks = 1;
    std::uint64_t plannedPads = 0; ///< copies on a compatibility list; flagged, never computed
};

/// What became of one arriving block.
struct BlockReceipt {
    bool isUsable = true;     ///< every row is right: store it
    bool isDuplicate = false; ///< the unit was there already
    bool isEqual = true;      ///< of a duplicate: the same bits
    std::optional<std::uint64_t> firstDifferingItem;
    std::string code;     ///< of the fault, such as `E-ALIGN-002`
    std::string sentence; ///< what is wrong with it; empty when nothing is
};

/// Who was given, computed and returned which item: the book that the verdict is read from.
///
/// Fed in the order of arrival, from one thread. A fault once seen is never forgotten: a run whose
/// gather contradicted the plan does not become aligned because the work was done again. About 40
/// bytes for each item.
class Ledger final {
public:
    explicit Ledger(PlanFacts facts);

    /// The unit was handed to the rank; with fixed shares this also moves it to another owner.
    void assigned(UnitId unit, RankId rank);
    /// A rank is ready. `generation` counts the launches; a new one starts the rank's totals anew.
    void hello(RankId rank, std::uint32_t generation, std::uint32_t world,
               const std::string& modelDigest, const std::string& kernels,
               const std::string& version);
    /// Outputs of a whole unit arrived over the connection of rank `by` (in collective rounds: of
    /// the rank that they were relayed for).
    [[nodiscard]] BlockReceipt block(const wire::OutputBlock& block, RankId by);
    /// Outputs of a unit that is not in the plan.
    void foreignUnit(UnitId unit, RankId by);
    /// Bytes of the rank's connection were damaged.
    void damagedFrame(RankId rank, const std::string& code);
    /// Nobody could compute the unit.
    void setAside(UnitId unit, RankId last);
    /// The totals that the rank, or rank 0 for all ranks, formed by itself (I6).
    void totals(RankId rank, const wire::Sums& own);
    void groupTotals(const wire::Sums& sums);
    /// The exported files have `rows` rows and row p has index p, or not (I5).
    void exported(std::uint64_t rows, bool inOrder);

    /// The verdict over what was fed so far. `isOver`: nothing more will come; before that, missing
    /// rows mean Running.
    [[nodiscard]] Conclusion conclude(bool isOver) const;

    /// Over (item, planned hash, hash of the payload) of every received item; does not depend on
    /// order, ranks or schedule.
    [[nodiscard]] Hash128 outputsDigest() const;
    [[nodiscard]] std::uint64_t received() const { return m_received; }
    [[nodiscard]] std::uint64_t items() const { return m_facts.itemHash.size(); }
    /// Rank that the stored outputs of the unit came from.
    [[nodiscard]] std::optional<RankId> sourceOf(UnitId unit) const;

private:
    struct Finding {
        std::uint64_t count = 0;
        std::set<std::uint64_t> first;
        std::string sentence;
    };
    struct RankBook {
        std::uint32_t generation = 0;
        bool saidHello = false;
        std::uint32_t world = 0;
        std::string modelDigest;
        std::string kernels;
        std::string version;
        std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t>
            arrived; ///< unit, attempt → rows
        std::optional<wire::Sums> own;
        std::uint64_t damaged = 0;
    };

    void violate(Invariant invariant, std::uint64_t item, const std::string& sentence);
    [[nodiscard]] std::optional<std::uint64_t> itemWithHash(const Hash128& hash);

    PlanFacts m_facts;
    std::vector<std::uint32_t> m_unitOf;      ///< [items]
    std::vector<bool> m_have;                 ///< [items]
    std::vector<Hash128> m_payloadHash;       ///< [items]
    std::vector<RankId> m_source;             ///< [units], noRank = not received
    std::vector<std::vector<RankId>> m_given; ///< [units]
    std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> m_byHash; ///< made when needed
    std::map<std::uint32_t, RankBook> m_ranks;
    std::array<Finding, invariantCount> m_findings;
    std::vector<Displacement> m_displaced;
    std::vector<UnitId> m_setAside;
    std::optional<wire::Sums> m_group;
    std::uint64_t m_received = 0;
    std::uint64_t m_duplicates = 0;
    std::uint64_t m_pads = 0;
    std::uint64_t m_rows = 0;
    std::uint64_t m_damaged = 0;
    std::uint64_t m_exportedRows = 0;
    bool m_isExported = false;
    bool m_exportInOrder = true;
};

/// What a proof says beside the ledger.
struct ProofFacts {
    std::string version; ///< of Muster
    Hash128 data;
    Hash128 tokenizer;
    Hash128 evaluation;
    Hash128 plan;
    std::string model;
    std::uint64_t samples = 0;
    std::uint64_t items = 0;
    std::uint64_t units = 0;
};

/// `proof.json`: invariants, counts and digests. Holds nothing that depends on ranks, schedule or
/// time when the run is aligned, so equal runs have equal proofs.
[[nodiscard]] std::string proofJson(const ProofFacts& facts, const Conclusion& conclusion,
                                    const Hash128& outputsDigest);

} // namespace muster::align
