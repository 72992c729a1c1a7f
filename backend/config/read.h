// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "config/run_config.h"
#include "config/settings.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::config {

/// Where a value came from, weakest first: a later layer wins.
enum class Layer { Default, Site, User, Project, Given, Environment, Flag };

/// `default`, `site`, `user`, `project`, `given`, `environment`, `flag`.
[[nodiscard]] std::string_view layerName(Layer layer);

/// The place of one value. `line` and `column` count from 1 and are 0 where there is no file.
struct Origin {
    Layer layer = Layer::Default;
    std::string source; ///< file as it was opened, variable or flag; empty for a default
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    bool operator==(const Origin&) const = default;

    /// `qa.toml:3:7`, `--ranks`, `MUSTER_RANKS`, `default`.
    [[nodiscard]] std::string text() const;
};

/// One thing wrong with a configuration. `key` is empty when no setting is meant.
struct Problem {
    Origin where;
    std::string key;
    Error error;

    /// `qa.toml:3:7: E-CONFIG-004: qa.doc_stride: …`, one line.
    [[nodiscard]] std::string text() const;
};

/// A complete configuration with the origin of each value; keys without an entry are defaults.
/// Gates have the key `gates.<metric>`.
struct Resolved {
    RunConfig config;
    std::map<std::string, Origin, std::less<>> origins;

    /// The origin of the key, a default when it has none.
    [[nodiscard]] Origin originOf(std::string_view key) const;
};

/// What reading gave: a configuration and everything that was wrong on the way. Values with a
/// problem keep what the weaker layers said.
struct Reading {
    Resolved resolved;
    std::vector<Problem> problems;

    /// The configuration, or one error that lists all problems, one a line. The kind is Usage when
    /// only flags are wrong, otherwise Invalid (or NotFound for a lone missing file).
    [[nodiscard]] Result<Resolved> result() const;
};

/// A configuration file that is already in memory.
struct TomlText {
    std::string name; ///< shown in messages
    std::string text;
    std::filesystem::path folder; ///< relative paths are relative to it; empty: left as they are
};

/// Reads one file over the defaults. Never throws; at most 1 MiB.
/// Problems: Invalid `E-CONFIG-001` (not TOML), `002` (unknown key), `003` (wrong type), `004`
/// (range), `005` (choice), `006` (two settings contradict), `007` (layout version), `008` (not
/// readable), `009` (gate).
[[nodiscard]] Reading readToml(const TomlText& toml, Layer layer = Layer::Given);

/// The same for a file; relative paths are relative to its folder.
[[nodiscard]] Reading readTomlFile(const std::filesystem::path& path);

/// One setting from a flag: `--set qa.doc_stride=64` has the flag `--set`, the name
/// `qa.doc_stride` (or a unique leaf such as `doc_stride`) and the text `64`. Gates add up.
struct FlagSetting {
    std::string flag;
    std::string name;
    std::string text;
};

/// Splits `key=value`. Error: Usage `E-CONFIG-010` when there is no `=` or no key.
[[nodiscard]] Result<FlagSetting> parseSet(std::string_view text);

/// All layers of a configuration, before they are read. Files of the first three may be absent.
struct Sources {
    std::vector<std::filesystem::path> siteFiles; ///< weakest first
    std::optional<std::filesystem::path> userFile;
    std::optional<std::filesystem::path> projectFile;
    std::optional<std::filesystem::path> givenFile; ///< must exist
    std::optional<TomlText> givenText;              ///< instead of givenFile, such as stdin
    std::vector<std::pair<std::string, std::string>> environment; ///< name, value
    std::vector<FlagSetting> flags;
};

/// The layers of this process: `muster/config.toml` below $XDG_CONFIG_DIRS (default /etc/xdg) and
/// $XDG_CONFIG_HOME (default ~/.config), `muster.toml` in the working folder, and the variables
/// that begin with MUSTER_. `MUSTER_QA_DOC_STRIDE` sets `qa.doc_stride`, `MUSTER_RANKS` the unique
/// leaf `ranks`; other variables are none of the configuration's business.
[[nodiscard]] Sources standardSources();

/// Reads all layers, weakest first, then checks the whole. Collects every problem.
[[nodiscard]] Reading resolve(const Sources& sources);

/// What a run still needs: a model and data. Problems: Invalid `E-CONFIG-012`.
[[nodiscard]] std::vector<Problem> missingForRun(const RunConfig& config);

} // namespace muster::config
