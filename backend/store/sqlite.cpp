// SPDX-License-Identifier: Apache-2.0
#include "store/sqlite_p.h"

#include <sqlite3.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include <unistd.h>

namespace muster::store {

namespace {

constexpr int largestValue = 512 << 20; // bytes of one value: the owners of 10^8 units fit
constexpr int busyMs = 10'000;

Error errorOf(sqlite3* handle, const std::string& path)
{
    const int result = handle != nullptr ? sqlite3_errcode(handle) : SQLITE_NOMEM;
    const int extended = handle != nullptr ? sqlite3_extended_errcode(handle) : SQLITE_NOMEM;
    const std::string words =
        path + ": " + (handle != nullptr ? sqlite3_errmsg(handle) : "out of memory");
    switch (result) {
    case SQLITE_FULL:
        return {Error::Kind::Io, "E-STORE-006",
                words + ". Nothing of this step was counted; free space on the disk and go on"};
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_FORMAT:
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
    case SQLITE_ERROR:
    case SQLITE_CONSTRAINT:
        return {Error::Kind::Integrity, "E-STORE-007", words + ". The file is damaged"};
    case SQLITE_CANTOPEN:
        return {Error::Kind::Io, "E-STORE-005", words};
    default:
        return {Error::Kind::Io, "E-STORE-005",
                words + " (code " + std::to_string(extended) +
                    "). What was acknowledged before is safe"};
    }
}

} // namespace

Statement::Statement(Statement&& other) noexcept
    : m_statement(std::exchange(other.m_statement, nullptr)), m_nextBind(other.m_nextBind),
      m_nextColumn(other.m_nextColumn), m_failed(other.m_failed)
{
}

Statement& Statement::operator=(Statement&& other) noexcept
{
    std::swap(m_statement, other.m_statement);
    m_nextBind = other.m_nextBind;
    m_nextColumn = other.m_nextColumn;
    m_failed = other.m_failed;
    return *this;
}

Statement::~Statement()
{
    sqlite3_finalize(m_statement);
}

Statement& Statement::bind(std::int64_t value)
{
    sqlite3_bind_int64(m_statement, m_nextBind++, value);
    return *this;
}

Statement& Statement::bind(double value)
{
    sqlite3_bind_double(m_statement, m_nextBind++, value);
    return *this;
}

Statement& Statement::bind(std::optional<double> value)
{
    if (value)
        return bind(*value);
    sqlite3_bind_null(m_statement, m_nextBind++);
    return *this;
}

Statement& Statement::bind(std::string_view text)
{
    // A null pointer would bind NULL instead of the empty text.
    sqlite3_bind_text64(m_statement, m_nextBind++, text.empty() ? "" : text.data(), text.size(),
                        SQLITE_STATIC, SQLITE_UTF8);
    return *this;
}

Statement& Statement::bind(std::span<const std::byte> blob)
{
    if (blob.empty())
        sqlite3_bind_zeroblob(m_statement, m_nextBind++, 0);
    else
        sqlite3_bind_blob64(m_statement, m_nextBind++, blob.data(), blob.size(), SQLITE_STATIC);
    return *this;
}

Statement& Statement::bind(const Hash128& hash)
{
    std::byte packed[16];
    std::memcpy(packed, &hash.high, 8);
    std::memcpy(packed + 8, &hash.low, 8);
    sqlite3_bind_blob(m_statement, m_nextBind++, packed, 16, SQLITE_TRANSIENT);
    return *this;
}

Result<bool> Statement::step()
{
    m_nextColumn = 0;
    m_failed = false;
    const int result = sqlite3_step(m_statement);
    if (result == SQLITE_ROW)
        return true;
    if (result == SQLITE_DONE)
        return false;
    sqlite3* handle = sqlite3_db_handle(m_statement);
    const char* name = sqlite3_db_filename(handle, "main");
    return fail(errorOf(handle, name != nullptr ? name : "run file"));
}

Status Statement::run()
{
    auto stepped = step();
    reset();
    if (!stepped)
        return fail(std::move(stepped).error());
    return {};
}

void Statement::reset()
{
    sqlite3_reset(m_statement);
    m_nextBind = 1;
    m_nextColumn = 0;
}

std::int64_t Statement::integer()
{
    const int column = m_nextColumn++;
    if (sqlite3_column_type(m_statement, column) != SQLITE_INTEGER) {
        m_failed = true;
        return 0;
    }
    return sqlite3_column_int64(m_statement, column);
}

std::uint64_t Statement::natural(std::uint64_t limit)
{
    const std::int64_t value = integer();
    if (value < 0 || static_cast<std::uint64_t>(value) > limit) {
        m_failed = true;
        return 0;
    }
    return static_cast<std::uint64_t>(value);
}

double Statement::real()
{
    const int column = m_nextColumn++;
    const int type = sqlite3_column_type(m_statement, column);
    if (type != SQLITE_FLOAT && type != SQLITE_INTEGER) {
        m_failed = true;
        return 0.0;
    }
    return sqlite3_column_double(m_statement, column);
}

std::optional<double> Statement::optionalReal()
{
    if (sqlite3_column_type(m_statement, m_nextColumn) == SQLITE_NULL) {
        ++m_nextColumn;
        return std::nullopt;
    }
    return real();
}

std::string_view Statement::text()
{
    const int column = m_nextColumn++;
    if (sqlite3_column_type(m_statement, column) != SQLITE_TEXT) {
        m_failed = true;
        return {};
    }
    const void* data = sqlite3_column_text(m_statement, column);
    const int size = sqlite3_column_bytes(m_statement, column);
    if (data == nullptr) {
        m_failed = true;
        return {};
    }
    return {static_cast<const char*>(data), static_cast<std::size_t>(size)};
}

std::span<const std::byte> Statement::blob()
{
    const int column = m_nextColumn++;
    if (sqlite3_column_type(m_statement, column) != SQLITE_BLOB) {
        m_failed = true;
        return {};
    }
    const void* data = sqlite3_column_blob(m_statement, column);
    const int size = sqlite3_column_bytes(m_statement, column);
    if (data == nullptr) {
        m_failed = m_failed || size != 0;
        return {};
    }
    return {static_cast<const std::byte*>(data), static_cast<std::size_t>(size)};
}

Hash128 Statement::hash()
{
    const auto packed = blob();
    Hash128 result;
    if (packed.size() != 16) {
        m_failed = true;
        return result;
    }
    std::memcpy(&result.high, packed.data(), 8);
    std::memcpy(&result.low, packed.data() + 8, 8);
    return result;
}

Database::Database(Database&& other) noexcept
    : m_handle(std::exchange(other.m_handle, nullptr)), m_path(std::move(other.m_path))
{
}

Database& Database::operator=(Database&& other) noexcept
{
    std::swap(m_handle, other.m_handle);
    std::swap(m_path, other.m_path);
    return *this;
}

Database::~Database()
{
    sqlite3_close_v2(m_handle);
}

Error Database::error() const
{
    return errorOf(m_handle, m_path);
}

Result<Database> Database::open(const std::filesystem::path& path, OpenMode mode)
{
    std::error_code status;
    const bool exists = std::filesystem::is_regular_file(path, status);
    if (mode != OpenMode::Create && !exists)
        return fail(Error::Kind::NotFound, "E-STORE-002", path.string() + " does not exist");
    Database database;
    database.m_path = path.string();
    const int flags = (mode == OpenMode::ReadOnly ? SQLITE_OPEN_READONLY
                                                  : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) |
                      SQLITE_OPEN_FULLMUTEX | SQLITE_OPEN_EXRESCODE;
    std::string name = path.string();
    int extra = 0;
    // A sealed file on a medium that cannot be written: there is no log to read, and no place for
    // one.
    if (mode == OpenMode::ReadOnly && !std::filesystem::exists(path.string() + "-wal", status) &&
        ::access(path.parent_path().empty() ? "." : path.parent_path().c_str(), W_OK) != 0) {
        std::string uri = "file:";
        for (const char c : std::filesystem::absolute(path, status).string()) {
            if (c == '%' || c == '?' || c == '#') {
                static constexpr char digits[] = "0123456789ABCDEF";
                uri += '%';
                uri += digits[(static_cast<unsigned char>(c) >> 4U) & 15U];
                uri += digits[static_cast<unsigned char>(c) & 15U];
            } else {
                uri += c;
            }
        }
        name = uri + "?immutable=1";
        extra = SQLITE_OPEN_URI;
    }
    if (sqlite3_open_v2(name.c_str(), &database.m_handle, flags | extra, nullptr) != SQLITE_OK)
        return fail(database.error());
    sqlite3* handle = database.m_handle;
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);
    sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, largestValue);
    sqlite3_limit(handle, SQLITE_LIMIT_SQL_LENGTH, 1 << 16);
    sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0);
    sqlite3_busy_timeout(handle, busyMs);
    if (auto done = database.exec("PRAGMA cell_size_check=ON; PRAGMA mmap_size=0;"
                                  "PRAGMA temp_store=MEMORY;");
        !done)
        return fail(std::move(done).error());
    return database;
}

