// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::launch {

/// The environment of this process as `NAME=value` entries, cleaned by childEnvironment().
[[nodiscard]] std::vector<std::string> inheritedEnvironment();

/// The environment of this process as it is.
[[nodiscard]] std::vector<std::string> processEnvironment();

/// Whether a child may inherit a variable of this name. Allowed are those that say where things are
/// and how they look (PATH, HOME, LANG, LC_*, XDG_*, …) and those of devices (CUDA_*, NCCL_*, …);
/// everything that tells a process which rank of an outer MPI or batch job it is
/// (OMPI_*, PMI_*, PMIX_*, PRTE_*, SLURM_*, …) and everything unknown is left behind (C-060).
[[nodiscard]] bool isInheritedName(std::string_view name);

/// The entries of `parent` that a child may inherit, and those named in `alsoPass`, sorted by name,
/// each name once. LD_LIBRARY_PATH is given back as it was before a package of ours changed it:
/// from MUSTER_ORIGINAL_LD_LIBRARY_PATH when that is set, and without folders below APPDIR (C-060).
[[nodiscard]] std::vector<std::string> childEnvironment(const std::vector<std::string>& parent,
                                                        const std::vector<std::string>& alsoPass);

/// Sets one variable of an environment, replacing an entry of the same name.
void setVariable(std::vector<std::string>& environment, std::string_view name,
                 std::string_view value);

} // namespace muster::launch
