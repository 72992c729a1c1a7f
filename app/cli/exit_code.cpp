// SPDX-License-Identifier: Apache-2.0
#include "exit_code.h"

namespace muster::cli {

ExitCode exitCodeOf(Error::Kind kind)
{
    switch (kind) {
    case Error::Kind::Usage:
        return ExitCode::Usage;
    case Error::Kind::Invalid:
    case Error::Kind::NotFound:
        return ExitCode::Invalid;
    case Error::Kind::Launch:
        return ExitCode::Launch;
    case Error::Kind::Incomplete:
        return ExitCode::Incomplete;
    case Error::Kind::Integrity:
        return ExitCode::Integrity;
    case Error::Kind::Gate:
        return ExitCode::Gate;
    case Error::Kind::Incomparable:
        return ExitCode::Incomparable;
    case Error::Kind::Timeout:
        return ExitCode::Timeout;
    case Error::Kind::Cancelled:
        return ExitCode::Interrupted;
    case Error::Kind::Internal:
        return ExitCode::Internal;
    case Error::Kind::Io:
    case Error::Kind::Protocol:
    case Error::Kind::Undefined:
        return ExitCode::Failed;
    }
    return ExitCode::Internal;
}

std::string kindName(Error::Kind kind)
{
    switch (kind) {
    case Error::Kind::Usage:
        return "usage";
    case Error::Kind::Invalid:
        return "invalid";
    case Error::Kind::NotFound:
        return "not-found";
    case Error::Kind::Io:
        return "io";
    case Error::Kind::Launch:
        return "launch";
    case Error::Kind::Incomplete:
        return "incomplete";
    case Error::Kind::Integrity:
        return "integrity";
    case Error::Kind::Gate:
        return "gate";
    case Error::Kind::Incomparable:
        return "incomparable";
    case Error::Kind::Protocol:
        return "protocol";
    case Error::Kind::Undefined:
        return "undefined";
    case Error::Kind::Timeout:
        return "timeout";
    case Error::Kind::Cancelled:
        return "cancelled";
    case Error::Kind::Internal:
        return "internal";
    }
    return "internal";
}

} // namespace muster::cli
