// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <QTest>

#include <cstdlib>
#include <filesystem>

namespace muster::test {

/// A file or folder of the shared test data, through MUSTER_SHARED; may not exist.
inline std::filesystem::path sharedPath(const char* relative)
{
    const char* root = std::getenv("MUSTER_SHARED");
    return std::filesystem::path(root != nullptr ? root : "../shared") / relative;
}

} // namespace muster::test

/// Declares `name` as the path of shared data, or skips the test function with a clear word.
#define MUSTER_SHARED_OR_SKIP(name, relative)                                                      \
    const std::filesystem::path name = muster::test::sharedPath(relative);                         \
    if (!std::filesystem::exists(name))                                                            \
    QSKIP("shared test data are absent: set MUSTER_SHARED to the folder that has " relative)
