// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "config/run_config.h"
#include "config/settings.h"

#include <string>
#include <vector>

namespace muster::config {

/// Digest of everything in the configuration that changes a score or an interval (settings with
/// Effect::Numbers), and of nothing else: two runs with the same evaluation digest, model digest
/// and data digest have the same numbers whatever their ranks, schedule and gather. Model and data
/// enter by their contents, elsewhere.
[[nodiscard]] Hash128 evaluationDigest(const RunConfig& config);

/// One setting in which two configurations differ; values as TOML writes them, `(none)` when
/// absent.
struct Difference {
    std::string key;
    std::string first;
    std::string second;
    Effect effect = Effect::Speed;

    [[nodiscard]] bool changesNumbers() const { return effect == Effect::Numbers; }
    bool operator==(const Difference&) const = default;
};

/// All differences in the order of the table; empty for equal configurations.
[[nodiscard]] std::vector<Difference> differences(const RunConfig& a, const RunConfig& b);

} // namespace muster::config
