// SPDX-License-Identifier: Apache-2.0
#include "store/history.h"

#include "store/run_file.h"
#include "store/sqlite_p.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <map>
#include <utility>

namespace muster::store {

namespace {

constexpr std::array<const char*, 1> tables = {
    "CREATE TABLE runs(id TEXT PRIMARY KEY, folder TEXT NOT NULL, created_ns INTEGER NOT NULL, "
    "name TEXT NOT NULL, task TEXT NOT NULL, model TEXT NOT NULL, data TEXT NOT NULL, "
    "ranks INTEGER NOT NULL, verdict TEXT NOT NULL, summary TEXT NOT NULL, tags TEXT NOT NULL)"};
constexpr std::int32_t indexId = 0x4D535448; // the letters MSTH

template <typename Number>
Number numberOr(const std::string& text, Number otherwise)
{
    Number value{};
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    return problem == std::errc() && end == text.data() + text.size() ? value : otherwise;
}

tl::unexpected<Error> unknownRun(std::string_view id)
{
    return fail(Error::Kind::NotFound, "E-STORE-020",
                "the history has no run " + std::string(id) +
                    "; `muster history ls` lists them, `muster history rebuild` reads the folders "
                    "again");
}

} // namespace

struct History::State {
    Database database;

    Result<std::vector<HistoryEntry>> read(std::string_view where, std::string_view value)
    {
        auto statement = database.prepare("SELECT id, folder, created_ns, name, task, model, data, "
                                          "ranks, verdict, summary, tags FROM runs " +
                                          std::string(where));
        if (!statement)
            return fail(std::move(statement).error());
        if (!value.empty())
            statement->bind(value);
        std::vector<HistoryEntry> entries;
        while (true) {
            auto row = statement->step();
            if (!row)
                return fail(std::move(row).error());
            if (!*row)
                return entries;
            HistoryEntry entry;
            entry.id = statement->text();
            entry.folder = std::filesystem::path(statement->text());
            entry.createdNs = statement->integer();
            entry.name = statement->text();
            entry.task = statement->text();
            entry.model = statement->text();
            entry.data = statement->text();
            entry.ranks = statement->natural32();
            entry.verdict = statement->text();
            entry.summary = statement->text();
            entry.tags = statement->text();
            if (!statement->failed())
                entries.push_back(std::move(entry));
        }
    }

