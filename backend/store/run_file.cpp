// SPDX-License-Identifier: Apache-2.0
#include "store/run_file.h"

#include "store/packing_p.h"
#include "store/sqlite_p.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace muster::store {

namespace {

constexpr std::array<const char*, 16> tables = {
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL)",
    "CREATE TABLE documents(name TEXT PRIMARY KEY, text TEXT NOT NULL, crc INTEGER NOT NULL)",
    "CREATE TABLE contexts(number INTEGER PRIMARY KEY, id TEXT NOT NULL, text TEXT NOT NULL, "
    "token_begin BLOB NOT NULL, token_end BLOB NOT NULL, crc INTEGER NOT NULL)",
    "CREATE TABLE samples(idx INTEGER PRIMARY KEY, id TEXT NOT NULL, hash BLOB NOT NULL, "
    "context INTEGER NOT NULL, question TEXT NOT NULL, answers TEXT NOT NULL, "
    "impossible INTEGER NOT NULL, source INTEGER NOT NULL, crc INTEGER NOT NULL)",
    "CREATE TABLE items(chunk INTEGER PRIMARY KEY, count INTEGER NOT NULL, data BLOB NOT NULL, "
    "crc INTEGER NOT NULL)",
    "CREATE TABLE units(chunk INTEGER PRIMARY KEY, count INTEGER NOT NULL, data BLOB NOT NULL, "
    "crc INTEGER NOT NULL)",
    "CREATE TABLE plan(id INTEGER PRIMARY KEY, digest BLOB NOT NULL, schedule TEXT NOT NULL, "
    "owners BLOB NOT NULL, detail TEXT NOT NULL, contexts INTEGER NOT NULL, "
    "samples INTEGER NOT NULL, items INTEGER NOT NULL, units INTEGER NOT NULL, "
    "crc INTEGER NOT NULL)",
    "CREATE TABLE outputs(unit INTEGER PRIMARY KEY, rank INTEGER NOT NULL, "
    "generation INTEGER NOT NULL, attempt INTEGER NOT NULL, sequence INTEGER NOT NULL, "
    "arrival_ns INTEGER NOT NULL, started_ns INTEGER NOT NULL, finished_ns INTEGER NOT NULL, "
    "node TEXT NOT NULL, real_tokens INTEGER NOT NULL, pad_tokens INTEGER NOT NULL, "
    "crc INTEGER NOT NULL, block_crc INTEGER NOT NULL, block BLOB NOT NULL)",
    "CREATE TABLE duplicates(id INTEGER PRIMARY KEY, unit INTEGER NOT NULL, rank INTEGER NOT NULL, "
    "generation INTEGER NOT NULL, attempt INTEGER NOT NULL, arrival_ns INTEGER NOT NULL, "
    "equal INTEGER NOT NULL, first_item INTEGER NOT NULL, detail TEXT NOT NULL, "
    "crc INTEGER NOT NULL)",
    "CREATE TABLE ranks(rank INTEGER NOT NULL, generation INTEGER NOT NULL, hello TEXT NOT NULL, "
    "stats TEXT NOT NULL, crc INTEGER NOT NULL, PRIMARY KEY(rank, generation))",
    "CREATE TABLE events(id INTEGER PRIMARY KEY, wall_ns INTEGER NOT NULL, level INTEGER NOT NULL, "
    "code TEXT NOT NULL, text TEXT NOT NULL, rank INTEGER NOT NULL, unit INTEGER NOT NULL, "
    "crc INTEGER NOT NULL)",
    "CREATE TABLE series(id INTEGER PRIMARY KEY, t_ns INTEGER NOT NULL, rank INTEGER NOT NULL, "
    "items INTEGER NOT NULL, tokens INTEGER NOT NULL, compute_ns INTEGER NOT NULL, "
    "wait_ns INTEGER NOT NULL, transfer_ns INTEGER NOT NULL, bytes INTEGER NOT NULL, "
    "memory INTEGER NOT NULL, crc INTEGER NOT NULL)",
    "CREATE TABLE sums(scope TEXT NOT NULL, rank INTEGER NOT NULL, generation INTEGER NOT NULL, "
    "name TEXT NOT NULL, whole INTEGER NOT NULL, real REAL NOT NULL, crc INTEGER NOT NULL, "
    "PRIMARY KEY(scope, rank, generation, name))",
    "CREATE TABLE predictions(idx INTEGER PRIMARY KEY, text TEXT NOT NULL, score REAL, second "
    "REAL, "
    "null_odds REAL, nbest BLOB NOT NULL, crc INTEGER NOT NULL)",
    "CREATE INDEX events_by_level ON events(level)",
    "CREATE INDEX series_by_rank ON series(rank)",
};

constexpr std::uint64_t chunkRows = 4096;
constexpr std::uint64_t most = std::uint64_t{1} << 48U; // of any count or size

// SQLite's integers are signed: these two turn "no value" into −1 and back.
std::int64_t orMinusOne(const std::optional<std::uint64_t>& value)
{
    return value ? static_cast<std::int64_t>(*value) : -1;
}

std::optional<std::uint64_t> fromMinusOne(std::int64_t value)
{
    if (value < 0)
        return std::nullopt;
    return static_cast<std::uint64_t>(value);
}

tl::unexpected<Error> damagedRow(std::string_view table, std::int64_t row)
{
    return fail(Error::Kind::Integrity, "E-STORE-008",
                "row " + std::to_string(row) + " of table " + std::string(table) +
                    " of the run file is damaged: its checksum or a value is wrong. The other rows "
                    "are not affected; restore the file from a copy, or resume from a fresh run");
}

tl::unexpected<Error> badReference(const std::string& what)
{
    return fail(Error::Kind::Invalid, "E-STORE-012", "the plan is not consistent: " + what);
}

std::vector<std::byte> packItems(std::span<const ItemRecord> items)
{
    ByteWriter writer;
    writer.reserve(items.size() * 40);
    for (const auto& item : items)
        writer.put(item.sample.value);
    for (const auto& item : items)
        writer.put(item.firstContextToken);
    for (const auto& item : items)
        writer.put(item.contextTokens);
    for (const auto& item : items)
        writer.put(item.contextAt);
    for (const auto& item : items)
        writer.put(item.tokens);
    for (const auto& item : items)
        writer.putHash(item.hash);
    return writer.take();
}

bool unpackItems(std::span<const std::byte> bytes, std::uint64_t count,
                 std::vector<ItemRecord>& into)
{
    if (bytes.size() != count * 40)
        return false;
    ByteReader reader(bytes);
    into.assign(static_cast<std::size_t>(count), {});
    for (auto& item : into)
        item.sample = SampleIndex(reader.get<std::uint64_t>());
    for (auto& item : into)
        item.firstContextToken = reader.get<std::uint32_t>();
    for (auto& item : into)
        item.contextTokens = reader.get<std::uint32_t>();
    for (auto& item : into)
        item.contextAt = reader.get<std::uint32_t>();
    for (auto& item : into)
        item.tokens = reader.get<std::uint32_t>();
    for (auto& item : into)
        item.hash = reader.getHash();
    return reader.finished();
}

