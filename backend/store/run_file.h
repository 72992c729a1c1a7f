// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "base/ids.h"
#include "base/result.h"
#include "wire/output.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::store {

/// Version of the tables (`user_version` of the file). Another version is refused.
inline constexpr std::uint32_t schemaVersion = 2;
/// `application_id` of the file: the letters MSTR.
inline constexpr std::int32_t applicationId = 0x4D535452;

/// Keys of meta() that other parts read.
namespace key {
inline constexpr std::string_view runId = "run_id";
inline constexpr std::string_view name = "name";
inline constexpr std::string_view createdNs = "created_ns"; ///< wall clock, decimal
inline constexpr std::string_view finishedNs = "finished_ns";
inline constexpr std::string_view task = "task";
inline constexpr std::string_view model = "model";
inline constexpr std::string_view data = "data";
inline constexpr std::string_view ranks = "ranks";
inline constexpr std::string_view version = "version"; ///< of the program that made the run
inline constexpr std::string_view summary = "summary"; ///< the last line of the run
inline constexpr std::string_view verdict = "verdict"; ///< the word, such as ALIGNED
inline constexpr std::string_view tags = "tags";       ///< separated by spaces
} // namespace key

/// Names of document().
namespace doc {
inline constexpr std::string_view config = "config.toml";   ///< the resolved configuration
inline constexpr std::string_view origin = "config.origin"; ///< where each value came from
inline constexpr std::string_view environment = "environment.json";
inline constexpr std::string_view verdict = "verdict.json";
inline constexpr std::string_view proof = "proof.json";
} // namespace doc

/// A context (paragraph) of the data set. `tokenBegin` and `tokenEnd` are byte offsets into `text`,
/// one per token of the whole context, so that outputs can be decoded without a tokenizer.
struct ContextRecord {
    std::string id;
    std::string text;
    std::vector<std::uint64_t> tokenBegin; ///< [tokens]
    std::vector<std::uint64_t> tokenEnd;   ///< [tokens], same length
    bool operator==(const ContextRecord&) const = default;
};

/// A sample; its SampleIndex is its place in the order of adding.
struct SampleRecord {
    std::string id;
    Hash128 hash;
    std::uint64_t context = 0; ///< number of the context in the order of adding
    std::string question;
    std::string answersJson; ///< as the data set has them
    bool isImpossible = false;
    std::uint64_t source = 0; ///< place in the source file before subset rules
    bool operator==(const SampleRecord&) const = default;
};

/// An item; its ItemIndex is its place in the order of adding. The context window that it covers is
/// [firstContextToken, firstContextToken + contextTokens) of the context's tokens, and stands in
/// the item's own tokens from `contextAt` on.
struct ItemRecord {
    SampleIndex sample;
    std::uint32_t firstContextToken = 0;
    std::uint32_t contextTokens = 0;
    std::uint32_t contextAt = 0;
    std::uint32_t tokens = 0;
    Hash128 hash; ///< wire::itemHash()
    bool operator==(const ItemRecord&) const = default;
};

/// A unit; its UnitId is its place in the order of adding.
struct UnitRecord {
    std::vector<std::uint64_t> items; ///< ItemIndex of each
    double cost = 0.0;                ///< predicted, any unit of measure
    std::uint64_t tokens = 0;         ///< real tokens
    bool operator==(const UnitRecord&) const = default;
};

/// What is said once about a plan. The counts are filled in by PlanWriter::finish().
struct PlanRecord {
    Hash128 digest;
    std::string schedule;
    std::vector<std::uint32_t> owners; ///< rank of each unit [units]; empty for a pulled schedule
    std::string detailJson;            ///< such as the compatibility lists; `{}` for none
    std::uint64_t contexts = 0;
    std::uint64_t samples = 0;
    std::uint64_t items = 0;
    std::uint64_t units = 0;
    bool operator==(const PlanRecord&) const = default;
};

/// Facts about one finished unit, without its payload.
struct OutputRecord {
    UnitId unit;
    RankId rank;
    std::uint32_t generation = 0; ///< how often the rank's group had been started before
    std::uint32_t attempt = 0;
    std::uint64_t sequence = 0;
    std::int64_t arrivalNs = 0; ///< controller's monotonic clock, as are the next two if corrected
    std::int64_t startedNs = 0;
    std::int64_t finishedNs = 0;
    std::string node;
    std::uint64_t realTokens = 0;
    std::uint64_t padTokens = 0;
    bool operator==(const OutputRecord&) const = default;
};

/// A later result for a unit that was already there, and how the comparison ended.
struct DuplicateRecord {
    UnitId unit;
    RankId rank;
    std::uint32_t generation = 0;
    std::uint32_t attempt = 0;
    std::int64_t arrivalNs = 0;
    bool isEqual = true;
    std::optional<std::uint64_t> firstDifferingItem;
    std::string detail;
    bool operator==(const DuplicateRecord&) const = default;
};

