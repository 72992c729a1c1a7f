// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace muster::cli {

/// Sends the messages of Qt's logging categories to standard error (warnings; information with -v,
/// everything with -vv and --debug) and, all of them with their time, to the file of --log-file.
/// Looks at the arguments itself, because it must be there before they are parsed. Call once, in
/// the main thread.
void installLog(const std::vector<std::string>& arguments);

} // namespace muster::cli