void packUnit(ByteWriter& writer, const UnitRecord& unit)
{
    const auto items = packDeltas(unit.items);
    putVarint(writer, unit.items.size());
    putVarint(writer, items.size());
    writer.put(unit.cost);
    putVarint(writer, unit.tokens);
    writer.putBytes(items);
}

bool unpackUnit(ByteReader& reader, std::uint64_t items, UnitRecord& into)
{
    const std::uint64_t count = getVarint(reader);
    const std::uint64_t size = getVarint(reader);
    into.cost = reader.get<double>();
    into.tokens = getVarint(reader);
    into.items = unpackDeltas(reader.take(size));
    return !reader.failed() && into.items.size() == count && std::isfinite(into.cost) &&
           into.tokens <= most &&
           std::all_of(into.items.begin(), into.items.end(),
                       [items](std::uint64_t item) { return item < items; });
}

std::uint32_t crcOf(const ContextRecord& record, std::span<const std::byte> begin,
                    std::span<const std::byte> end, std::uint64_t number)
{
    return RowCrc().add(number).add(record.id).add(record.text).add(begin).add(end).value();
}

std::uint32_t crcOf(const SampleRecord& record, std::uint64_t index)
{
    return RowCrc()
        .add(index)
        .add(record.id)
        .add(record.hash)
        .add(record.context)
        .add(record.question)
        .add(record.answersJson)
        .add(std::uint64_t{record.isImpossible ? 1U : 0U})
        .add(record.source)
        .value();
}

std::uint32_t crcOf(std::uint64_t chunk, std::uint64_t count, std::span<const std::byte> data)
{
    return RowCrc().add(chunk).add(count).add(data).value();
}

std::uint32_t crcOf(const PlanRecord& record)
{
    return RowCrc()
        .add(record.digest)
        .add(record.schedule)
        .add(std::as_bytes(std::span(record.owners)))
        .add(record.detailJson)
        .add(record.contexts)
        .add(record.samples)
        .add(record.items)
        .add(record.units)
        .value();
}

std::uint32_t crcOf(const OutputRecord& record)
{
    return RowCrc()
        .add(record.unit.value)
        .add(record.rank.value)
        .add(record.generation)
        .add(record.attempt)
        .add(record.sequence)
        .add(record.arrivalNs)
        .add(record.startedNs)
        .add(record.finishedNs)
        .add(record.node)
        .add(record.realTokens)
        .add(record.padTokens)
        .value();
}

std::uint32_t crcOf(const DuplicateRecord& record)
{
    return RowCrc()
        .add(record.unit.value)
        .add(record.rank.value)
        .add(record.generation)
        .add(record.attempt)
        .add(record.arrivalNs)
        .add(std::uint64_t{record.isEqual ? 1U : 0U})
        .add(orMinusOne(record.firstDifferingItem))
        .add(record.detail)
        .value();
}

std::optional<std::uint64_t> numberOf(const std::optional<RankId>& rank)
{
    return rank ? std::optional<std::uint64_t>(rank->value) : std::nullopt;
}

std::optional<std::uint64_t> numberOf(const std::optional<UnitId>& unit)
{
    return unit ? std::optional<std::uint64_t>(unit->value) : std::nullopt;
}

std::uint32_t crcOf(const EventRecord& record)
{
    return RowCrc()
        .add(record.wallNs)
        .add(record.level)
        .add(record.code)
        .add(record.text)
        .add(orMinusOne(numberOf(record.rank)))
        .add(orMinusOne(numberOf(record.unit)))
        .value();
}

std::uint32_t crcOf(const SeriesRecord& record)
{
    return RowCrc()
        .add(record.timeNs)
        .add(record.rank.value)
        .add(record.items)
        .add(record.tokens)
        .add(record.computeNs)
        .add(record.waitNs)
        .add(record.transferNs)
        .add(record.bytes)
        .add(record.memory)
        .value();
}

std::uint32_t crcOf(const SumRecord& record)
{
    return RowCrc()
        .add(record.scope)
        .add(record.rank.value)
        .add(record.generation)
        .add(record.name)
        .add(record.integer)
        .add(record.real)
        .value();
}

std::uint32_t crcOf(const PredictionRecord& record, std::uint64_t index)
{
    return RowCrc()
        .add(index)
        .add(record.text)
        .add(record.score)
        .add(record.second)
        .add(record.nullOdds)
        .add(record.nBest)
        .value();
}

constexpr std::string_view insertEventSql = "INSERT INTO events VALUES(NULL,?,?,?,?,?,?,?)";

Status runInsert(Statement& statement, const EventRecord& record)
{
    return statement.bind(record.wallNs)
        .bind(record.level)
        .bind(record.code)
        .bind(record.text)
        .bind(orMinusOne(numberOf(record.rank)))
        .bind(orMinusOne(numberOf(record.unit)))
        .bind(crcOf(record))
        .run();
}

constexpr std::string_view outputColumns =
    "unit, rank, generation, attempt, sequence, arrival_ns, started_ns, finished_ns, node, "
    "real_tokens, pad_tokens, crc";

// Reads the columns of `outputColumns`; false for a row that cannot be right.
bool readOutput(Statement& row, std::uint64_t units, OutputRecord& into)
{
    into.unit = UnitId(row.natural());
    into.rank = RankId(row.natural32());
    into.generation = row.natural32();
    into.attempt = row.natural32();
    into.sequence = row.natural();
    into.arrivalNs = row.integer();
    into.startedNs = row.integer();
    into.finishedNs = row.integer();
    into.node = row.text();
    into.realTokens = row.natural();
    into.padTokens = row.natural();
    const std::uint32_t crc = row.natural32();
    return !row.failed() && into.unit.value < units && crc == crcOf(into);
}

bool agrees(const OutputRecord& record, const wire::OutputBlock& block)
{
    return record.unit == block.unit && record.rank == block.rank &&
           record.attempt == block.attempt && record.sequence == block.sequence &&
           record.startedNs == block.startedNs && record.finishedNs == block.finishedNs &&
           record.realTokens == block.realTokens && record.padTokens == block.padTokens;
}

} // namespace

struct RunFile::State {
    std::filesystem::path path;
    Database database;
    std::optional<PlanRecord> plan;
    bool planRead = false;

