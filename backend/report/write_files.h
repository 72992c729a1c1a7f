// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "report/run_result.h"

#include <filesystem>
#include <string>
#include <vector>

namespace muster::report {

/// Names of the files of a run folder. Those of stableFiles() hold nothing that depends on ranks,
/// schedule or time: equal runs have equal bytes.
[[nodiscard]] const std::vector<std::string>& stableFiles();

/// Writes every file of the run folder, each to a temporary name first and then renamed:
///
/// | file | what |
/// |---|---|
/// | `predictions.json` | id → text, as the Hugging Face example writes it (indent 4, ASCII) |
/// | `nbest_predictions.json` | id → list of text, logits, probability; as there |
/// | `null_odds.json` | id → null score minus best score; SQuAD 2.0 rules only |
/// | `samples.jsonl` | a line a sample in data set order, field names of lm-evaluation-harness |
/// | `samples.csv` | the same without context and n-best (RFC 4180) |
/// | `results.json` | lm-evaluation-harness' layout, and verdict, alignment, metrics, timing |
/// | `summary.csv` | a line a metric |
/// | `provenance.jsonl` | a line a unit: rank, attempt, times; depends on the schedule |
/// | `trace.json` | Chrome trace of units by rank |
/// | `proof.json` | invariants and digests |
/// | `manifest.json` | versions, digests, configuration |
/// | `SHA256SUMS` | of all of them |
///
/// JSON is strict: a value that is not finite is null and its reason stands beside it.
/// Error: Io (`E-FILE-004`, `E-REPORT-001`); files already written stay.
[[nodiscard]] Status writeRunFiles(const std::filesystem::path& folder, const RunResult& result);

/// One file's content under a name of `export`: `results.json`, `samples.jsonl`, `samples.csv`,
/// `summary.csv`, `predictions.json`, … Error: Usage (`E-REPORT-002`) for another name.
[[nodiscard]] Status writeOneFile(const std::filesystem::path& to, const std::string& name,
                                  const RunResult& result);

/// A sentence for each of the stable files in the folder whose bytes are not those that the result
/// gives; a file that is absent is named too.
[[nodiscard]] std::vector<std::string> differingFiles(const std::filesystem::path& folder,
                                                      const RunResult& result);

} // namespace muster::report