/// One start of a rank.
struct RankRecord {
    RankId rank;
    std::uint32_t generation = 0;
    std::string helloJson;
    std::string statsJson; ///< its own totals and time accounting; `{}` until it said goodbye
    bool operator==(const RankRecord&) const = default;
};

/// One line of the event log.
struct EventRecord {
    std::int64_t wallNs = 0;
    std::uint32_t level = 0; ///< 0 information, 1 notice, 2 warning, 3 error
    std::string code;        ///< such as `E-RUN-014`; may be empty
    std::string text;
    std::optional<RankId> rank;
    std::optional<UnitId> unit;
    bool operator==(const EventRecord&) const = default;
};

/// One point of the time series of a rank (counts since its start).
struct SeriesRecord {
    std::int64_t timeNs = 0; ///< controller's monotonic clock
    RankId rank;
    std::uint64_t items = 0;
    std::uint64_t tokens = 0;
    std::int64_t computeNs = 0;
    std::int64_t waitNs = 0;
    std::int64_t transferNs = 0;
    std::uint64_t bytes = 0;  ///< sent
    std::uint64_t memory = 0; ///< resident bytes
    bool operator==(const SeriesRecord&) const = default;
};

/// A sum that a rank or a level of the hierarchical reduction reported by itself (invariant I6).
struct SumRecord {
    std::string scope; ///< `rank`, `local`, `node`, `world`
    RankId rank;
    std::uint32_t generation = 0;
    std::string name; ///< such as `items`, `tokens`, `nll`
    std::int64_t integer = 0;
    double real = 0.0;
    bool operator==(const SumRecord&) const = default;
};

/// A decoded and scored prediction.
struct PredictionRecord {
    std::string text;
    std::optional<double> score;  ///< EM, loss sum, 1 for a right label; absent = incomplete
    std::optional<double> second; ///< F1, number of scored tokens, loss of the right label
    std::optional<double> nullOdds;
    std::vector<std::byte> nBest; ///< packed by the task
    bool operator==(const PredictionRecord&) const = default;
};

enum class Access { ReadOnly, ReadWrite };

class OutputWriter;
class PlanWriter;

/// The run file `run.muster`: one SQLite file that holds all that a run knows, so that it can be
/// resumed and verified without model, tokenizer or data files (DESIGN.md section 9).
///
/// WAL and synchronous FULL: what a commit returned for is on the disk. Every row carries a
/// CRC-32C, all numbers are range-checked, and the tables must be exactly those of this version, so
/// a damaged or hostile file gives an Error and never a crash. An object is used by one thread at a
/// time; several objects may have the same file open, one of them writing.
///
/// Errors of all functions: Io (`E-STORE-005`; `E-STORE-006` for a full disk), Integrity
/// (`E-STORE-007` damaged file, `E-STORE-008` damaged or impossible row, naming table and row).
class RunFile final {
public:
    /// Makes a new file; its folder must exist. Error: Invalid (`E-STORE-001`) when the file
    /// exists: a result is never overwritten.
    [[nodiscard]] static Result<RunFile> create(const std::filesystem::path& path);
    /// Opens a file. Errors: NotFound (`E-STORE-002`), Invalid (`E-STORE-003` not a run file,
    /// `E-STORE-004` other tables, `E-STORE-009` another schema version).
    [[nodiscard]] static Result<RunFile> open(const std::filesystem::path& path, Access access);

    RunFile(RunFile&&) noexcept;
    RunFile& operator=(RunFile&&) noexcept;
    ~RunFile();

    [[nodiscard]] const std::filesystem::path& path() const;

