// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::store {

/// One run as the history lists it. A copy of what the run file says: the file is the truth.
struct HistoryEntry {
    std::string id;
    std::filesystem::path folder; ///< the run's own folder, absolute
    std::int64_t createdNs = 0;   ///< wall clock
    std::string name;
    std::string task;
    std::string model;
    std::string data;
    std::uint32_t ranks = 0;
    std::string verdict; ///< the word, such as ALIGNED; RUNNING when none was stored
    std::string summary; ///< last line of the run
    std::string tags;    ///< separated by spaces
    bool operator==(const HistoryEntry&) const = default;
};

/// Index over all runs of a user, so that the list is there at once. Only an index: it can be
/// deleted and rebuilt from the run folders at any time. One thread at a time per object; several
/// programs may use the file at once.
///
/// Errors: Io and Integrity as RunFile has them.
class History final {
public:
    /// `$XDG_DATA_HOME/muster/history.sqlite`, or below `~/.local/share`.
    [[nodiscard]] static std::filesystem::path defaultPath();
    /// Opens, and makes file and folder when they do not exist. A damaged index is put aside as
    /// `<name>.damaged` and started anew.
    [[nodiscard]] static Result<History> open(const std::filesystem::path& path);

    History(History&&) noexcept;
    History& operator=(History&&) noexcept;
    ~History();

    /// Adds or replaces the entry of that id.
    [[nodiscard]] Status add(const HistoryEntry& entry);
    /// All entries, the newest first.
    [[nodiscard]] Result<std::vector<HistoryEntry>> list();
    /// The entry whose id is `idOrStart` or is the only one that starts with it. Errors: NotFound
    /// (`E-STORE-020`); Usage (`E-STORE-021`) when several start with it.
    [[nodiscard]] Result<HistoryEntry> find(std::string_view idOrStart);
    /// Replaces the tags. Error: NotFound (`E-STORE-020`).
    [[nodiscard]] Status tag(std::string_view id, std::string_view tags);
    /// Takes the entry out of the index; the run's folder stays. Error: NotFound (`E-STORE-020`).
    [[nodiscard]] Status remove(std::string_view id);
    /// What rebuild() found.
    struct Rebuilt {
        std::uint64_t runs = 0;
        std::vector<std::string> problems; ///< one sentence per run file that could not be read
    };
    /// Replaces the whole index by the runs in the folders directly below each of `roots` (and the
    /// roots themselves). Tags that the run files do not have are kept by id.
    [[nodiscard]] Result<Rebuilt> rebuild(const std::vector<std::filesystem::path>& roots);

private:
    struct State;
    explicit History(std::unique_ptr<State> state);
    std::unique_ptr<State> m_state;
};

/// The entry of a run from its run file `folder`/run.muster. Errors: those of RunFile::open().
[[nodiscard]] Result<HistoryEntry> historyEntryOf(const std::filesystem::path& folder);

} // namespace muster::store