    // The counts of a plan are bounded by the size of the file, so that a wrong count cannot make
    // anyone allocate more than that.
    Result<const std::optional<PlanRecord>*> readPlan()
    {
        if (planRead)
            return &plan;
        auto pages = database.scalar("PRAGMA page_count");
        auto pageSize = database.scalar("PRAGMA page_size");
        auto statement = database.prepare("SELECT digest, schedule, owners, detail, contexts, "
                                          "samples, items, units, crc FROM plan WHERE id = 1");
        if (!pages || !pageSize || !statement)
            return fail(database.error());
        auto row = statement->step();
        if (!row)
            return fail(std::move(row).error());
        if (*row) {
            const std::uint64_t limit =
                static_cast<std::uint64_t>(*pages) * static_cast<std::uint64_t>(*pageSize);
            PlanRecord record;
            record.digest = statement->hash();
            record.schedule = statement->text();
            const auto owners = statement->blob();
            record.owners = ByteReader(owners).getArray<std::uint32_t>(owners.size() / 4);
            record.detailJson = statement->text();
            record.contexts = statement->natural(limit);
            record.samples = statement->natural(limit);
            record.items = statement->natural(limit);
            record.units = statement->natural(limit);
            const std::uint32_t crc = statement->natural32();
            if (statement->failed() || owners.size() % 4 != 0 || crc != crcOf(record) ||
                (!record.owners.empty() && record.owners.size() != record.units))
                return damagedRow("plan", 1);
            plan = std::move(record);
        }
        planRead = plan.has_value();
        return &plan;
    }

    // Visits the rows of a table of chunks; `unpack` gets the bytes of a chunk and what it starts
    // with.
    template <typename Unpack>
    Status forEachChunk(const char* table, std::uint64_t total, const Unpack& unpack)
    {
        auto statement = database.prepare(std::string("SELECT chunk, count, data, crc FROM ") +
                                          table + " ORDER BY chunk");
        if (!statement)
            return fail(std::move(statement).error());
        std::uint64_t first = 0;
        for (std::uint64_t chunk = 0;; ++chunk) {
            auto row = statement->step();
            if (!row)
                return fail(std::move(row).error());
            if (!*row)
                break;
            const std::uint64_t number = statement->natural();
            const std::uint64_t count = statement->natural(chunkRows);
            const auto data = statement->blob();
            const std::uint32_t crc = statement->natural32();
            if (statement->failed() || number != chunk || count == 0 || count > total - first ||
                crc != crcOf(chunk, count, data))
                return damagedRow(table, static_cast<std::int64_t>(chunk));
            auto goOn = unpack(first, count, data);
            if (!goOn)
                return fail(std::move(goOn).error());
            if (!*goOn)
                return {};
            first += count;
        }
        if (first != total)
            return damagedRow(table, static_cast<std::int64_t>(first / chunkRows));
        return {};
    }

    Result<std::optional<std::string>> text(const char* sql, const char* table,
                                            std::string_view name)
    {
        auto statement = database.prepare(sql);
        if (!statement)
            return fail(std::move(statement).error());
        auto row = statement->bind(name).step();
        if (!row)
            return fail(std::move(row).error());
        if (!*row)
            return std::optional<std::string>();
        std::string value(statement->text());
        const std::uint32_t crc = statement->natural32();
        if (statement->failed() || crc != RowCrc().add(name).add(value).value())
            return fail(damagedRow(table, 0).value().during(name));
        return std::optional(std::move(value));
    }

    Status setText(const char* sql, std::string_view name, std::string_view value)
    {
        auto statement = database.prepare(sql);
        if (!statement)
            return fail(std::move(statement).error());
        return statement->bind(name).bind(value).bind(RowCrc().add(name).add(value).value()).run();
    }

    static Result<bool> readContext(Statement& statement, std::uint64_t number, ContextRecord& into)
    {
        const std::uint64_t found = statement.natural();
        into.id = statement.text();
        into.text = statement.text();
        const auto begin = statement.blob();
        const auto end = statement.blob();
        const std::uint32_t crc = statement.natural32();
        if (statement.failed() || found != number || crc != crcOf(into, begin, end, number))
            return damagedRow("contexts", static_cast<std::int64_t>(number));
        into.tokenBegin = unpackDeltas(begin);
        into.tokenEnd = unpackDeltas(end);
        bool isRight = into.tokenBegin.size() == into.tokenEnd.size();
        for (std::size_t i = 0; isRight && i < into.tokenBegin.size(); ++i)
            isRight =
                into.tokenBegin[i] <= into.tokenEnd[i] && into.tokenEnd[i] <= into.text.size();
        if (!isRight)
            return damagedRow("contexts", static_cast<std::int64_t>(number));
        return true;
    }

    static Result<bool> readSample(Statement& statement, std::uint64_t index,
                                   std::uint64_t contexts, SampleRecord& into)
    {
        const std::uint64_t found = statement.natural();
        into.id = statement.text();
        into.hash = statement.hash();
        into.context = statement.natural();
        into.question = statement.text();
        into.answersJson = statement.text();
        into.isImpossible = statement.natural(1) != 0;
        into.source = statement.natural();
        const std::uint32_t crc = statement.natural32();
        if (statement.failed() || found != index || into.context >= contexts ||
            crc != crcOf(into, index))
            return damagedRow("samples", static_cast<std::int64_t>(index));
        return true;
    }
};

RunFile::RunFile(std::unique_ptr<State> state) : m_state(std::move(state))
{
}
RunFile::RunFile(RunFile&&) noexcept = default;
RunFile& RunFile::operator=(RunFile&&) noexcept = default;
RunFile::~RunFile() = default;

const std::filesystem::path& RunFile::path() const
{
    return m_state->path;
}

Result<RunFile> RunFile::create(const std::filesystem::path& path)
{
    // Made by hand first: two runs that start at once cannot both have the name.
    const int descriptor = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
    if (descriptor < 0) {
        if (errno == EEXIST)
            return fail(Error::Kind::Invalid, "E-STORE-001",
                        path.string() + " exists; a result is never overwritten. Resume it, or "
                                        "choose another output folder");
        return fail(Error::Kind::Io, "E-STORE-005",
                    "making " + path.string() + ": " + std::strerror(errno));
    }
    ::close(descriptor);
    auto database = Database::open(path, OpenMode::Create);
    if (!database)
        return fail(std::move(database).error());
    std::string sql =
        "PRAGMA page_size=8192; PRAGMA application_id=" + std::to_string(applicationId) +
        "; PRAGMA user_version=" + std::to_string(schemaVersion) +
        "; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; BEGIN IMMEDIATE;";
    for (const char* table : tables)
        sql.append(table).append(";");
    sql += "COMMIT;";
    if (auto done = database->exec(sql.c_str()); !done)
        return fail(std::move(done).error());
    const std::filesystem::path folder = path.parent_path().empty() ? "." : path.parent_path();
    const int folderDescriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folderDescriptor >= 0) {
        ::fsync(folderDescriptor);
        ::close(folderDescriptor);
    }
    auto state = std::make_unique<State>();
    state->path = path;
    state->database = std::move(*database);
    return RunFile(std::move(state));
}

