// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "config/run_config.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace muster::config {

/// A value of a setting on its way in or out. `monostate`: not set (only where a setting may be
/// absent, such as `data.limit`). Numbers of type Unsigned are below 2^63, as in TOML.
using Value =
    std::variant<std::monostate, std::uint64_t, double, std::string, std::vector<std::string>>;

enum class ValueType {
    Unsigned,         ///< whole number ≥ 0
    OptionalUnsigned, ///< the same, or absent
    Real,             ///< finite number
    Choice,           ///< one of `choices`
    Switch,           ///< auto, true or false; also a TOML boolean
    Text,
    Path, ///< relative to the folder of the file it stands in
    TextList,
    PathList,
    Gates ///< expressions such as `em >= 60`; in TOML a table from metric to comparison
};

/// What a change of a setting changes.
enum class Effect {
    Numbers, ///< scores or intervals: part of the evaluation digest
    Content, ///< names model or data, whose own digests decide
    Speed    ///< only speed, place, limits or what is reported
};

/// One row of the table that drives reading, writing, `--set`, the schema, the digest and the
/// completion of the shells.
struct Setting {
    std::string_view key; ///< full dotted name, such as `qa.doc_stride`
    ValueType type = ValueType::Text;
    double minimum = 0.0; ///< of Unsigned and Real, included
    double maximum = 0.0;
    std::span<const std::string_view> choices; ///< of Choice and Switch, by their written names
    std::string_view doc;                      ///< one sentence
    Effect effect = Effect::Speed;
    Value (*get)(const RunConfig&) = nullptr;
    /// Takes a checked value of the right type; see check().
    void (*set)(RunConfig&, const Value&) = nullptr;

    /// Part before the dot, empty at the top level.
    [[nodiscard]] std::string_view section() const;
    /// Part after the dot.
    [[nodiscard]] std::string_view leaf() const;
};

/// All settings in the order in which they are written.
[[nodiscard]] std::span<const Setting> settings();

/// The setting of the full key, or nullptr.
[[nodiscard]] const Setting* findSetting(std::string_view key);

/// The setting that a person names: the full key, or a leaf that only one setting has.
/// Errors: Usage `E-CONFIG-002` (unknown, with the nearest name), `E-CONFIG-011` (several).
[[nodiscard]] Result<const Setting*> settingNamed(std::string_view name);

/// Checks type, range and choice; returns the value in its canonical form (`bf16` becomes
/// `bfloat16`, a whole number becomes Real where Real is wanted).
/// Errors: Invalid `E-CONFIG-003` (type), `004` (range), `005` (choice), `009` (gate).
[[nodiscard]] Result<Value> check(const Setting& setting, Value value);

/// Reads a value from the text of a flag or of the environment. A list is one element, or a TOML
/// array of strings when it starts with `[`. `none` clears an optional number. Errors as check().
[[nodiscard]] Result<Value> valueFromText(const Setting& setting, std::string_view text);

/// The value as TOML writes it, on one line; doubles in the shortest form that reads back the
/// same. Empty for an absent value.
[[nodiscard]] std::string tomlText(const Value& value);

/// Reads `em >= 60`: a metric name of letters, digits, `_`, `.`, `-`, one of < <= > >= == !=, and a
/// finite number. Error: Invalid `E-CONFIG-009`.
[[nodiscard]] Result<Gate> parseGate(std::string_view text);

/// `em >= 60`, which parseGate() reads back.
[[nodiscard]] std::string gateText(const Gate& gate);

} // namespace muster::config
