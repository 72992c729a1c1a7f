// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "options.h"

#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace muster::cli {

/// What completes an argument.
enum class Completes { Nothing, File, Folder, Choice, Setting };

/// One option or positional argument, as help, man page and completion show it.
struct OptionInfo {
    std::vector<std::string> names; ///< `-n`, `--ranks`; of a positional its name in capitals
    std::string value;              ///< placeholder of its value; empty for a switch
    std::string doc;
    Completes completes = Completes::Nothing;
    std::vector<std::string> choices;
    bool isRequired = false;
    bool isRepeatable = false;
};

/// One command with its options, its positional arguments and its own commands.
struct CommandInfo {
    std::string name;
    std::string doc;
    std::vector<OptionInfo> options;
    std::vector<OptionInfo> positionals;
    std::vector<CommandInfo> commands;
};

/// Text that answers a command line by itself: help or the version. For standard output, exit 0.
struct Printed {
    std::string text;
};

/// The option tree of `muster`. Made once per parse.
class CommandTree final {
public:
    CommandTree();
    ~CommandTree();

    /// Reads the arguments after the program's name. Never exits, never prints.
    /// Errors: Usage `E-CLI-001` (unknown command), `002` (unknown option or extra argument), `003`
    /// (an argument is missing or does not fit), `004` (options that exclude each other); config's
    /// own codes for `--set`.
    [[nodiscard]] Result<std::variant<Invocation, Printed>>
    parse(std::span<const std::string> arguments);

    /// The tree as data, for help, man page and completion.
    [[nodiscard]] CommandInfo info() const;

private:
    struct State;
    std::unique_ptr<State> m_state;
};

/// The configuration that an invocation asks for: all layers, the positional or --config file, its
/// flags. Errors: as config::resolve, Usage `E-CLI-004`.
[[nodiscard]] Result<config::Resolved>
resolvedConfig(const GlobalOptions& global, const std::string& file,
               const std::vector<config::FlagSetting>& flags);

} // namespace muster::cli
