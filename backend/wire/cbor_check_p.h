// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace muster::wire {

/// Why the bytes are not one CBOR map within the rules of control messages, or nullptr when they
/// are: definite lengths, text keys without repetition, valid UTF-8, depth at most 4, no tags, only
/// false, true, null and floating-point numbers as simple values, no bytes after
/// the end, no count that the bytes at hand cannot fill. Does not recurse and does not allocate in
/// proportion to counts.
[[nodiscard]] const char* cborProblem(std::span<const std::byte> bytes);

} // namespace muster::wire
