// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "align/ledger.h"
#include "base/result.h"
#include "config/read.h"
#include "report/run_result.h"
#include "run/intake.h"
#include "run/job.h"
#include "run/snapshot.h"
#include "store/run_file.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::run {

/// Exit code of a command that ends with this error (ux.md 3.12).
[[nodiscard]] int exitCodeOf(const Error& error);
/// Exit code of a run: 0 aligned and gates met, 5 incomplete, 6 misaligned, 7 a gate not met; an
/// error that cut the run wins over 5.
[[nodiscard]] int exitCodeOf(const report::RunResult& result, const std::optional<Error>& error);

/// What the ranks are told, from the configuration.
[[nodiscard]] wire::RankConfig rankConfigOf(const config::RunConfig& config);

[[nodiscard]] std::string toJson(const Fingerprint& fingerprint);
/// Nothing when the text is not what toJson() wrote.
[[nodiscard]] std::optional<Fingerprint> fingerprintFromJson(const std::string& text);

/// Writes pid and start time of this process into the locked file, for `muster stop`.
[[nodiscard]] Status writeLockOwner(int descriptor);

/// The ledger of a run, filled with the facts of the plan.
[[nodiscard]] std::unique_ptr<align::Ledger>
makeLedgerOf(const Job& job, const plan::UnitTable& units, const std::vector<RankId>& owners);

/// Tells the ledger what earlier sessions of the run found wrong, from the event log and the stored
/// verdict: a violation stays, however often the work is done again.
[[nodiscard]] Status recallViolations(store::RunFile& file, align::Ledger& ledger);

/// Everything beside job, ledger and file that a result is made from.
struct ScoreRequest {
    std::filesystem::path folder;
    config::RunConfig config;
    config::Resolved resolved;
    std::string programVersion;
    std::optional<Fingerprint> fingerprint;
    std::string launcher;
    std::vector<RankId> owners;
    std::int64_t startWallNs = 0;
    std::int64_t launchNs = 0;
    std::int64_t firstUnitNs = 0;
    std::int64_t drainedNs = 0;
    double prepareSeconds = 0.0;
    std::shared_ptr<const Snapshot> snapshot;
    bool wasCut = false;
};

/// Decodes, scores, forms the verdict, writes all files of the run folder, and puts predictions,
/// verdict and summary into the run file and the run into the history.
[[nodiscard]] Result<std::shared_ptr<const report::RunResult>>
scoreAndWrite(const ScoreRequest& request, const Job& job, align::Ledger& ledger,
              store::RunFile& file);

/// What `verify` found.
struct Verification {
    std::shared_ptr<const report::RunResult> result;
    std::vector<std::string> findings; ///< sentences; empty = everything agrees
};

/// Recomputes everything from the run file alone, without model, tokenizer or data files: every
/// checksum, the plan's digests, the ledger's invariants, predictions, scores and metrics, and
/// compares them with what the run stored and with the files in its folder.
[[nodiscard]] Result<Verification> verifyRun(const std::filesystem::path& folder);

/// The result of a run as its file has it, recomputed; for `show` and `export`.
[[nodiscard]] Result<std::shared_ptr<const report::RunResult>>
loadResult(const std::filesystem::path& folder);

/// The folder of a run that a person names: a folder, a run file, or the beginning of a run id
/// below `root` that only one run has. Error: NotFound `E-RUN-050`, Usage `E-RUN-051` (several).
[[nodiscard]] Result<std::filesystem::path> findRun(const std::string& name,
                                                    const std::filesystem::path& root);

} // namespace muster::run
