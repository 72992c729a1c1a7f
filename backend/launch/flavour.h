// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "config/run_config.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace muster::launch {

/// Families of MPI that do not mix: a launcher of one starts programs of another as N separate
/// worlds of one rank each, without an error (fault-scenarios 2.1, F-12).
enum class Family {
    Plain,   ///< no MPI: processes started one by one
    OpenMpi, ///< mpirun of Open MPI, any version
    Mpich,   ///< hydra, the launcher of MPICH
    Slurm    ///< srun, which starts programs of either family
};

/// The family as people know it: "Open MPI", "MPICH", "Slurm", "plain processes".
[[nodiscard]] std::string_view familyName(Family family);

/// What a launcher says about itself.
struct LauncherInfo {
    Family family = Family::Plain;
    int major = 0;              ///< first number of the version, 0 when it is not known
    std::string version;        ///< such as `4.1.4`
    std::filesystem::path path; ///< the program; empty for plain processes
    bool operator==(const LauncherInfo&) const = default;
};

/// What a rank program says about itself.
struct RankProgramInfo {
    Family family = Family::Plain; ///< family of the MPI library that it is linked with
    std::string library;           ///< first line of MPI_Get_library_version
    std::string version;           ///< first line of `--version`
    std::filesystem::path path;
    bool operator==(const RankProgramInfo&) const = default;
};

/// A launcher and a rank program that fit together.
struct Flavour {
    LauncherInfo launcher;
    RankProgramInfo rank;
    bool operator==(const Flavour&) const = default;
};

/// Where to look for launchers and rank programs.
struct FlavourRequest {
    config::Launcher launcher = config::Launcher::Auto;
    std::filesystem::path launcherPath; ///< empty: searched in `searchPath`
    std::filesystem::path rankProgram;  ///< empty: searched in `ownFolder`, then in `searchPath`
    std::filesystem::path ownFolder;    ///< folder of the running program
    std::string searchPath;             ///< value of PATH
};

/// Reads the answer of a launcher to `--version`; the path stays empty. Only the first 4 KiB count.
/// Error: Launch (`E-LAUNCH-002`) when the text is of no known launcher.
[[nodiscard]] Result<LauncherInfo> parseLauncherVersion(std::string_view text);

/// Reads the text of MPI_Get_library_version: "Open MPI v4.1.4, …" or "MPICH Version: 4.0.2".
/// Error: Launch (`E-LAUNCH-004`) when the library is of no known family.
[[nodiscard]] Result<RankProgramInfo> parseMpiLibrary(std::string_view text);

/// Runs `program --version` with a limit of 5 s and reads the answer. Blocks the caller that long;
/// may be called from any thread. Errors: Launch (`E-LAUNCH-001` does not start or answer,
/// `E-LAUNCH-002`).
[[nodiscard]] Result<LauncherInfo> inspectLauncher(const std::filesystem::path& program);

/// Runs the rank program with `--mpi-library` and `--version`, both at once, with a limit of 20 s
/// (the first start after a boot reads LibTorch from the disk). Blocks; any thread.
/// Errors: Launch (`E-LAUNCH-001`, `E-LAUNCH-004`).
[[nodiscard]] Result<RankProgramInfo> inspectRank(const std::filesystem::path& program);

/// Fails when the two would not form one world. Error: Launch (`E-LAUNCH-003`) with a sentence that
/// names both. Slurm and plain processes fit every library.
[[nodiscard]] Status checkMatch(const LauncherInfo& launcher, const RankProgramInfo& rank);

/// Finds a launcher and a rank program that fit together. With Launcher::Auto: a pair of Open MPI
/// (`muster-rank` and `mpirun.openmpi` or `mpirun`), else of MPICH (`muster-rank-mpich` or
/// `muster-rank`, and `mpiexec.hydra`, `mpirun.mpich` or `mpirun`), else plain processes. What the
/// request names is used or refused, never replaced. Blocks like inspectRank().
/// Errors: Launch (`E-LAUNCH-001`, `-002`, `-003`, `-004`; `E-LAUNCH-005` nothing was found).
[[nodiscard]] Result<Flavour> chooseFlavour(const FlavourRequest& request);

} // namespace muster::launch