Status Database::exec(const char* sql)
{
    if (sqlite3_exec(m_handle, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
        return fail(error());
    return {};
}

Result<Statement> Database::prepare(std::string_view sql)
{
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(m_handle, sql.data(), static_cast<int>(sql.size()), &statement,
                           nullptr) != SQLITE_OK)
        return fail(error());
    return Statement(statement);
}

Result<std::int64_t> Database::scalar(std::string_view sql)
{
    auto statement = prepare(sql);
    if (!statement)
        return fail(std::move(statement).error());
    auto row = statement->step();
    if (!row)
        return fail(std::move(row).error());
    const std::int64_t value = *row ? statement->integer() : 0;
    if (!*row || statement->failed())
        return fail(Error::Kind::Integrity, "E-STORE-007", m_path + ": a number is missing");
    return value;
}

Status Database::checkSchema(std::span<const char* const> schema)
{
    auto statement = prepare("SELECT type, sql FROM sqlite_schema WHERE sql IS NOT NULL");
    if (!statement)
        return fail(std::move(statement).error());
    std::vector<bool> seen(schema.size());
    const auto refuse = [this] {
        return fail(Error::Kind::Invalid, "E-STORE-004",
                    m_path + " does not have the tables that Muster makes; it is from another "
                             "program or was changed. Nothing was read from it");
    };
    while (true) {
        auto row = statement->step();
        if (!row)
            return fail(std::move(row).error());
        if (!*row)
            break;
        const std::string type(statement->text());
        const std::string sql(statement->text());
        const auto found = std::find_if(schema.begin(), schema.end(),
                                        [&sql](const char* known) { return sql == known; });
        if (statement->failed() || (type != "table" && type != "index") || found == schema.end())
            return refuse();
        const auto place = static_cast<std::size_t>(found - schema.begin());
        if (seen[place])
            return refuse();
        seen[place] = true;
    }
    if (std::find(seen.begin(), seen.end(), false) != seen.end())
        return refuse();
    return {};
}

Result<Transaction> Transaction::begin(Database& database)
{
    if (auto begun = database.exec("BEGIN IMMEDIATE"); !begun)
        return fail(std::move(begun).error());
    return Transaction(database);
}

Transaction::~Transaction()
{
    // SQLite may have rolled back by itself, and then this is an error without meaning.
    if (m_database != nullptr)
        static_cast<void>(m_database->exec("ROLLBACK"));
}

Status Transaction::commit()
{
    auto done = m_database->exec("COMMIT");
    if (done)
        m_database = nullptr;
    return done;
}

} // namespace muster::store
