// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "foreign/analysis.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace muster::foreign {

/// What a repaired copy came to.
struct Repaired {
    std::uint64_t rows = 0;
    std::uint64_t missing = 0; ///< samples for which no row is left
    align::Verdict verdict = align::Verdict::Unverified;
};

/// Writes the predictions in the order found, one JSON object a line: index, id, prediction, and
/// `row`, the place in the file as it was. Samples without a row are left out. The verdict is
/// UNVERIFIED, INCOMPLETE when samples are missing, and ALIGNED only when every row states the hash
/// of its sample. Errors: Invalid (`E-FOREIGN-015`) when the order is not known; Io of
/// writeFileAtomically().
[[nodiscard]] Result<Repaired> writeRepaired(const std::filesystem::path& to,
                                             const ResultFile& file, const References& references,
                                             const Analysis& analysis,
                                             const AnalysisOptions& options);

/// Writes a folder like that of a run: `samples.jsonl` in data set order with lm-eval's field
/// names, the rows taken as they stand; `predictions.json` where samples have ids; `results.json`
/// with metrics, verdict and analysis. There is no run file: nothing was run. Returns a sentence
/// for each file. Errors: Io (`E-FOREIGN-016` when the folder cannot be made).
[[nodiscard]] Result<std::vector<std::string>>
writeImport(const std::filesystem::path& folder, const ResultFile& file,
            const References& references, const Analysis& analysis, const AnalysisOptions& options,
            std::string_view version);

} // namespace muster::foreign
