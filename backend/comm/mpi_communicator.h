// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/communicator.h"

#include <memory>
#include <string>

namespace muster::comm {

/// Families of MPI libraries whose programs and launchers do not mix.
enum class MpiFamily { OpenMpi, Mpich, Other };

/// The family of the library that is linked.
[[nodiscard]] MpiFamily mpiFamily();

/// One line such as `Open MPI v4.1.4` or `MPICH 4.0.2`; works before MPI is initialised.
[[nodiscard]] std::string mpiLibraryVersion();

/// Initialises MPI (MPI_THREAD_FUNNELED) and returns the group of all ranks of the launch; call it
/// once, in the thread that will make all calls. A program that no MPI launcher started is a group
/// of one.
///
/// Waiting polls with sleeps that rise from 20 to 200 µs, and to 1 ms in waits above 40 ms, so a
/// waiting rank leaves its core to others. Sums travel rank → first rank of the node → rank 0 and
/// back, and are formed at rank 0 in rank order, so their bits depend neither on the nodes nor on
/// the library.
///
/// The destructor finalises MPI and never throws. When that takes more than 5 s, the process ends
/// at once; a group that was given up is not finalised, since that would wait for lost partners.
///
/// Errors: Launch (`E-COMM-005`) when MPI cannot be initialised or was before.
[[nodiscard]] Result<std::unique_ptr<Communicator>>
makeMpiCommunicator(int* argc, char*** argv, const CommOptions& options = {});

} // namespace muster::comm
