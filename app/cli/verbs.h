// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command_tree.h"
#include "controller_api.h"
#include "exit_code.h"

#include <string>
#include <string_view>

namespace muster::cli {

/// Where a command writes: results to standard output, all else to standard error.
class Console final {
public:
    explicit Console(const GlobalOptions& options) : m_options(options) {}

    [[nodiscard]] const GlobalOptions& options() const { return m_options; }

    /// Text to standard output; a missing line end is added.
    void result(std::string_view text) const;
    /// Text to standard error, not when quiet.
    void note(std::string_view text) const;
    /// `E-CODE: sentence` to standard error, and with --json also a document
    /// `{"error": …, "exit": …}` to standard output. Returns the exit code of the error.
    ExitCode error(const Error& error) const;
    /// The answer as text, or as a document with --json or --ndjson.
    ExitCode answer(const Answer& answer) const;

private:
    const GlobalOptions& m_options;
};

/// What every command gets.
struct Context {
    const Invocation& invocation;
    const CommandTree& tree;
    const Console& console;
    const ControllerApi& controller;
};

[[nodiscard]] ExitCode runVerb(const Context& context);     ///< run, plan, resume, demo
[[nodiscard]] ExitCode stopVerb(const Context& context);    ///< stop
[[nodiscard]] ExitCode verifyVerb(const Context& context);  ///< verify
[[nodiscard]] ExitCode alignVerb(const Context& context);   ///< align
[[nodiscard]] ExitCode importVerb(const Context& context);  ///< import
[[nodiscard]] ExitCode explainVerb(const Context& context); ///< explain
[[nodiscard]] ExitCode scoreVerb(const Context& context);   ///< score
[[nodiscard]] ExitCode showVerb(const Context& context);    ///< show
[[nodiscard]] ExitCode exportVerb(const Context& context);  ///< export
[[nodiscard]] ExitCode compareVerb(const Context& context); ///< compare, explain-ppl, report
[[nodiscard]] ExitCode scaleVerb(const Context& context);   ///< scale
[[nodiscard]] ExitCode historyVerb(const Context& context); ///< history
[[nodiscard]] ExitCode doctorVerb(const Context& context);  ///< doctor
[[nodiscard]] ExitCode configVerb(const Context& context);  ///< config
[[nodiscard]] ExitCode benchVerb(const Context& context);   ///< bench
[[nodiscard]] ExitCode versionVerb(const Context& context); ///< version
[[nodiscard]] ExitCode helpVerb(const Context& context);    ///< help, completion

/// The error of a command whose part is not in this build: Internal-free, Invalid `E-CLI-010`.
[[nodiscard]] Error missingPart(std::string_view command);

/// The program from its arguments (without its name) to its exit code. Catches everything.
[[nodiscard]] int runProgram(const std::vector<std::string>& arguments);

} // namespace muster::cli
