// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace muster {

namespace {

class Descriptor final {
public:
    explicit Descriptor(int fd) : m_fd(fd) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor()
    {
        if (m_fd >= 0)
            ::close(m_fd);
    }
    [[nodiscard]] int get() const { return m_fd; }
    [[nodiscard]] bool close()
    {
        const int fd = m_fd;
        m_fd = -1;
        return ::close(fd) == 0;
    }

private:
    int m_fd;
};

std::string systemMessage(int error)
{
    return std::generic_category().message(error);
}

Error openError(const std::filesystem::path& path, int error)
{
    if (error == ENOENT || error == ENOTDIR)
        return Error{Error::Kind::NotFound, "E-FILE-001",
                     fmt::format("{} does not exist. Check the path.", path.string())};
    return Error{Error::Kind::Io, "E-FILE-002",
                 fmt::format("{} cannot be read: {}.", path.string(), systemMessage(error))};
}

} // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path)
{
    const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0)
        return fail(openError(path, errno));
    struct stat status = {};
    if (::fstat(fd.get(), &status) != 0)
        return fail(openError(path, errno));
    if (!S_ISREG(status.st_mode))
        return fail(Error::Kind::Io, "E-FILE-002",
                    fmt::format("{} is not a regular file.", path.string()));
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size == 0)
        return MappedFile(nullptr, 0);
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
    if (data == MAP_FAILED) // NOLINT(performance-no-int-to-ptr)
        return fail(openError(path, errno));
    return MappedFile(static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : m_data(std::exchange(other.m_data, nullptr)), m_size(std::exchange(other.m_size, 0))
{
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept
{
    std::swap(m_data, other.m_data);
    std::swap(m_size, other.m_size);
    return *this;
}

MappedFile::~MappedFile()
{
    if (m_data != nullptr)
        ::munmap(const_cast<std::byte*>(m_data), m_size);
}

Result<std::string> readFile(const std::filesystem::path& path, std::size_t limit)
{
    const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.get() < 0)
        return fail(openError(path, errno));
    std::string content;
    std::size_t used = 0;
    for (;;) {
        if (used > limit)
            return fail(Error::Kind::Invalid, "E-FILE-003",
                        fmt::format("{} is larger than {} bytes.", path.string(), limit));
        content.resize(used + (std::size_t{1} << 16U) + used / 2);
        const ssize_t n = ::read(fd.get(), content.data() + used, content.size() - used);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return fail(openError(path, errno));
        }
        if (n == 0)
            break;
        used += static_cast<std::size_t>(n);
    }
    content.resize(used);
    return content;
}

Status writeFileAtomically(const std::filesystem::path& path, std::string_view content)
{
    const auto failed = [&](int error) {
        return fail(
            Error::Kind::Io, "E-FILE-004",
            fmt::format("{} cannot be written: {}. The previous file, if any, is untouched.",
                        path.string(), systemMessage(error)));
    };
    std::string temporary = path.string() + ".XXXXXX";
    Descriptor fd(::mkostemp(temporary.data(), O_CLOEXEC));
    if (fd.get() < 0)
        return failed(errno);
    const auto give = [&](int error) {
        ::unlink(temporary.c_str());
        return failed(error);
    };
    std::size_t done = 0;
    while (done < content.size()) {
        const ssize_t n = ::write(fd.get(), content.data() + done, content.size() - done);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return give(errno);
        }
        done += static_cast<std::size_t>(n);
    }
    if (::fchmod(fd.get(), 0644) != 0 || ::fsync(fd.get()) != 0)
        return give(errno);
    if (!fd.close())
        return give(errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0)
        return give(errno);
    return {};
}

} // namespace muster