    [[nodiscard]] Status setMeta(std::string_view key, std::string_view value);
    [[nodiscard]] Result<std::optional<std::string>> meta(std::string_view key);
    [[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> allMeta();
    /// Stores or replaces a text under a name of `doc`.
    [[nodiscard]] Status setDocument(std::string_view name, std::string_view text);
    [[nodiscard]] Result<std::optional<std::string>> document(std::string_view name);

    /// Starts to write the plan; nothing of it is in the file before finish(). Error: Invalid
    /// (`E-STORE-010`) when the file has a plan.
    [[nodiscard]] Result<PlanWriter> planWriter();
    /// Nothing when no plan was written.
    [[nodiscard]] Result<std::optional<PlanRecord>> plan();
    /// Visits in order 0, 1, 2, …; a visitor that returns false ends the visit.
    [[nodiscard]] Status
    forEachContext(const std::function<bool(std::uint64_t, ContextRecord&&)>& visit);
    [[nodiscard]] Status
    forEachSample(const std::function<bool(SampleIndex, SampleRecord&&)>& visit);
    [[nodiscard]] Status
    forEachItem(const std::function<bool(ItemIndex, const ItemRecord&)>& visit);
    [[nodiscard]] Status forEachUnit(const std::function<bool(UnitId, UnitRecord&&)>& visit);
    /// One context or sample; NotFound (`E-STORE-011`) when there is none of that number.
    [[nodiscard]] Result<ContextRecord> context(std::uint64_t number);
    [[nodiscard]] Result<SampleRecord> sample(SampleIndex index);

    /// The writer of results; one per file and process.
    [[nodiscard]] Result<OutputWriter> outputWriter();
    /// One byte per unit: 1 when its outputs are committed [units].
    [[nodiscard]] Result<std::vector<std::uint8_t>> doneUnits();
    /// Visits the finished units by rising UnitId, each block checked against its CRC and its
    /// columns.
    [[nodiscard]] Status
    forEachOutput(const std::function<bool(const OutputRecord&, wire::OutputBlock&&)>& visit);
    /// The block of one unit; nothing when it is not finished.
    [[nodiscard]] Result<std::optional<wire::OutputBlock>> output(UnitId unit);
    /// The facts without payloads, by rising UnitId; for screens.
    [[nodiscard]] Result<std::vector<OutputRecord>> outputRecords();
    [[nodiscard]] Result<std::vector<DuplicateRecord>> duplicates();

    /// Stores or replaces the facts of one start of a rank.
    [[nodiscard]] Status setRank(const RankRecord& record);
    [[nodiscard]] Result<std::vector<RankRecord>> ranks();
    [[nodiscard]] Status addEvent(const EventRecord& record);
    /// The events from number `from` on (0 = all), in order.
    [[nodiscard]] Result<std::vector<EventRecord>> events(std::uint64_t from = 0);
    [[nodiscard]] Result<std::vector<SeriesRecord>> series(std::uint64_t from = 0);
    [[nodiscard]] Status setSum(const SumRecord& record);
    [[nodiscard]] Result<std::vector<SumRecord>> sums();

    /// Replaces all predictions, one per sample in index order.
    [[nodiscard]] Status setPredictions(std::span<const PredictionRecord> predictions);
    [[nodiscard]] Status
    forEachPrediction(const std::function<bool(SampleIndex, PredictionRecord&&)>& visit);

    /// Puts the write-ahead log into the file and removes it, so that the one file is everything
    /// and can be copied or lie on a medium that is read-only. Writing may go on afterwards.
    [[nodiscard]] Status seal();
    /// Reads everything once; the first damage as the error.
    [[nodiscard]] Status checkAll();
    /// Test hook for a full disk: the file may not grow beyond this many pages of 8 KiB. 0 = no
    /// limit.
    [[nodiscard]] Status limitPages(std::uint32_t pages);

private:
    friend class OutputWriter;
    friend class PlanWriter;
    struct State;
    explicit RunFile(std::unique_ptr<State> state);
    std::unique_ptr<State> m_state;
};

/// Writes the plan in one transaction with bounded memory; borrows the RunFile. A writer that dies
/// before finish() leaves the file as it was.
class PlanWriter final {
public:
    PlanWriter(PlanWriter&&) noexcept;
    ~PlanWriter();

    /// Order: contexts before the samples that name them, samples before items, items before units.
    /// Error: Invalid (`E-STORE-012`) for a reference to something that was not added.
    [[nodiscard]] Status addContext(const ContextRecord& record);
    [[nodiscard]] Status addSample(const SampleRecord& record);
    [[nodiscard]] Status addItem(const ItemRecord& record);
    [[nodiscard]] Status addUnit(const UnitRecord& record);
    /// Commits. `record.owners` must have one rank per unit or be empty (`E-STORE-012`).
    [[nodiscard]] Status finish(PlanRecord record);

private:
    friend class RunFile;
    struct State;
    explicit PlanWriter(std::unique_ptr<State> state);
    std::unique_ptr<State> m_state;
};

/// Collects results and commits them together; borrows the RunFile. Used by the I/O thread of the
/// controller, which commits at least every 20 ms or 64 units and acknowledges afterwards. What was
/// added is kept in memory until a commit succeeded, so after an error (a full disk) nothing is
/// lost and commit() may be called again.
class OutputWriter final {
public:
    OutputWriter(OutputWriter&&) noexcept;
    ~OutputWriter();

    /// Adds the outputs of a whole unit. `record` names generation, arrival and node; the rest is
    /// taken from the block. Error: Integrity (`E-STORE-013`) for a unit that is not in the plan or
    /// is there already: the first result is kept.
    [[nodiscard]] Status add(const wire::OutputBlock& block, std::uint32_t generation,
                             std::int64_t arrivalNs, std::string_view node);
    void addDuplicate(DuplicateRecord record);
    void addEvent(EventRecord record);
    void addPoint(SeriesRecord record);

    /// Units that were added and are not committed.
    [[nodiscard]] std::size_t pendingUnits() const;
    /// The unit is committed or pending.
    [[nodiscard]] bool has(UnitId unit) const;
    /// Returns after everything that was added is on the disk, with the units that are durable now
    /// and may be acknowledged, in the order of adding. Errors: Io; then nothing of it is durable
    /// and all stays pending.
    [[nodiscard]] Result<std::vector<UnitId>> commit();

private:
    friend class RunFile;
    struct State;
    explicit OutputWriter(std::unique_ptr<State> state);
    std::unique_ptr<State> m_state;
};

} // namespace muster::store
