// SPDX-License-Identifier: Apache-2.0
#include "launch/environment.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include <unistd.h>

namespace muster::launch {

namespace {

// OPAL_PREFIX says where a moved Open MPI lies; the OMP_* names are missing on purpose: the number
// of threads is part of the plan and is set from it.
constexpr std::array allowedNames = {"PATH",
                                     "HOME",
                                     "USER",
                                     "LOGNAME",
                                     "SHELL",
                                     "LANG",
                                     "LANGUAGE",
                                     "TZ",
                                     "TERM",
                                     "NO_COLOR",
                                     "TMPDIR",
                                     "LD_LIBRARY_PATH",
                                     "OPAL_PREFIX",
                                     "ASAN_OPTIONS",
                                     "UBSAN_OPTIONS",
                                     "LSAN_OPTIONS",
                                     "TSAN_OPTIONS",
                                     "SSL_CERT_FILE",
                                     "MALLOC_ARENA_MAX"};
constexpr std::array allowedPrefixes = {"LC_",   "XDG_",    "CUDA_", "NVIDIA_", "NCCL_", "HIP_",
                                        "ROCR_", "MUSTER_", "DNNL_", "ONEDNN_", "ATEN_", "TORCH_"};

std::string_view nameOf(std::string_view entry)
{
    return entry.substr(0, entry.find('='));
}

std::string_view valueOf(std::string_view entry)
{
    const std::size_t at = entry.find('=');
    return at == std::string_view::npos ? std::string_view{} : entry.substr(at + 1);
}

std::optional<std::string_view> find(const std::vector<std::string>& environment,
                                     std::string_view name)
{
    for (const std::string& entry : environment) {
        if (nameOf(entry) == name && entry.size() > name.size()) {
            return valueOf(entry);
        }
    }
    return std::nullopt;
}

std::string withoutFoldersBelow(std::string_view list, std::string_view top)
{
    std::string kept;
    std::size_t at = 0;
    while (at <= list.size()) {
        const std::size_t end = std::min(list.find(':', at), list.size());
        const std::string_view folder = list.substr(at, end - at);
        const bool isBelow = !top.empty() && folder.starts_with(top) &&
                             (folder.size() == top.size() || folder[top.size()] == '/');
        if (!folder.empty() && !isBelow) {
            kept += kept.empty() ? "" : ":";
            kept += folder;
        }
        at = end + 1;
    }
    return kept;
}

} // namespace

std::vector<std::string> processEnvironment()
{
    std::vector<std::string> entries;
    for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
        entries.emplace_back(*entry);
    }
    return entries;
}

std::vector<std::string> inheritedEnvironment()
{
    return childEnvironment(processEnvironment(), {});
}

bool isInheritedName(std::string_view name)
{
    return std::find(allowedNames.begin(), allowedNames.end(), name) != allowedNames.end() ||
           std::any_of(allowedPrefixes.begin(), allowedPrefixes.end(),
                       [name](std::string_view prefix) { return name.starts_with(prefix); });
}

std::vector<std::string> childEnvironment(const std::vector<std::string>& parent,
                                          const std::vector<std::string>& alsoPass)
{
    std::map<std::string, std::string, std::less<>> kept;
    for (const std::string& entry : parent) {
        const std::string_view name = nameOf(entry);
        if (name.empty() || name.size() == entry.size()) {
            continue;
        }
        if (isInheritedName(name) ||
            std::find(alsoPass.begin(), alsoPass.end(), name) != alsoPass.end()) {
            kept.insert_or_assign(std::string(name), std::string(valueOf(entry)));
        }
    }

    if (const auto original = find(parent, "MUSTER_ORIGINAL_LD_LIBRARY_PATH")) {
        kept.insert_or_assign("LD_LIBRARY_PATH", std::string(*original));
    } else if (const auto top = find(parent, "APPDIR"); top && kept.contains("LD_LIBRARY_PATH")) {
        std::string& list = kept.find("LD_LIBRARY_PATH")->second;
        list = withoutFoldersBelow(list, *top);
    }
    kept.erase("MUSTER_ORIGINAL_LD_LIBRARY_PATH");
    if (const auto found = kept.find("LD_LIBRARY_PATH");
        found != kept.end() && found->second.empty()) {
        kept.erase(found);
    }

    std::vector<std::string> entries;
    entries.reserve(kept.size());
    for (const auto& [name, value] : kept) {
        entries.push_back(name + "=" + value);
    }
    return entries;
}

void setVariable(std::vector<std::string>& environment, std::string_view name,
                 std::string_view value)
{
    std::erase_if(environment, [name](const std::string& entry) { return nameOf(entry) == name; });
    environment.push_back(std::string(name) + "=" + std::string(value));
}

} // namespace muster::launch
