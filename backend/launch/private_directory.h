// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <filesystem>
#include <string_view>

namespace muster::launch {

/// Longest path of a Unix socket in bytes (`sun_path` without its closing zero).
inline constexpr std::size_t maxSocketPath = 107;

/// Makes the folder `wanted` with mode 0700; its parent must exist. A folder that is there already
/// is accepted only when it belongs to this user, has mode 0700, is no symbolic link and is empty
/// (F-30). Error: Launch (`E-LAUNCH-020`).
[[nodiscard]] Status createPrivateDirectory(const std::filesystem::path& wanted);

/// A fresh folder of mode 0700 with an unguessable name, removed with its content by the
/// destructor. Movable; owned by whoever starts a run.
class PrivateDirectory final {
public:
    /// Makes a folder below $XDG_RUNTIME_DIR when that belongs to this user alone, else below
    /// TMPDIR, else below /tmp; the first in which `longestName` still fits into a socket's path
    /// (maxSocketPath) and that exists. Error: Launch (`E-LAUNCH-021`).
    [[nodiscard]] static Result<PrivateDirectory> create(std::string_view longestName);

    PrivateDirectory(PrivateDirectory&& other) noexcept;
    PrivateDirectory& operator=(PrivateDirectory&& other) noexcept;
    ~PrivateDirectory();

    [[nodiscard]] const std::filesystem::path& path() const { return m_path; }

private:
    explicit PrivateDirectory(std::filesystem::path path) : m_path(std::move(path)) {}
    void remove() noexcept;
    std::filesystem::path m_path;
};

} // namespace muster::launch
