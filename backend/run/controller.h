// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "align/ledger.h"
#include "base/result.h"
#include "config/read.h"
#include "launch/flavour.h"
#include "launch/group_process.h"
#include "launch/private_directory.h"
#include "report/run_result.h"
#include "run/intake.h"
#include "run/job.h"
#include "run/snapshot.h"
#include "store/run_file.h"

#include <QObject>
#include <QThread>
#include <QTimer>

#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>

namespace muster::run {

/// What to run. With `resumeFolder` the configuration comes from that run, and only settings that
/// change no number may differ.
struct RunRequest {
    config::Resolved resolved;
    std::filesystem::path resumeFolder;
    std::filesystem::path ownFolder; ///< where the running program lies
    std::string programVersion;
};

/// A picture for progress bars and screens.
struct Progress {
    std::shared_ptr<const Snapshot> snapshot;
    std::vector<MetricSoFar> soFar;
    std::uint64_t samples = 0;
    std::uint64_t samplesDone = 0;
    double samplesPerSecond = 0.0; ///< mean over the last ten seconds
    double tokensPerSecond = 0.0;
    double etaSeconds = -1.0;   ///< −1 = unknown
    double transferShare = 0.0; ///< of elapsed time, mean over ranks, 0..1
    double waitShare = 0.0;
};

/// How a run ended.
struct RunOutcome {
    std::optional<Error> error; ///< why there is no result, or why it is not whole
    std::filesystem::path folder;
    std::shared_ptr<const report::RunResult> result; ///< absent when nothing could be scored
    int exitCode = 9;
};

/// One run from its configuration to its files: plans, launches, deals, collects, scores, writes.
/// The same object behind the command line and the desktop.
///
/// Lives in the main thread (it starts processes); sockets, checking and storing are on a thread of
/// its own. All functions return at once; what happens is told by signals.
class Controller final : public QObject {
    Q_OBJECT

public:
    explicit Controller(RunRequest request, QObject* parent = nullptr);
    ~Controller() override;

    /// Begins; finished() follows in any case.
    void start();
    /// Hands out nothing more, keeps what comes back, scores and ends (first Ctrl+C).
    void drain(const std::string& reason);
    /// Ends all ranks at once; what is stored stays (second Ctrl+C).
    void stopNow(const std::string& reason);

    /// Folder of the run; empty before it is made.
    [[nodiscard]] const std::filesystem::path& folder() const { return m_folder; }

Q_SIGNALS:
    /// `planning`, `launching`, `loading`, `running`, `scoring`: for people.
    void stageChanged(const QString& stage);
    void happened(const muster::run::RunEvent& event);
    void progressed(const std::shared_ptr<const muster::run::Progress>& progress);
    void finished(const std::shared_ptr<const muster::run::RunOutcome>& outcome);

private:
    [[nodiscard]] std::future<Result<launch::Flavour>> chooseFlavour() const;
    [[nodiscard]] Status prepare();
    [[nodiscard]] Status prepareResume();
    [[nodiscard]] Status makeFolder();
    [[nodiscard]] Status makeLedger(const std::vector<std::uint8_t>& done);
    void startIntake(std::vector<std::uint8_t> done);
    void launchGroup();
    void groupEnded(const launch::ProcessExit& exit);
    void onDrained();
    void stopGroup();
    void score();
    void finish(std::optional<Error> error);
    void onSnapshot(const std::shared_ptr<const Snapshot>& snapshot);
    void onCommitted(const std::shared_ptr<const Blocks>& blocks);
    void note(RunEvent::Level level, std::string code, std::string text);
    void enter(const char* stage);

    RunRequest m_request;
    config::RunConfig m_config;
    std::unique_ptr<Job> m_job;
    std::vector<RankId> m_owners;
    std::optional<launch::Flavour> m_flavour;
    std::filesystem::path m_folder;
    int m_lock = -1;
    std::optional<store::RunFile> m_file;
    std::unique_ptr<align::Ledger> m_ledger;
    std::optional<launch::PrivateDirectory> m_private;
    wire::Key m_key;
    std::uint64_t m_runTag = 0;
    QThread m_thread;
    Intake* m_intake = nullptr;
    std::unique_ptr<launch::GroupProcess> m_group;
    std::vector<std::unique_ptr<launch::GroupProcess>> m_old;
    std::uint32_t m_generation = 0;
    std::vector<std::int64_t> m_launches; ///< monotonic, for the limit per 10 minutes
    std::optional<Fingerprint> m_fingerprint;
    std::optional<Error> m_fatal;
    std::optional<Error> m_cut; ///< why the run was ended before its end
    std::shared_ptr<const Snapshot> m_lastSnapshot;
    struct RatePoint {
        std::int64_t ns = 0;
        std::uint64_t samples = 0;
        std::uint64_t tokens = 0;
        double cost = 0.0;
    };
    std::vector<RatePoint> m_rate;
    std::string m_rankError; ///< the first error that a rank told
    QTimer m_ladder;
    int m_rung = 0;
    QTimer m_timeout;
    std::int64_t m_startNs = 0;
    std::int64_t m_launchNs = 0;
    std::int64_t m_firstUnitNs = 0;
    std::int64_t m_drainedNs = 0;
    std::int64_t m_startWallNs = 0;
    bool m_isDrained = false;
    bool m_isStopping = false;
    bool m_isScored = false;
    bool m_isFinished = false;
    bool m_isResume = false;
    bool m_stopNow = false;
};

/// Name of the rank's MPI family for reports.
[[nodiscard]] std::string launcherText(const launch::Flavour& flavour);

} // namespace muster::run
