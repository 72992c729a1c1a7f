// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "foreign/analysis.h"

#include <cstdint>
#include <string>
#include <vector>

namespace muster::foreign {

/// The number that somebody saw.
struct SeenNumber {
    double value = 0.0; ///< percent; 1 or less is taken as a fraction
    std::string name;   ///< `em`, `f1`, `accuracy`, `macro-f1`; empty: any
};

/// What one known procedure gives.
struct Procedure {
    std::string metric;    ///< `EM`, `F1`, `accuracy`, `macro F1`
    std::string sentence;  ///< what it does
    double value = 0.0;    ///< percent
    double distance = 0.0; ///< from the number seen, in percentage points
    bool isRight = false;  ///< the right procedure
};

struct Explanation {
    SeenNumber seen;                ///< in percent
    std::vector<Procedure> nearest; ///< all that were tried, nearest first; at most 20
    std::uint64_t tried = 0;
    double tolerance = 0.005;       ///< what rounding to the digits given leaves
    std::vector<Procedure> matches; ///< within the tolerance
    std::string conclusion;
};

/// Tries known ways to come to a number from the same predictions: the right one; other rules
/// (SQuAD 1.1 for 2.0 and the reverse), other normalisers, no normaliser, the first reference only;
/// padding counted, pads sorted first and last samples lost, unanswered left out; means over ranks
/// and over batches (strided and block shares of 2 … 64 ranks, with the sampler's copies); macro,
/// weighted and per-batch F1 for accuracy; shifts of one, and shuffled rows.
/// Errors: as analyse(); Usage `E-FOREIGN-017` for a name of no metric.
[[nodiscard]] Result<Explanation> explain(const ResultFile& file, const References& references,
                                          const AnalysisOptions& options, SeenNumber seen);

[[nodiscard]] std::string explanationJson(const Explanation& explanation);
[[nodiscard]] std::string explanationText(const Explanation& explanation);

} // namespace muster::foreign