Result<RunFile> RunFile::open(const std::filesystem::path& path, Access access)
{
    auto database =
        Database::open(path, access == Access::ReadOnly ? OpenMode::ReadOnly : OpenMode::ReadWrite);
    if (!database)
        return fail(std::move(database).error());
    const auto notOurs = [&path](const std::string& why) {
        return fail(Error::Kind::Invalid, "E-STORE-003",
                    path.string() + " is not a run file of Muster: " + why);
    };
    auto application = database->scalar("PRAGMA application_id");
    if (!application) {
        if (application.error().kind == Error::Kind::Integrity)
            return notOurs("it is no SQLite database, or its first page is damaged");
        return fail(std::move(application).error());
    }
    if (*application != applicationId)
        return notOurs("its application id is " + std::to_string(*application));
    auto version = database->scalar("PRAGMA user_version");
    if (!version)
        return fail(std::move(version).error());
    if (*version != schemaVersion)
        return fail(Error::Kind::Invalid, "E-STORE-009",
                    path.string() + " has format version " + std::to_string(*version) +
                        ", and this program reads version " + std::to_string(schemaVersion) +
                        ". Nothing was changed; use the program version that made the run");
    if (auto checked = database->checkSchema(tables); !checked)
        return fail(std::move(checked).error());
    if (access == Access::ReadWrite) {
        if (auto done = database->exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"); !done)
            return fail(std::move(done).error());
    }
    auto state = std::make_unique<State>();
    state->path = path;
    state->database = std::move(*database);
    return RunFile(std::move(state));
}

Status RunFile::setMeta(std::string_view key, std::string_view value)
{
    return m_state->setText("INSERT OR REPLACE INTO meta VALUES(?,?,?)", key, value);
}

Result<std::optional<std::string>> RunFile::meta(std::string_view key)
{
    return m_state->text("SELECT value, crc FROM meta WHERE key = ?", "meta", key);
}

Result<std::vector<std::pair<std::string, std::string>>> RunFile::allMeta()
{
    auto statement = m_state->database.prepare("SELECT key, value, crc FROM meta ORDER BY key");
    if (!statement)
        return fail(std::move(statement).error());
    std::vector<std::pair<std::string, std::string>> all;
    while (true) {
        auto row = statement->step();
        if (!row)
            return fail(std::move(row).error());
        if (!*row)
            return all;
        std::string name(statement->text());
        std::string value(statement->text());
        const std::uint32_t crc = statement->natural32();
        if (statement->failed() || crc != RowCrc().add(name).add(value).value() ||
            (!all.empty() && name <= all.back().first))
            return damagedRow("meta", static_cast<std::int64_t>(all.size()));
        all.emplace_back(std::move(name), std::move(value));
    }
}

Status RunFile::setDocument(std::string_view name, std::string_view text)
{
    return m_state->setText("INSERT OR REPLACE INTO documents VALUES(?,?,?)", name, text);
}

Result<std::optional<std::string>> RunFile::document(std::string_view name)
{
    return m_state->text("SELECT text, crc FROM documents WHERE name = ?", "documents", name);
}

Result<std::optional<PlanRecord>> RunFile::plan()
{
    auto plan = m_state->readPlan();
    if (!plan)
        return fail(std::move(plan).error());
    return **plan;
}

Status RunFile::forEachContext(const std::function<bool(std::uint64_t, ContextRecord&&)>& visit)
{
    auto plan = m_state->readPlan();
    if (!plan)
        return fail(std::move(plan).error());
    if (!**plan)
        return {};
    auto statement = m_state->database.prepare(
        "SELECT number, id, text, token_begin, token_end, crc FROM contexts ORDER BY number");
    if (!statement)
        return fail(std::move(statement).error());
    for (std::uint64_t number = 0;; ++number) {
        auto row = statement->step();
        if (!row)
            return fail(std::move(row).error());
        if (!*row || number >= (**plan)->contexts) {
            if (*row || number != (**plan)->contexts)
                return damagedRow("contexts", static_cast<std::int64_t>(number));
            return {};
        }
        ContextRecord record;
        auto read = State::readContext(*statement, number, record);
        if (!read)
            return fail(std::move(read).error());
        if (!visit(number, std::move(record)))
            return {};
    }
}

Result<ContextRecord> RunFile::context(std::uint64_t number)
{
    auto statement =
        m_state->database.prepare("SELECT number, id, text, token_begin, token_end, crc FROM "
                                  "contexts WHERE number = ?");
    if (!statement)
        return fail(std::move(statement).error());
    auto row = statement->bind(number).step();
    if (!row)
        return fail(std::move(row).error());
    if (!*row)
        return fail(Error::Kind::NotFound, "E-STORE-011",
                    "the run file has no context " + std::to_string(number));
    ContextRecord record;
    auto read = State::readContext(*statement, number, record);
    if (!read)
        return fail(std::move(read).error());
    return record;
}

Status RunFile::forEachSample(const std::function<bool(SampleIndex, SampleRecord&&)>& visit)
{
    auto plan = m_state->readPlan();
    if (!plan)
        return fail(std::move(plan).error());
    if (!**plan)
        return {};
    auto statement = m_state->database.prepare(
        "SELECT idx, id, hash, context, question, answers, impossible, source, crc FROM samples "
        "ORDER BY idx");
    if (!statement)
        return fail(std::move(statement).error());
    for (std::uint64_t index = 0;; ++index) {
        auto row = statement->step();
        if (!row)
            return fail(std::move(row).error());
        if (!*row || index >= (**plan)->samples) {
            if (*row || index != (**plan)->samples)
                return damagedRow("samples", static_cast<std::int64_t>(index));
            return {};
        }
        SampleRecord record;
        auto read = State::readSample(*statement, index, (**plan)->contexts, record);
        if (!read)
            return fail(std::move(read).error());
        if (!visit(SampleIndex(index), std::move(record)))
            return {};
    }
}

Result<SampleRecord> RunFile::sample(SampleIndex index)
{
    auto plan = m_state->readPlan();
    if (!plan)
        return fail(std::move(plan).error());
    auto statement = m_state->database.prepare(
        "SELECT idx, id, hash, context, question, answers, impossible, source, crc FROM samples "
        "WHERE idx = ?");
    if (!statement)
        return fail(std::move(statement).error());
    auto row = statement->bind(index.value).step();
    if (!row)
        return fail(std::move(row).error());
    if (!*row || !**plan)
        return fail(Error::Kind::NotFound, "E-STORE-011",
                    "the run file has no sample " + std::to_string(index.value));
    SampleRecord record;
    auto read = State::readSample(*statement, index.value, (**plan)->contexts, record);
    if (!read)
        return fail(std::move(read).error());
    return record;
}

Status RunFile::forEachItem(const std::function<bool(ItemIndex, const ItemRecord&)>& visit)
{
    auto plan = m_state->readPlan();
    if (!plan)
        return fail(std::move(plan).error());
    if (!**plan)
        return {};
    std::vector<ItemRecord> chunk;
    std::uint64_t before = 0;
    return m_state->forEachChunk(
        "items", (**plan)->items,
        [&](std::uint64_t first, std::uint64_t count,
            std::span<const std::byte> data) -> Result<bool> {
            if (!unpackItems(data, count, chunk))
                return damagedRow("items", static_cast<std::int64_t>(first / chunkRows));
            for (std::size_t i = 0; i < chunk.size(); ++i) {
                const auto& item = chunk[i];
                if (item.sample.value >= (**plan)->samples || item.sample.value < before)
                    return damagedRow("items", static_cast<std::int64_t>(first / chunkRows));
                before = item.sample.value;
                if (!visit(ItemIndex(first + i), item))
                    return false;
            }
            return true;
        });
}

Status RunFile::forEachUnit(const std::function<bool(UnitId, UnitRecord&&)>& visit)
{
    auto plan = m_state->readPlan();
    if (!plan)
        return fail(std::move(plan).error());
    if (!**plan)
        return {};
    return m_state->forEachChunk(
        "units", (**plan)->units,
        [&](std::uint64_t first, std::uint64_t count,
            std::span<const std::byte> data) -> Result<bool> {
            ByteReader reader(data);
            for (std::uint64_t i = 0; i < count; ++i) {
                UnitRecord record;
                if (!unpackUnit(reader, (**plan)->items, record))
                    return damagedRow("units", static_cast<std::int64_t>(first / chunkRows));
                if (!visit(UnitId(first + i), std::move(record)))
                    return false;
            }
            if (!reader.finished())
                return damagedRow("units", static_cast<std::int64_t>(first / chunkRows));
            return true;
        });
}

Result<std::vector<std::uint8_t>> RunFile::doneUnits()
{
    auto plan = m_state->readPlan();
    if (!plan)
        return fail(std::move(plan).error());
    std::vector<std::uint8_t> done(**plan ? static_cast<std::size_t>((**plan)->units) : 0U);
    auto records = outputRecords();
    if (!records)
        return fail(std::move(records).error());
    for (const auto& record : *records)
        done[static_cast<std::size_t>(record.unit.value)] = 1;
    return done;
}

Result<std::vector<OutputRecord>> RunFile::outputRecords()
{
    auto plan = m_state->readPlan();
    if (!plan)
        return fail(std::move(plan).error());
    const std::uint64_t units = **plan ? (**plan)->units : 0;
    auto statement = m_state->database.prepare("SELECT " + std::string(outputColumns) +
                                               " FROM outputs ORDER BY unit");
    if (!statement)
        return fail(std::move(statement).error());
    std::vector<OutputRecord> records;
    while (true) {
        auto row = statement->step();
        if (!row)
            return fail(std::move(row).error());
        if (!*row)
            return records;
        OutputRecord record;
        if (!readOutput(*statement, units, record) ||
            (!records.empty() && record.unit <= records.back().unit))
            return damagedRow("outputs", static_cast<std::int64_t>(record.unit.value));
        records.push_back(std::move(record));
    }
}

Status
RunFile::forEachOutput(const std::function<bool(const OutputRecord&, wire::OutputBlock&&)>& visit)
{
    auto plan = m_state->readPlan();
    if (!plan)
        return fail(std::move(plan).error());
    const std::uint64_t units = **plan ? (**plan)->units : 0;
    auto statement = m_state->database.prepare("SELECT " + std::string(outputColumns) +
                                               ", block_crc, block FROM outputs ORDER BY unit");
    if (!statement)
        return fail(std::move(statement).error());
    std::optional<UnitId> before;
    while (true) {
        auto row = statement->step();
        if (!row)
            return fail(std::move(row).error());
        if (!*row)
            return {};
        OutputRecord record;
        const bool isRight = readOutput(*statement, units, record);
        const std::uint32_t crc = statement->natural32();
        const auto bytes = statement->blob();
        if (!isRight || statement->failed() || crc != crc32c(bytes) ||
            (before && record.unit <= *before))
            return damagedRow("outputs", static_cast<std::int64_t>(record.unit.value));
        auto block = wire::decodeBlock(bytes);
        if (!block || !agrees(record, *block))
            return damagedRow("outputs", static_cast<std::int64_t>(record.unit.value));
        before = record.unit;
        if (!visit(record, std::move(*block)))
            return {};
    }
}

Result<std::optional<wire::OutputBlock>> RunFile::output(UnitId unit)
{
    auto statement =
        m_state->database.prepare("SELECT block_crc, block FROM outputs WHERE unit = ?");
    if (!statement)
        return fail(std::move(statement).error());
    auto row = statement->bind(unit.value).step();
    if (!row)
        return fail(std::move(row).error());
    if (!*row)
        return std::optional<wire::OutputBlock>();
    const std::uint32_t crc = statement->natural32();
    const auto bytes = statement->blob();
    if (statement->failed() || crc != crc32c(bytes))
        return damagedRow("outputs", static_cast<std::int64_t>(unit.value));
    auto block = wire::decodeBlock(bytes);
    if (!block || block->unit != unit)
        return damagedRow("outputs", static_cast<std::int64_t>(unit.value));
    return std::optional(std::move(*block));
}

Result<std::vector<DuplicateRecord>> RunFile::duplicates()
{
    auto statement = m_state->database.prepare("SELECT id, unit, rank, generation, attempt, "
                                               "arrival_ns, equal, first_item, detail, crc FROM "
                                               "duplicates ORDER BY id");
    if (!statement)
        return fail(std::move(statement).error());
    std::vector<DuplicateRecord> records;
    std::int64_t before = 0;
    while (true) {
        auto row = statement->step();
        if (!row)
            return fail(std::move(row).error());
        if (!*row)
            return records;
        DuplicateRecord record;
        const std::int64_t id = statement->integer();
        record.unit = UnitId(statement->natural());
        record.rank = RankId(statement->natural32());
        record.generation = statement->natural32();
        record.attempt = statement->natural32();
        record.arrivalNs = statement->integer();
        record.isEqual = statement->natural(1) != 0;
        record.firstDifferingItem = fromMinusOne(statement->integer());
        record.detail = statement->text();
        const std::uint32_t crc = statement->natural32();
        if (statement->failed() || id <= before || crc != crcOf(record))
            return damagedRow("duplicates", id);
        before = id;
        records.push_back(std::move(record));
    }
}

Status RunFile::setRank(const RankRecord& record)
{
    auto statement = m_state->database.prepare("INSERT OR REPLACE INTO ranks VALUES(?,?,?,?,?)");
    if (!statement)
        return fail(std::move(statement).error());
    return statement->bind(record.rank.value)
        .bind(record.generation)
        .bind(record.helloJson)
        .bind(record.statsJson)
        .bind(RowCrc()
                  .add(record.rank.value)
                  .add(record.generation)
                  .add(record.helloJson)
                  .add(record.statsJson)
                  .value())
        .run();
}

Result<std::vector<RankRecord>> RunFile::ranks()
{
    auto statement = m_state->database.prepare(
        "SELECT rank, generation, hello, stats, crc FROM ranks ORDER BY rank, generation");
    if (!statement)
        return fail(std::move(statement).error());
    std::vector<RankRecord> records;
    while (true) {
        auto row = statement->step();
        if (!row)
            return fail(std::move(row).error());
        if (!*row)
            return records;
        RankRecord record;
        record.rank = RankId(statement->natural32());
        record.generation = statement->natural32();
        record.helloJson = statement->text();
        record.statsJson = statement->text();
        const std::uint32_t crc = statement->natural32();
        if (statement->failed() ||
            crc != RowCrc()
                       .add(record.rank.value)
                       .add(record.generation)
                       .add(record.helloJson)
                       .add(record.statsJson)
                       .value() ||
            (!records.empty() && std::pair(record.rank, record.generation) <=
                                     std::pair(records.back().rank, records.back().generation)))
            return damagedRow("ranks", static_cast<std::int64_t>(records.size()));
        records.push_back(std::move(record));
    }
}

Status RunFile::addEvent(const EventRecord& record)
{
    auto statement = m_state->database.prepare(insertEventSql);
    if (!statement)
        return fail(std::move(statement).error());
    return runInsert(*statement, record);
}

Result<std::vector<EventRecord>> RunFile::events(std::uint64_t from)
{
    auto statement = m_state->database.prepare(
        "SELECT id, wall_ns, level, code, text, rank, unit, crc FROM events WHERE id > ? ORDER BY "
        "id");
    if (!statement)
        return fail(std::move(statement).error());
    statement->bind(from);
    std::vector<EventRecord> records;
    auto before = static_cast<std::int64_t>(std::min(from, most));
    while (true) {
        auto row = statement->step();
        if (!row)
            return fail(std::move(row).error());
        if (!*row)
            return records;
        EventRecord record;
        const std::int64_t id = statement->integer();
        record.wallNs = statement->integer();
        record.level = statement->natural32();
        record.code = statement->text();
        record.text = statement->text();
        const std::int64_t rank = statement->integer();
        const std::int64_t unit = statement->integer();
        if (rank >= 0)
            record.rank = RankId(static_cast<std::uint32_t>(rank));
        if (unit >= 0)
            record.unit = UnitId(static_cast<std::uint64_t>(unit));
        const std::uint32_t crc = statement->natural32();
        if (statement->failed() || id <= before || crc != crcOf(record))
            return damagedRow("events", id);
        before = id;
        records.push_back(std::move(record));
    }
}

Result<std::vector<SeriesRecord>> RunFile::series(std::uint64_t from)
{
    auto statement = m_state->database.prepare(
        "SELECT id, t_ns, rank, items, tokens, compute_ns, wait_ns, transfer_ns, bytes, memory, "
        "crc FROM series WHERE id > ? ORDER BY id");
    if (!statement)
        return fail(std::move(statement).error());
    statement->bind(from);
    std::vector<SeriesRecord> records;
    auto before = static_cast<std::int64_t>(std::min(from, most));
    while (true) {
        auto row = statement->step();
        if (!row)
            return fail(std::move(row).error());
        if (!*row)
            return records;
        SeriesRecord record;
        const std::int64_t id = statement->integer();
        record.timeNs = statement->integer();
        record.rank = RankId(statement->natural32());
        record.items = statement->natural();
        record.tokens = statement->natural();
        record.computeNs = statement->integer();
        record.waitNs = statement->integer();
        record.transferNs = statement->integer();
        record.bytes = statement->natural();
        record.memory = statement->natural();
        const std::uint32_t crc = statement->natural32();
        if (statement->failed() || id <= before || crc != crcOf(record))
            return damagedRow("series", id);
        before = id;
        records.push_back(record);
    }
}

Status RunFile::setSum(const SumRecord& record)
{
    auto statement = m_state->database.prepare("INSERT OR REPLACE INTO sums VALUES(?,?,?,?,?,?,?)");
    if (!statement)
        return fail(std::move(statement).error());
    return statement->bind(record.scope)
        .bind(record.rank.value)
        .bind(record.generation)
        .bind(record.name)
        .bind(record.integer)
        .bind(record.real)
        .bind(crcOf(record))
        .run();
}

Result<std::vector<SumRecord>> RunFile::sums()
{
    auto statement = m_state->database.prepare("SELECT scope, rank, generation, name, whole, real, "
                                               "crc FROM sums ORDER BY scope, rank, generation, "
                                               "name");
    if (!statement)
        return fail(std::move(statement).error());
    std::vector<SumRecord> records;
    const auto placeOf = [](const SumRecord& record) {
        return std::tuple(std::string_view(record.scope), record.rank, record.generation,
                          std::string_view(record.name));
    };
    while (true) {
        auto row = statement->step();
        if (!row)
            return fail(std::move(row).error());
        if (!*row)
            return records;
        SumRecord record;
        record.scope = statement->text();
        record.rank = RankId(statement->natural32());
        record.generation = statement->natural32();
        record.name = statement->text();
        record.integer = statement->integer();
        record.real = statement->real();
        const std::uint32_t crc = statement->natural32();
        if (statement->failed() || crc != crcOf(record) ||
            (!records.empty() && placeOf(record) <= placeOf(records.back())))
            return damagedRow("sums", static_cast<std::int64_t>(records.size()));
        records.push_back(std::move(record));
    }
}

Status RunFile::setPredictions(std::span<const PredictionRecord> predictions)
{
    auto transaction = Transaction::begin(m_state->database);
    if (!transaction)
        return fail(std::move(transaction).error());
    if (auto cleared = m_state->database.exec("DELETE FROM predictions"); !cleared)
        return cleared;
    auto statement = m_state->database.prepare("INSERT INTO predictions VALUES(?,?,?,?,?,?,?)");
    if (!statement)
        return fail(std::move(statement).error());
    for (std::size_t i = 0; i < predictions.size(); ++i) {
        const auto& record = predictions[i];
        auto done = statement->bind(static_cast<std::uint64_t>(i))
                        .bind(record.text)
                        .bind(record.score)
                        .bind(record.second)
                        .bind(record.nullOdds)
                        .bind(std::span<const std::byte>(record.nBest))
                        .bind(crcOf(record, i))
                        .run();
        if (!done)
            return done;
    }
    return transaction->commit();
}

Status RunFile::forEachPrediction(const std::function<bool(SampleIndex, PredictionRecord&&)>& visit)
{
    auto statement = m_state->database.prepare(
        "SELECT idx, text, score, second, null_odds, nbest, crc FROM predictions ORDER BY idx");
    if (!statement)
        return fail(std::move(statement).error());
    for (std::uint64_t index = 0;; ++index) {
        auto row = statement->step();
        if (!row)
            return fail(std::move(row).error());
        if (!*row)
            return {};
        PredictionRecord record;
        const std::uint64_t found = statement->natural();
        record.text = statement->text();
        record.score = statement->optionalReal();
        record.second = statement->optionalReal();
        record.nullOdds = statement->optionalReal();
        const auto nBest = statement->blob();
        record.nBest.assign(nBest.begin(), nBest.end());
        const std::uint32_t crc = statement->natural32();
        if (statement->failed() || found != index || crc != crcOf(record, index))
            return damagedRow("predictions", static_cast<std::int64_t>(index));
        if (!visit(SampleIndex(index), std::move(record)))
            return {};
    }
}

Status RunFile::seal()
{
    return m_state->database.exec("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode=DELETE;");
}

Status RunFile::checkAll()
{
    if (auto done = allMeta(); !done)
        return fail(std::move(done).error());
    for (const auto name : {doc::config, doc::origin, doc::environment, doc::verdict, doc::proof}) {
        if (auto done = document(name); !done)
            return fail(std::move(done).error());
    }
    if (auto done = forEachContext([](auto, auto&&) { return true; }); !done)
        return done;
    if (auto done = forEachSample([](auto, auto&&) { return true; }); !done)
        return done;
    if (auto done = forEachItem([](auto, const auto&) { return true; }); !done)
        return done;
    if (auto done = forEachUnit([](auto, auto&&) { return true; }); !done)
        return done;
    if (auto done = forEachOutput([](const auto&, auto&&) { return true; }); !done)
        return done;
    if (auto done = duplicates(); !done)
        return fail(std::move(done).error());
    if (auto done = ranks(); !done)
        return fail(std::move(done).error());
    if (auto done = events(); !done)
        return fail(std::move(done).error());
    if (auto done = series(); !done)
        return fail(std::move(done).error());
    if (auto done = sums(); !done)
        return fail(std::move(done).error());
    return forEachPrediction([](auto, auto&&) { return true; });
}

Status RunFile::limitPages(std::uint32_t pages)
{
    const std::string limit = std::to_string(pages == 0 ? 4294967294U : pages);
    return m_state->database.exec(("PRAGMA max_page_count=" + limit).c_str());
}

struct PlanWriter::State {
    RunFile::State& file;
    Transaction transaction;
    Statement insertContext;
    Statement insertSample;
    Statement insertItems;
    Statement insertUnits;
    PlanRecord counts;
    std::vector<ItemRecord> items;
    ByteWriter units;
    std::uint64_t unitsInChunk = 0;
    std::uint64_t lastSample = 0;
    std::uint64_t itemChunks = 0;
    std::uint64_t unitChunks = 0;

    Status flushItems()
    {
        if (items.empty())
            return {};
        const auto data = packItems(items);
        const std::uint64_t count = items.size();
        items.clear();
        const std::uint64_t chunk = itemChunks++;
        return insertItems.bind(chunk)
            .bind(count)
            .bind(std::span<const std::byte>(data))
            .bind(crcOf(chunk, count, data))
            .run();
    }

    Status flushUnits()
    {
        if (unitsInChunk == 0)
            return {};
        const auto data = units.take();
        const std::uint64_t count = std::exchange(unitsInChunk, 0);
        const std::uint64_t chunk = unitChunks++;
        return insertUnits.bind(chunk)
            .bind(count)
            .bind(std::span<const std::byte>(data))
            .bind(crcOf(chunk, count, data))
            .run();
    }
};

PlanWriter::PlanWriter(std::unique_ptr<State> state) : m_state(std::move(state))
{
}
PlanWriter::PlanWriter(PlanWriter&&) noexcept = default;
PlanWriter::~PlanWriter() = default;

Result<PlanWriter> RunFile::planWriter()
{
    auto plan = m_state->readPlan();
    if (!plan)
        return fail(std::move(plan).error());
    if (**plan)
        return fail(Error::Kind::Invalid, "E-STORE-010",
                    path().string() + " has a plan; it is never replaced. Start a new run");
    auto& database = m_state->database;
    auto transaction = Transaction::begin(database);
    if (!transaction)
        return fail(std::move(transaction).error());
    auto context = database.prepare("INSERT INTO contexts VALUES(?,?,?,?,?,?)");
    auto sample = database.prepare("INSERT INTO samples VALUES(?,?,?,?,?,?,?,?,?)");
    auto items = database.prepare("INSERT INTO items VALUES(?,?,?,?)");
    auto units = database.prepare("INSERT INTO units VALUES(?,?,?,?)");
    if (!context || !sample || !items || !units)
        return fail(database.error());
    return PlanWriter(
        std::unique_ptr<PlanWriter::State>(new PlanWriter::State{*m_state,
                                                                 std::move(*transaction),
                                                                 std::move(*context),
                                                                 std::move(*sample),
                                                                 std::move(*items),
                                                                 std::move(*units),
                                                                 {},
                                                                 {},
                                                                 {}}));
}

Status PlanWriter::addContext(const ContextRecord& record)
{
    if (record.tokenBegin.size() != record.tokenEnd.size())
        return badReference("a context has different numbers of token starts and ends");
    const auto begin = packDeltas(record.tokenBegin);
    const auto end = packDeltas(record.tokenEnd);
    const std::uint64_t number = m_state->counts.contexts++;
    return m_state->insertContext.bind(number)
        .bind(record.id)
        .bind(record.text)
        .bind(std::span<const std::byte>(begin))
        .bind(std::span<const std::byte>(end))
        .bind(crcOf(record, begin, end, number))
        .run();
}

Status PlanWriter::addSample(const SampleRecord& record)
{
    if (record.context >= m_state->counts.contexts)
        return badReference("sample " + std::to_string(m_state->counts.samples) +
                            " names context " + std::to_string(record.context));
    const std::uint64_t index = m_state->counts.samples++;
    return m_state->insertSample.bind(index)
        .bind(record.id)
        .bind(record.hash)
        .bind(record.context)
        .bind(record.question)
        .bind(record.answersJson)
        .bind(std::int64_t{record.isImpossible ? 1 : 0})
        .bind(record.source)
        .bind(crcOf(record, index))
        .run();
}

Status PlanWriter::addItem(const ItemRecord& record)
{
    if (record.sample.value >= m_state->counts.samples || record.sample.value < m_state->lastSample)
        return badReference("item " + std::to_string(m_state->counts.items) + " names sample " +
                            std::to_string(record.sample.value));
    m_state->lastSample = record.sample.value;
    m_state->items.push_back(record);
    ++m_state->counts.items;
    return m_state->items.size() == chunkRows ? m_state->flushItems() : Status{};
}

Status PlanWriter::addUnit(const UnitRecord& record)
{
    for (const std::uint64_t item : record.items) {
        if (item >= m_state->counts.items)
            return badReference("unit " + std::to_string(m_state->counts.units) + " names item " +
                                std::to_string(item));
    }
    packUnit(m_state->units, record);
    ++m_state->counts.units;
    return ++m_state->unitsInChunk == chunkRows ? m_state->flushUnits() : Status{};
}

Status PlanWriter::finish(PlanRecord record)
{
    record.contexts = m_state->counts.contexts;
    record.samples = m_state->counts.samples;
    record.items = m_state->counts.items;
    record.units = m_state->counts.units;
    if (!record.owners.empty() && record.owners.size() != record.units)
        return badReference(std::to_string(record.owners.size()) + " owners for " +
                            std::to_string(record.units) + " units");
    if (auto done = m_state->flushItems(); !done)
        return done;
    if (auto done = m_state->flushUnits(); !done)
        return done;
    auto& file = m_state->file;
    auto statement = file.database.prepare("INSERT INTO plan VALUES(1,?,?,?,?,?,?,?,?,?)");
    if (!statement)
        return fail(std::move(statement).error());
    auto done = statement->bind(record.digest)
                    .bind(record.schedule)
                    .bind(std::as_bytes(std::span(record.owners)))
                    .bind(record.detailJson)
                    .bind(record.contexts)
                    .bind(record.samples)
                    .bind(record.items)
                    .bind(record.units)
                    .bind(crcOf(record))
                    .run();
    if (!done)
        return done;
    if (auto committed = m_state->transaction.commit(); !committed)
        return committed;
    file.plan = std::move(record);
    file.planRead = true;
    return {};
}

struct OutputWriter::State {
    struct Pending {
        OutputRecord record;
        std::vector<std::byte> block;
    };
    RunFile::State& file;
    Statement insertOutput;
    Statement insertDuplicate;
    Statement insertEvent;
    Statement insertPoint;
    std::vector<std::uint8_t> has;
    std::vector<Pending> outputs;
    std::vector<DuplicateRecord> duplicates;
    std::vector<EventRecord> events;
    std::vector<SeriesRecord> points;

    Status writeAll();
};

OutputWriter::OutputWriter(std::unique_ptr<State> state) : m_state(std::move(state))
{
}
OutputWriter::OutputWriter(OutputWriter&&) noexcept = default;
OutputWriter::~OutputWriter() = default;

Result<OutputWriter> RunFile::outputWriter()
{
    auto done = doneUnits();
    if (!done)
        return fail(std::move(done).error());
    auto& database = m_state->database;
    auto output = database.prepare("INSERT INTO outputs VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
    auto duplicate = database.prepare("INSERT INTO duplicates VALUES(NULL,?,?,?,?,?,?,?,?,?)");
    auto event = database.prepare(insertEventSql);
    auto point = database.prepare("INSERT INTO series VALUES(NULL,?,?,?,?,?,?,?,?,?,?)");
    if (!output || !duplicate || !event || !point)
        return fail(database.error());
    return OutputWriter(
        std::unique_ptr<OutputWriter::State>(new OutputWriter::State{*m_state,
                                                                     std::move(*output),
                                                                     std::move(*duplicate),
                                                                     std::move(*event),
                                                                     std::move(*point),
                                                                     std::move(*done),
                                                                     {},
                                                                     {},
                                                                     {},
                                                                     {}}));
}

Status OutputWriter::add(const wire::OutputBlock& block, std::uint32_t generation,
                         std::int64_t arrivalNs, std::string_view node)
{
    const std::uint64_t unit = block.unit.value;
    if (unit >= m_state->has.size())
        return fail(Error::Kind::Integrity, "E-STORE-013",
                    "unit " + std::to_string(unit) + " is not in the plan, which has " +
                        std::to_string(m_state->has.size()) + " units");
    if (m_state->has[static_cast<std::size_t>(unit)] != 0)
        return fail(Error::Kind::Integrity, "E-STORE-013",
                    "unit " + std::to_string(unit) + " is there already; the first result is kept");
    OutputRecord record{.unit = block.unit,
                        .rank = block.rank,
                        .generation = generation,
                        .attempt = block.attempt,
                        .sequence = block.sequence,
                        .arrivalNs = arrivalNs,
                        .startedNs = block.startedNs,
                        .finishedNs = block.finishedNs,
                        .node = std::string(node),
                        .realTokens = block.realTokens,
                        .padTokens = block.padTokens};
    m_state->outputs.push_back({std::move(record), wire::encodeBlock(block)});
    m_state->has[static_cast<std::size_t>(unit)] = 1;
    return {};
}

void OutputWriter::addDuplicate(DuplicateRecord record)
{
    m_state->duplicates.push_back(std::move(record));
}

void OutputWriter::addEvent(EventRecord record)
{
    m_state->events.push_back(std::move(record));
}

void OutputWriter::addPoint(SeriesRecord record)
{
    m_state->points.push_back(record);
}

std::size_t OutputWriter::pendingUnits() const
{
    return m_state->outputs.size();
}

bool OutputWriter::has(UnitId unit) const
{
    return unit.value < m_state->has.size() &&
           m_state->has[static_cast<std::size_t>(unit.value)] != 0;
}

Status OutputWriter::State::writeAll()
{
    auto transaction = Transaction::begin(file.database);
    if (!transaction)
        return fail(std::move(transaction).error());
    for (const auto& [record, block] : outputs) {
        auto done = insertOutput.bind(record.unit.value)
                        .bind(record.rank.value)
                        .bind(record.generation)
                        .bind(record.attempt)
                        .bind(record.sequence)
                        .bind(record.arrivalNs)
                        .bind(record.startedNs)
                        .bind(record.finishedNs)
                        .bind(record.node)
                        .bind(record.realTokens)
                        .bind(record.padTokens)
                        .bind(crcOf(record))
                        .bind(crc32c(block))
                        .bind(std::span<const std::byte>(block))
                        .run();
        if (!done)
            return done;
    }
    for (const auto& record : duplicates) {
        auto done = insertDuplicate.bind(record.unit.value)
                        .bind(record.rank.value)
                        .bind(record.generation)
                        .bind(record.attempt)
                        .bind(record.arrivalNs)
                        .bind(std::int64_t{record.isEqual ? 1 : 0})
                        .bind(orMinusOne(record.firstDifferingItem))
                        .bind(record.detail)
                        .bind(crcOf(record))
                        .run();
        if (!done)
            return done;
    }
    for (const auto& record : events) {
        if (auto done = runInsert(insertEvent, record); !done)
            return done;
    }
    for (const auto& record : points) {
        auto done = insertPoint.bind(record.timeNs)
                        .bind(record.rank.value)
                        .bind(record.items)
                        .bind(record.tokens)
                        .bind(record.computeNs)
                        .bind(record.waitNs)
                        .bind(record.transferNs)
                        .bind(record.bytes)
                        .bind(record.memory)
                        .bind(crcOf(record))
                        .run();
        if (!done)
            return done;
    }
    return transaction->commit();
}

Result<std::vector<UnitId>> OutputWriter::commit()
{
    std::vector<UnitId> durable;
    if (m_state->outputs.empty() && m_state->duplicates.empty() && m_state->events.empty() &&
        m_state->points.empty())
        return durable;
    if (auto done = m_state->writeAll(); !done)
        return fail(std::move(done).error());
    durable.reserve(m_state->outputs.size());
    for (const auto& pending : m_state->outputs)
        durable.push_back(pending.record.unit);
    m_state->outputs.clear();
    m_state->duplicates.clear();
    m_state->events.clear();
    m_state->points.clear();
    return durable;
}

} // namespace muster::store
