// SPDX-License-Identifier: Apache-2.0
#include "report/streamed_file_p.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace muster::report {

namespace {

constexpr std::size_t pieceBytes = std::size_t{1} << 18U;

std::string hex(const unsigned char* bytes, unsigned size)
{
    std::string text;
    for (unsigned i = 0; i < size; ++i)
        text += fmt::format("{:02x}", bytes[i]);
    return text;
}

} // namespace

StreamedFile::StreamedFile(std::filesystem::path path) : m_path(std::move(path))
{
    m_digest = EVP_MD_CTX_new();
    EVP_DigestInit_ex(m_digest, EVP_sha256(), nullptr);
    if (m_path.empty())
        return;
    m_temporary = m_path.string() + ".XXXXXX";
    m_fd = ::mkostemp(m_temporary.data(), O_CLOEXEC);
    if (m_fd < 0)
        m_error = errno;
}

StreamedFile::~StreamedFile()
{
    if (m_fd >= 0) {
        ::close(m_fd);
        ::unlink(m_temporary.c_str());
    }
    EVP_MD_CTX_free(m_digest);
}

StreamedFile& StreamedFile::operator<<(std::string_view text)
{
    m_buffer.append(text);
    if (m_buffer.size() >= pieceBytes)
        flush();
    return *this;
}

void StreamedFile::flush()
{
    EVP_DigestUpdate(m_digest, m_buffer.data(), m_buffer.size());
    std::size_t done = 0;
    while (m_fd >= 0 && m_error == 0 && done < m_buffer.size()) {
        const ssize_t n = ::write(m_fd, m_buffer.data() + done, m_buffer.size() - done);
        if (n >= 0)
            done += static_cast<std::size_t>(n);
        else if (errno != EINTR)
            m_error = errno;
    }
    m_buffer.clear();
}

Status StreamedFile::close()
{
    flush();
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned size = 0;
    EVP_DigestFinal_ex(m_digest, bytes.data(), &size);
    m_sha256 = hex(bytes.data(), size);
    if (m_path.empty())
        return {};
    if (m_error == 0 && (::fchmod(m_fd, 0644) != 0 || ::fsync(m_fd) != 0))
        m_error = errno;
    if (m_error == 0 && ::rename(m_temporary.c_str(), m_path.c_str()) != 0)
        m_error = errno;
    if (m_error != 0)
        return fail(Error::Kind::Io, "E-REPORT-001",
                    fmt::format("{} cannot be written: {}. The results are safe in run.muster; "
                                "`muster export` writes the files again.",
                                m_path.string(), std::generic_category().message(m_error)));
    ::close(m_fd);
    m_fd = -1;
    return {};
}

std::string sha256(std::string_view text)
{
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned size = 0;
    EVP_Digest(text.data(), text.size(), bytes.data(), &size, EVP_sha256(), nullptr);
    return hex(bytes.data(), size);
}

} // namespace muster::report
