// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "command_tree.h"

#include <string>
#include <vector>

namespace muster::cli {

/// Topics of `muster help` besides the commands.
[[nodiscard]] std::vector<std::string> helpTopics();

/// Concise help of a command such as `run` or `config show` (of the program for an empty name), at
/// most 100 columns. Empty for a command that does not exist.
[[nodiscard]] std::string helpText(const CommandInfo& root, const std::string& command);

/// Long help of a command or a topic. Error: Usage `E-CLI-005` with the nearest topic.
[[nodiscard]] Result<std::string> topicText(const CommandInfo& root, const std::string& topic);

/// `muster 0.1.0`.
[[nodiscard]] std::string versionLine();

/// The manual page muster(1) in roff, from the option tree, the settings and the topics.
[[nodiscard]] std::string manPage(const CommandInfo& root);

/// The completion of `bash`, `zsh` or `fish`. Error: Usage `E-CLI-005`.
[[nodiscard]] Result<std::string> completionScript(const CommandInfo& root,
                                                   const std::string& shell);

} // namespace muster::cli
