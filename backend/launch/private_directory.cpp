// SPDX-License-Identifier: Apache-2.0
#include "launch/private_directory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

namespace muster::launch {

namespace {

namespace fs = std::filesystem;

auto refused(const fs::path& folder, const std::string& why)
{
    return fail(Error::Kind::Launch, "E-LAUNCH-020",
                "the folder " + folder.string() +
                    " cannot hold the sockets and keys of a run: " + why);
}

/// A folder in which nobody else can replace what this user makes.
bool isSafeParent(const fs::path& folder)
{
    struct stat facts = {};
    if (!folder.is_absolute() || ::stat(folder.c_str(), &facts) != 0 || !S_ISDIR(facts.st_mode)) {
        return false;
    }
    const bool isTrusted = facts.st_uid == ::geteuid() || facts.st_uid == 0;
    const bool isWritableByOthers = (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    return isTrusted && (!isWritableByOthers || (facts.st_mode & S_ISVTX) != 0);
}

bool isOwnRuntimeFolder(const fs::path& folder)
{
    struct stat facts = {};
    return ::lstat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) &&
           facts.st_uid == ::geteuid() && (facts.st_mode & 07777U) == 0700U;
}

} // namespace

Status createPrivateDirectory(const fs::path& wanted)
{
    if (::mkdir(wanted.c_str(), 0700) == 0) {
        // mkdir obeys the umask, which can only have taken bits away; and a default ACL adds some.
        if (::chmod(wanted.c_str(), 0700) != 0) {
            return refused(wanted, std::strerror(errno));
        }
        return {};
    }
    if (errno != EEXIST) {
        return refused(wanted, std::strerror(errno));
    }
    struct stat facts = {};
    if (::lstat(wanted.c_str(), &facts) != 0) {
        return refused(wanted, std::strerror(errno));
    }
    if (S_ISLNK(facts.st_mode)) {
        return refused(wanted, "it is a symbolic link. Remove it or choose another folder.");
    }
    if (!S_ISDIR(facts.st_mode)) {
        return refused(wanted, "it is no folder. Remove it or choose another one.");
    }
    if (facts.st_uid != ::geteuid()) {
        return refused(wanted, "it belongs to another user (id " + std::to_string(facts.st_uid) +
                                   "). Choose another folder.");
    }
    if ((facts.st_mode & 0777U) != 0700U) {
        return refused(wanted, "other users may enter it. Remove it or set its mode to 0700.");
    }
    std::error_code error;
    if (!fs::is_empty(wanted, error) || error) {
        return refused(wanted, "it is not empty. Remove it or choose another folder.");
    }
    return {};
}

Result<PrivateDirectory> PrivateDirectory::create(std::string_view longestName)
{
    std::vector<fs::path> parents;
    if (const char* runtime = std::getenv("XDG_RUNTIME_DIR");
        runtime != nullptr && isOwnRuntimeFolder(runtime)) {
        parents.emplace_back(runtime);
    }
    if (const char* temporary = std::getenv("TMPDIR"); temporary != nullptr) {
        parents.emplace_back(temporary);
    }
    parents.emplace_back("/tmp");

    std::string reasons;
    for (const fs::path& parent : parents) {
        std::string name = (parent / "muster-XXXXXX").string();
        const char* reason = nullptr;
        if (!isSafeParent(parent)) {
            reason = " does not exist or others may replace files in it; ";
        } else if (name.size() + 1 + longestName.size() > maxSocketPath) {
            reason = " has a path too long for a socket; ";
        } else if (::mkdtemp(name.data()) != nullptr) {
            return PrivateDirectory(fs::path(name));
        } else {
            reason = " cannot be written; ";
        }
        reasons += parent.string() + reason;
    }
    return fail(Error::Kind::Launch, "E-LAUNCH-021",
                "no place for the private folder of the run: " + reasons +
                    "set TMPDIR to a short path that you own");
}

PrivateDirectory::PrivateDirectory(PrivateDirectory&& other) noexcept
    : m_path(std::exchange(other.m_path, {}))
{
}

PrivateDirectory& PrivateDirectory::operator=(PrivateDirectory&& other) noexcept
{
    if (this != &other) {
        remove();
        m_path = std::exchange(other.m_path, {});
    }
    return *this;
}

PrivateDirectory::~PrivateDirectory()
{
    remove();
}

void PrivateDirectory::remove() noexcept
{
    if (!m_path.empty()) {
        std::error_code ignored;
        fs::remove_all(m_path, ignored);
        m_path.clear();
    }
}

} // namespace muster::launch
