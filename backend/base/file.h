// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace muster {

/// A file mapped read-only into memory; unmapped by the destructor. An empty file maps to no bytes.
/// The bytes are shared with every other process that maps the file.
class MappedFile final {
public:
    /// Errors: NotFound (`E-FILE-001`), Io (`E-FILE-002`).
    [[nodiscard]] static Result<MappedFile> open(const std::filesystem::path& path);

    MappedFile(MappedFile&& other) noexcept;
    MappedFile& operator=(MappedFile&& other) noexcept;
    ~MappedFile();

    [[nodiscard]] std::span<const std::byte> bytes() const { return {m_data, m_size}; }
    [[nodiscard]] std::string_view text() const
    {
        return {static_cast<const char*>(static_cast<const void*>(m_data)), m_size};
    }

private:
    MappedFile(const std::byte* data, std::size_t size) : m_data(data), m_size(size) {}
    const std::byte* m_data = nullptr;
    std::size_t m_size = 0;
};

/// The whole file as bytes. Errors: NotFound, Io; Invalid (`E-FILE-003`) when it is larger than
/// `limit` bytes.
[[nodiscard]] Result<std::string> readFile(const std::filesystem::path& path,
                                           std::size_t limit = std::size_t{1} << 32U);

/// Writes to a temporary name beside `path`, syncs, and renames, so that readers see the old or the
/// new content and never a part. Error: Io (`E-FILE-004`); the old file is then untouched.
[[nodiscard]] Status writeFileAtomically(const std::filesystem::path& path,
                                         std::string_view content);

} // namespace muster
