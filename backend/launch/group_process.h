// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch/command.h"
#include "launch/process_ref.h"

#include <QObject>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace muster::launch {

/// How one started process ended. A hint for people, never a proof that a run is complete.
struct ProcessExit {
    bool hasStarted = true; ///< false: the program could not be started
    int exitCode = 0;       ///< meaningless when `signal` is set
    int signal = 0;         ///< that ended the process itself, 0 when none did
    std::string words;      ///< one sentence, such as "a rank was ended by signal 11 (…)"
    bool operator==(const ProcessExit&) const = default;
};

/// Puts the end of a launcher or rank into words. Open MPI and srun report 128 + signal of a rank,
/// MPICH the bare number (fault-scenarios 2.1).
[[nodiscard]] std::string describeExit(Family family, int exitCode, int signal);

/// The processes of one launch: one launcher, or N ranks without a launcher.
///
/// Lives in the main thread, which starts the children: the death signal belongs to the thread that
/// forks. The children get the plan's environment and nothing else, no standard input, no open
/// descriptor, a session of their own (Ctrl+C on the terminal reaches the controller only) and
/// SIGTERM (a launcher) or SIGKILL (a rank) when the controller dies. The destructor ends
/// everything that is left, by force.
class GroupProcess final : public QObject {
    Q_OBJECT

public:
    /// `logFile` gets every byte of both channels; empty: none is kept.
    explicit GroupProcess(LaunchPlan plan, std::filesystem::path logFile,
                          QObject* parent = nullptr);
    ~GroupProcess() override;

    /// Starts the commands of the plan; to be called once, from the main thread.
    void start();

    /// Second step of the stop ladder (the first is CANCEL over the socket): SIGTERM to each
    /// process, once; further calls do nothing, because a second SIGTERM makes Open MPI leave its
    /// ranks.
    void terminate();

    /// Third step: SIGKILL to each process that was started here.
    void kill();

    /// Last step: SIGKILL to every rank of this launch that is still alive, those given by (pid,
    /// start time) and those found by the mark in their environment. Returns how many got it.
    std::size_t killRanks(const std::vector<ProcessRef>& known = {});

    /// Ranks of this launch that are alive on this machine now.
    [[nodiscard]] std::vector<ProcessRef> liveRanks() const;

    [[nodiscard]] bool isRunning() const;
    [[nodiscard]] const LaunchPlan& plan() const;

    /// Process numbers of what was started here and runs; of a launcher, not of its ranks.
    [[nodiscard]] std::vector<std::int64_t> processIds() const;

Q_SIGNALS:
    /// All commands run. Comes at most once; not when one cannot be started.
    void started();
    /// A line of a rank or of the launcher, at most 64 KiB, valid UTF-8, without control
    /// characters.
    void rankOutput(const std::string& line);
    /// One command of the plan ended; with plain processes its number is the rank.
    void processEnded(std::uint32_t command, const muster::launch::ProcessExit& exit);
    /// All commands ended. The first bad end is given when there is one. Comes exactly once; a slot
    /// that wants the group gone calls deleteLater().
    void finished(const muster::launch::ProcessExit& exit);

private:
    class Private;
    std::unique_ptr<Private> d;
};

} // namespace muster::launch
