// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "align/diagnosis.h"
#include "align/verdict.h"
#include "base/hash.h"
#include "base/ids.h"
#include "wire/message.h"
#include "wire/output.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::align {

/// What the plan says, told to the ledger once.
struct PlanFacts {
    std::uint64_t samples = 0;
    std::uint64_t units = 0;
    std::vector<std::uint64_t> itemSample;    ///< SampleIndex of each item, rising [items]
    std::vector<std::uint32_t> itemUnit;      ///< UnitId of each item; noUnit for none [items]
    std::vector<Hash128> itemHash;            ///< wire::itemHash() [items], or empty: not checkable
    wire::UnitKind kind = wire::UnitKind::Qa; ///< LM: losses are summed too (I6)
    std::vector<RankId> owners;               ///< fixed shares [units]; empty = ranks pull
    Hash128 planDigest;
    Hash128 dataDigest;
};
inline constexpr std::uint32_t noUnit = 0xFFFFFFFFU;

/// What became of one row of a block.
enum class Row {
    Accepted,
    AlreadyHave,   ///< an equal copy of a row that is there: a re-sent or speculative unit
    Conflict,      ///< a copy with other bits: the first is kept (F-07)
    Foreign,       ///< the content of another index (I2, I5)
    OutOfRange,    ///< no such index (I3)
    WrongHash,     ///< content that is nowhere in the plan (I2)
    WrongOwner,    ///< the rank was never given the unit, or names another rank (I4)
    NotOfUnit,     ///< an index of another unit that nobody gave with this one (I4)
    Repeated,      ///< the same index twice in one block (I1)
    ScoredPadding, ///< a copy of a row of another unit without the pad flag (I7)
    Pad            ///< flagged padding, removed
};

/// What became of a block. Exactly one of these: usable (store it, acknowledge it), a duplicate
/// (acknowledge it), or neither (the unit must be computed again).
struct BlockResult {
    bool isUsable = false;    ///< complete, right, and the first
    bool isDuplicate = false; ///< the unit is there already; the first result is kept
    bool isEqual = true;      ///< duplicate: the same bits
    std::optional<std::uint64_t> firstDifferingItem;
    std::string code;     ///< `E-ALIGN-…`; empty when nothing is wrong
    std::string sentence; ///< what is wrong, which index and rank; empty when nothing is wrong
};

/// Counts that depend on the schedule; for screens and the alignment block of results.json.
struct LedgerCounts {
    std::uint64_t rows = 0;     ///< received, all kinds
    std::uint64_t accepted = 0; ///< items covered
    std::uint64_t errors = 0;   ///< of these, rows that say why they could not be computed
    std::uint64_t pads = 0;     ///< flagged padding removed
    std::uint64_t resent = 0;   ///< rows of a block that the same rank sent again
    std::uint64_t repeated = 0; ///< equal rows of a second computation
    std::uint64_t damagedFrames = 0;
    std::uint64_t unitsSetAside = 0;
    std::uint64_t ranksHeard = 0; ///< that said hello
    std::uint64_t totalsCompared = 0;
    bool operator==(const LedgerCounts&) const = default;
};

/// The outcome of a run in one value.
struct Proof {
    Verdict verdict = Verdict::Running;
    std::string sentence;          ///< what happened, which indices and ranks, what to do
    std::vector<Finding> findings; ///< I1 to I8 in order
    std::uint64_t samples = 0;
    std::uint64_t samplesCovered = 0; ///< all items accepted without error
    std::uint64_t items = 0;
    std::uint64_t itemsCovered = 0;
    std::uint64_t units = 0;
    std::vector<std::uint64_t> missingItems;   ///< first 20
    std::vector<std::uint64_t> missingSamples; ///< first 20
    Diagnosis diagnosis;
    Hash128 planDigest;
    Hash128 dataDigest;
    Hash128 outputDigest; ///< unordered, over (index, content and payload) of the accepted rows
    LedgerCounts counts;
};

/// The document proof.json: what was proved and the digests, in a form that is the same for every
/// schedule, gather mode and number of ranks. `version` is that of the program. Ends with a line
/// feed.
[[nodiscard]] std::string proofJson(const Proof& proof, std::string_view version);
/// The schedule-dependent rest as one JSON object: counts and the state of every invariant.
[[nodiscard]] std::string ledgerJson(const Proof& proof);

/// Who owned, computed and returned which index: checks every row that arrives against the plan and
/// forms the verdict from invariants I1 to I8 (ux.md 3.0).
///
/// Pure logic: no clock, no files. Used by one thread at a time. About 40 bytes per item.
///
/// Legal and only counted: a block that the same rank sends again after a reconnect, a second
/// computation with equal bits, flagged padding, damaged frames (the rank sends again; what never
/// arrives is missing). Everything else that does not fit is a violation that stays, even when the
/// unit is computed again properly: a gather that loses, mixes or repeats rows once is not to be
/// believed.
class Ledger final {
public:
    explicit Ledger(PlanFacts facts);
    ~Ledger();
    Ledger(Ledger&&) noexcept;
    Ledger& operator=(Ledger&&) noexcept;

    /// The unit was handed to this rank (also before a block of an earlier session is replayed).
    void assigned(UnitId unit, RankId rank);
    /// A process took the place `rank`; its own totals count from here. All of a run must name the
    /// same world size, model, kernels and program version (I8).
    void hello(RankId rank, std::uint64_t world, std::string_view modelDigest,
               std::string_view kernels, std::string_view version);
    /// All outputs of a unit as they arrived over the connection of rank `from`. On any violation
    /// nothing of the block is accepted.
    [[nodiscard]] BlockResult block(const wire::OutputBlock& block, RankId from);
    /// Outputs of a unit that is not in the plan, or of a rank that does not exist.
    void foreignUnit(UnitId unit, RankId from);
    /// A frame of this rank was cut or its checksum wrong; it was thrown away.
    void damagedFrame(RankId rank, std::string_view code);
    /// The unit was given up (it ended its rank twice, or was refused too often).
    void setAside(UnitId unit, RankId lastRank);
    /// What the process at `rank` counted by itself, told at its end (I6).
    void totals(RankId rank, const wire::Sums& own);
    /// What the ranks reduced among themselves (I6).
    void groupTotals(const wire::Sums& group);
    /// The indices of an exported file in file order (I5); must be 0, 1, 2, ….
    void exported(std::string_view file, std::span<const std::uint64_t> indices);
    /// Anything else that contradicts, such as a stored digest that differs.
    void contradiction(Invariant invariant, std::string_view label, std::string_view sentence);

    [[nodiscard]] bool hasItem(ItemIndex item) const;
    [[nodiscard]] std::uint64_t itemsCovered() const;
    /// What became of each row of the block that was given last [outputs].
    [[nodiscard]] std::span<const Row> lastRows() const;

    enum class Stage { Running, Finished };
    /// The verdict as things stand. Running gives RUNNING while nothing is violated.
    [[nodiscard]] Proof proof(Stage stage = Stage::Finished) const;

private:
    struct State;
    std::unique_ptr<State> m_state;
};

} // namespace muster::align
