// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace muster::report {

/// Where the bytes of a file go: to a temporary name that is renamed at the end, or nowhere but
/// into a SHA-256. Memory does not grow with the file.
class StreamedFile final {
public:
    /// Opens `path`.tmp… beside `path`. With an empty path only the digest is formed.
    explicit StreamedFile(std::filesystem::path path);
    ~StreamedFile();
    StreamedFile(const StreamedFile&) = delete;
    StreamedFile& operator=(const StreamedFile&) = delete;

    StreamedFile& operator<<(std::string_view text);
    /// Syncs and renames. Error: Io `E-REPORT-001` for whatever failed before.
    [[nodiscard]] Status close();
    /// 64 hexadecimal digits; valid after close().
    [[nodiscard]] const std::string& sha256() const { return m_sha256; }

private:
    void flush();
    std::filesystem::path m_path;
    std::string m_temporary;
    int m_fd = -1;
    int m_error = 0;
    std::string m_buffer;
    evp_md_ctx_st* m_digest = nullptr;
    std::string m_sha256;
};

/// SHA-256 of the text, 64 hexadecimal digits.
[[nodiscard]] std::string sha256(std::string_view text);

} // namespace muster::report
