// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace muster::store {

/// How a file is opened.
enum class OpenMode { Create, ReadWrite, ReadOnly };

/// One prepared statement. Column reads check the type and remember a mismatch in failed(), so a
/// row is read in one go and checked once. Belongs to one thread, dies before its Database.
class Statement final {
public:
    Statement() = default;
    explicit Statement(sqlite3_stmt* statement) : m_statement(statement) {}
    Statement(Statement&& other) noexcept;
    Statement& operator=(Statement&& other) noexcept;
    ~Statement();

    Statement& bind(std::int64_t value);
    Statement& bind(std::uint64_t value) { return bind(static_cast<std::int64_t>(value)); }
    Statement& bind(std::uint32_t value) { return bind(static_cast<std::int64_t>(value)); }
    Statement& bind(double value);
    Statement& bind(std::optional<double> value);
    /// Borrowed until the next reset().
    Statement& bind(std::string_view text);
    /// Borrowed until the next reset().
    Statement& bind(std::span<const std::byte> blob);
    Statement& bind(const Hash128& hash);

    /// True for a row, false at the end. Errors as Database::error().
    [[nodiscard]] Result<bool> step();
    /// Runs a statement that returns no rows, and resets it.
    [[nodiscard]] Status run();
    void reset();

    [[nodiscard]] std::int64_t integer();
    /// A value from 0 to `limit`.
    [[nodiscard]] std::uint64_t natural(std::uint64_t limit = INT64_MAX);
    [[nodiscard]] std::uint32_t natural32()
    {
        return static_cast<std::uint32_t>(natural(UINT32_MAX));
    }
    [[nodiscard]] double real();
    [[nodiscard]] std::optional<double> optionalReal();
    /// Borrowed until the next step() or reset().
    [[nodiscard]] std::string_view text();
    /// Borrowed until the next step() or reset().
    [[nodiscard]] std::span<const std::byte> blob();
    [[nodiscard]] Hash128 hash();
    /// A column of this row had another type or was out of range.
    [[nodiscard]] bool failed() const { return m_failed; }

private:
    sqlite3_stmt* m_statement = nullptr;
    int m_nextBind = 1;
    int m_nextColumn = 0;
    bool m_failed = false;
};

/// An SQLite connection with every defence switched on: no trusted schema, no triggers, views or
/// extensions, cell sizes checked, bounded lengths. Belongs to one thread at a time.
class Database final {
public:
    Database() = default;
    Database(Database&& other) noexcept;
    Database& operator=(Database&& other) noexcept;
    ~Database();

    /// Errors: NotFound (`E-STORE-002`), Invalid (`E-STORE-003`) when it is no SQLite file, Io.
    [[nodiscard]] static Result<Database> open(const std::filesystem::path& path, OpenMode mode);

    [[nodiscard]] Status exec(const char* sql);
    [[nodiscard]] Result<Statement> prepare(std::string_view sql);
    /// The one integer that `sql` returns.
    [[nodiscard]] Result<std::int64_t> scalar(std::string_view sql);
    /// Refuses unless the tables and indices are exactly those of `schema` (`E-STORE-004`).
    [[nodiscard]] Status checkSchema(std::span<const char* const> schema);
    /// The state of the connection as an error: Io (`E-STORE-005`, `E-STORE-006` for a full disk),
    /// Integrity (`E-STORE-007`) for a damaged file.
    [[nodiscard]] Error error() const;
    [[nodiscard]] bool isOpen() const { return m_handle != nullptr; }

private:
    sqlite3* m_handle = nullptr;
    std::string m_path;
};

/// BEGIN IMMEDIATE … COMMIT; rolls back when it dies without commit().
class Transaction final {
public:
    [[nodiscard]] static Result<Transaction> begin(Database& database);
    Transaction(Transaction&& other) noexcept : m_database(std::exchange(other.m_database, nullptr))
    {
    }
    Transaction& operator=(Transaction&&) = delete;
    ~Transaction();
    [[nodiscard]] Status commit();

private:
    explicit Transaction(Database& database) : m_database(&database) {}
    Database* m_database = nullptr;
};

} // namespace muster::store
