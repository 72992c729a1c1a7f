// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

namespace muster::rank {

/// Rank and world of a process that takes part in no MPI.
struct PlainPlace {
    std::uint32_t rank = 0;
    std::uint32_t world = 1;
};

/// What stands on the command line of muster-rank.
struct Arguments {
    enum class Action { Work, Version, MpiLibrary, Help };
    Action action = Action::Work;
    std::filesystem::path socket; ///< of `--connect unix:PATH`
    std::filesystem::path keyFile;
    std::uint64_t runTag = 0;
    std::uint32_t group = 0;
    std::uint32_t generation = 0;
    std::optional<PlainPlace> plain{};
};

/// Errors: Usage `E-RANK-001`.
[[nodiscard]] Result<Arguments> parseArguments(std::span<char* const> words);

/// The text of `--help`.
[[nodiscard]] std::string usage();

} // namespace muster::rank
