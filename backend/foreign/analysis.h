// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "align/order_test.h"
#include "align/shift_scan.h"
#include "align/verdict.h"
#include "foreign/references.h"
#include "foreign/result_file.h"
#include "metrics/normalize.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace muster::foreign {

struct AnalysisOptions {
    std::int64_t shift = 64; ///< how far the shift scan looks
    metrics::Normalizer normalizer = metrics::Normalizer::SquadEn1;
    std::uint64_t worldSize = 0; ///< of the cross matrix; 0: what the diagnosis says, else 8
};

/// Metrics in percent by their names: `exact_match` and `f1`, or `accuracy`.
using MetricList = std::vector<std::pair<std::string, double>>;

/// How rows found their references.
enum class Placing {
    ById,    ///< the row names the sample
    ByIndex, ///< the row carries the index
    ByOrder  ///< row i is taken for sample i
};

/// What a result file of another program comes to against its data.
struct Analysis {
    align::Verdict verdict = align::Verdict::Unverified;
    Placing placing = Placing::ByOrder;
    /// What is wrong or worth knowing, the gravest first; the first says why the verdict is bad.
    std::vector<std::string> findings;
    std::vector<std::string> notes;

    std::uint64_t rows = 0;
    std::uint64_t samples = 0;
    std::uint64_t covered = 0;          ///< samples with a row
    std::uint64_t pads = 0;             ///< rows marked as padding, removed
    std::uint64_t copies = 0;           ///< further rows for a sample that has one, equal
    std::uint64_t conflicts = 0;        ///< further rows for a sample that has one, different
    std::uint64_t outOfRange = 0;       ///< rows with an index outside the data
    std::uint64_t unknownIds = 0;       ///< rows with an id that is not in the data
    std::vector<std::uint64_t> missing; ///< the first 20 samples without a row
    std::uint64_t hashesEqual = 0;      ///< rows whose stated hash is that of their sample
    std::uint64_t hashesDiffer = 0;

    align::ShiftScan scan;
    align::CrossMatrix matrix;
    align::OrderDiagnosis diagnosis;
    MetricList before; ///< rows taken as they stand
    MetricList after;  ///< in the order found; as before when nothing was found

    /// Row of each sample as the file stands, and in the order found; −1 for none [N].
    std::vector<std::int64_t> rowOf;
    std::vector<std::int64_t> repairedRowOf;
};

/// Checks a result file against its references: coverage (I1), range (I3), padding (I7), hashes
/// where there are any (I2), and the order of the rows by the shift scan and testOrder(). Verdict:
/// MISALIGNED when something is out of place, repeated without a mark or outside; else INCOMPLETE
/// when samples have no row; else ALIGNED when every row states the hash of its sample; else
/// UNVERIFIED. Errors: Invalid `E-FOREIGN-014` when no row can be placed; those of the metrics.
[[nodiscard]] Result<Analysis> analyse(const ResultFile& file, const References& references,
                                       const AnalysisOptions& options = {});

/// Metrics of the predictions that rows give to samples (−1: none, which counts as wrong).
[[nodiscard]] Result<MetricList> metricsOf(const ResultFile& file, const References& references,
                                           const std::vector<std::int64_t>& rowOf,
                                           metrics::Normalizer normalizer);

/// The analysis as one JSON object.
[[nodiscard]] std::string analysisJson(const Analysis& analysis, const ResultFile& file,
                                       const References& references);
/// The same for people: format, counts, findings. `isWhole`: also the shift scan and the matrix.
enum class Detail { Short, Whole };
[[nodiscard]] std::string analysisText(const Analysis& analysis, const ResultFile& file,
                                       const References& references, Detail detail);
/// `UNVERIFIED 1190/1190  EM 53.87 %  F1 61.20 %`, and why when it is bad.
[[nodiscard]] std::string verdictLine(const Analysis& analysis);

} // namespace muster::foreign