    Status insert(const HistoryEntry& entry)
    {
        auto statement =
            database.prepare("INSERT OR REPLACE INTO runs VALUES(?,?,?,?,?,?,?,?,?,?,?)");
        if (!statement)
            return fail(std::move(statement).error());
        const std::string folder = entry.folder.string();
        return statement->bind(entry.id)
            .bind(folder)
            .bind(entry.createdNs)
            .bind(entry.name)
            .bind(entry.task)
            .bind(entry.model)
            .bind(entry.data)
            .bind(entry.ranks)
            .bind(entry.verdict)
            .bind(entry.summary)
            .bind(entry.tags)
            .run();
    }
};

History::History(std::unique_ptr<State> state) : m_state(std::move(state))
{
}
History::History(History&&) noexcept = default;
History& History::operator=(History&&) noexcept = default;
History::~History() = default;

std::filesystem::path History::defaultPath()
{
    const char* data = std::getenv("XDG_DATA_HOME");
    std::filesystem::path root(data != nullptr ? data : "");
    if (!root.is_absolute()) {
        const char* home = std::getenv("HOME");
        root = std::filesystem::path(home != nullptr ? home : "/") / ".local" / "share";
    }
    return root / "muster" / "history.sqlite";
}

Result<History> History::open(const std::filesystem::path& path)
{
    std::error_code problem;
    if (!path.parent_path().empty())
        std::filesystem::create_directories(path.parent_path(), problem);
    const auto openOnce = [&path]() -> Result<History> {
        auto database = Database::open(path, OpenMode::Create);
        if (!database)
            return fail(std::move(database).error());
        auto id = database->scalar("PRAGMA application_id");
        if (!id)
            return fail(std::move(id).error());
        if (*id == 0) {
            std::string sql = "PRAGMA journal_mode=WAL; BEGIN IMMEDIATE; PRAGMA application_id=" +
                              std::to_string(indexId) + ";";
            sql.append(tables[0]).append("; COMMIT;");
            if (auto done = database->exec(sql.c_str()); !done)
                return fail(std::move(done).error());
        }
        if (auto checked = database->checkSchema(tables); !checked)
            return fail(std::move(checked).error());
        auto state = std::make_unique<State>();
        state->database = std::move(*database);
        return History(std::move(state));
    };
    auto opened = openOnce();
    // Another program may have made the table between our look and our step: look again.
    if (!opened)
        opened = openOnce();
    if (opened || opened.error().kind == Error::Kind::Io)
        return opened;
    for (const char* suffix : {"", "-wal", "-shm"})
        std::filesystem::rename(path.string() + suffix, path.string() + ".damaged" + suffix,
                                problem);
    return openOnce();
}

Status History::add(const HistoryEntry& entry)
{
    return m_state->insert(entry);
}

Result<std::vector<HistoryEntry>> History::list()
{
    return m_state->read("ORDER BY created_ns DESC, id", {});
}

Result<HistoryEntry> History::find(std::string_view idOrStart)
{
    auto entries = list();
    if (!entries)
        return fail(std::move(entries).error());
    const HistoryEntry* found = nullptr;
    for (const auto& entry : *entries) {
        if (entry.id == idOrStart)
            return entry;
        if (!entry.id.starts_with(idOrStart))
            continue;
        if (found != nullptr)
            return fail(Error::Kind::Usage, "E-STORE-021",
                        "several runs start with " + std::string(idOrStart) + ": " + found->id +
                            " and " + entry.id + "; give more of the id");
        found = &entry;
    }
    if (found == nullptr || idOrStart.empty())
        return unknownRun(idOrStart);
    return *found;
}

Status History::tag(std::string_view id, std::string_view tags)
{
    auto entry = find(id);
    if (!entry)
        return fail(std::move(entry).error());
    entry->tags = tags;
    return m_state->insert(*entry);
}

Status History::remove(std::string_view id)
{
    auto entry = find(id);
    if (!entry)
        return fail(std::move(entry).error());
    auto statement = m_state->database.prepare("DELETE FROM runs WHERE id = ?");
    if (!statement)
        return fail(std::move(statement).error());
    return statement->bind(entry->id).run();
}

Result<History::Rebuilt> History::rebuild(const std::vector<std::filesystem::path>& roots)
{
    auto before = list();
    if (!before)
        return fail(std::move(before).error());
    std::map<std::string, std::string> tags;
    for (const auto& entry : *before)
        tags[entry.id] = entry.tags;
    Rebuilt rebuilt;
    std::vector<HistoryEntry> entries;
    const auto look = [&](const std::filesystem::path& folder) {
        std::error_code problem;
        if (!std::filesystem::is_regular_file(folder / "run.muster", problem))
            return;
        auto entry = historyEntryOf(folder);
        if (!entry) {
            rebuilt.problems.push_back(entry.error().text());
            return;
        }
        if (const auto kept = tags.find(entry->id); kept != tags.end() && entry->tags.empty())
            entry->tags = kept->second;
        entries.push_back(std::move(*entry));
    };
    for (const auto& root : roots) {
        std::error_code problem;
        look(root);
        for (std::filesystem::directory_iterator at(root, problem), end; at != end;
             at.increment(problem))
            look(at->path());
    }
    auto transaction = Transaction::begin(m_state->database);
    if (!transaction)
        return fail(std::move(transaction).error());
    if (auto cleared = m_state->database.exec("DELETE FROM runs"); !cleared)
        return fail(std::move(cleared).error());
    for (const auto& entry : entries) {
        if (auto done = m_state->insert(entry); !done)
            return fail(std::move(done).error());
    }
    if (auto done = transaction->commit(); !done)
        return fail(std::move(done).error());
    rebuilt.runs = entries.size();
    return rebuilt;
}

Result<HistoryEntry> historyEntryOf(const std::filesystem::path& folder)
{
    auto file = RunFile::open(folder / "run.muster", Access::ReadOnly);
    if (!file)
        return fail(std::move(file).error());
    auto meta = file->allMeta();
    if (!meta)
        return fail(std::move(meta).error());
    const std::map<std::string, std::string, std::less<>> values(meta->begin(), meta->end());
    const auto valueOf = [&values](std::string_view name) {
        const auto found = values.find(name);
        return found != values.end() ? found->second : std::string();
    };
    std::error_code problem;
    HistoryEntry entry;
    entry.folder = std::filesystem::absolute(folder, problem).lexically_normal();
    entry.id = valueOf(key::runId);
    if (entry.id.empty())
        entry.id = entry.folder.filename().string();
    entry.createdNs = numberOr<std::int64_t>(valueOf(key::createdNs), 0);
    entry.name = valueOf(key::name);
    entry.task = valueOf(key::task);
    entry.model = valueOf(key::model);
    entry.data = valueOf(key::data);
    entry.ranks = numberOr<std::uint32_t>(valueOf(key::ranks), 0);
    entry.verdict = valueOf(key::verdict);
    if (entry.verdict.empty())
        entry.verdict = "RUNNING";
    entry.summary = valueOf(key::summary);
    entry.tags = valueOf(key::tags);
    return entry;
}

} // namespace muster::store
