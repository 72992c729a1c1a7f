// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <string>

namespace muster::cli {

/// Exit codes of `muster`; scripts rely on them (user guide, "Exit codes").
enum class ExitCode : int {
    Done = 0,          ///< complete, ALIGNED, gates passed
    Failed = 1,        ///< any other failure
    Usage = 2,         ///< the command line is wrong
    Invalid = 3,       ///< configuration or preflight
    Launch = 4,        ///< launch or handshake
    Incomplete = 5,    ///< rows missing, results saved, `resume` possible
    Integrity = 6,     ///< MISALIGNED or ledger mismatch
    Gate = 7,          ///< a gate was not met
    Incomparable = 8,  ///< runs cannot be compared
    Internal = 9,      ///< a bug
    Timeout = 124,     ///< a time limit ran out
    Interrupted = 130, ///< Ctrl+C
    Terminated = 143   ///< SIGTERM
};

/// The code for an error of this kind.
[[nodiscard]] ExitCode exitCodeOf(Error::Kind kind);

/// `usage`, `launch`, … as it stands in JSON.
[[nodiscard]] std::string kindName(Error::Kind kind);

} // namespace muster::cli
