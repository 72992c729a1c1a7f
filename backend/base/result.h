// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tl/expected.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace muster {

/// What went wrong, in three parts: a kind for programs, a stable code for users, a message for
/// people.
///
/// The message says what happened, what is safe and what to do, and is never translated in files.
struct Error {
    enum class Kind {
        Usage,        ///< the caller's words are off (exit 2)
        Invalid,      ///< a configuration, file or value breaks a rule (exit 3)
        NotFound,     ///< a file or name does not exist (exit 3)
        Io,           ///< reading or writing failed (exit 1)
        Launch,       ///< ranks could not be started or refused at the hello (exit 4)
        Incomplete,   ///< rows are missing; what was gathered is saved (exit 5)
        Integrity,    ///< what was gathered contradicts the plan (exit 6)
        Gate,         ///< a gate was not met (exit 7)
        Incomparable, ///< two runs may not be compared (exit 8)
        Protocol,     ///< a peer broke the wire protocol
        Undefined,    ///< a value has no definition for this input, such as a mean over nothing
        Timeout,      ///< a limit ran out (exit 124)
        Cancelled,    ///< the user stopped it (exit 130)
        Internal      ///< a bug of Muster (exit 9)
    };

    Kind kind = Kind::Internal;
    std::string code;    ///< such as `E-DATA-004`; listed in docs/errors.md
    std::string message; ///< one or more sentences

    /// The same error with the step that was under way put in front: "reading run.toml: …".
    [[nodiscard]] Error during(std::string_view step) const
    {
        return Error{kind, code, std::string(step) + ": " + message};
    }

    /// `E-DATA-004: message`, as it is shown to people.
    [[nodiscard]] std::string text() const
    {
        return code.empty() ? message : code + ": " + message;
    }

    bool operator==(const Error&) const = default;
};

template <typename T>
using Result = tl::expected<T, Error>;

using Status = Result<void>;

/// Returns the error as the failed result of any function: `return fail(plan.error());`
[[nodiscard]] inline tl::unexpected<Error> fail(Error error)
{
    return tl::unexpected<Error>(std::move(error));
}

/// Makes and returns an error: `return fail(Error::Kind::Invalid, "E-DATA-004", "…");`
[[nodiscard]] inline tl::unexpected<Error> fail(Error::Kind kind, std::string code,
                                                std::string message)
{
    return tl::unexpected<Error>(Error{kind, std::move(code), std::move(message)});
}

} // namespace muster
