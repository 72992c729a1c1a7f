// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::model {

/// Element types of the safetensors format.
enum class DType : std::uint8_t {
    Bool,
    U8,
    I8,
    F8E5M2,
    F8E4M3,
    I16,
    U16,
    F16,
    Bf16,
    I32,
    U32,
    F32,
    I64,
    U64,
    F64,
};

/// Bytes of one element.
[[nodiscard]] std::size_t sizeOf(DType type);
/// Name as the format spells it, such as `BF16`.
[[nodiscard]] std::string_view nameOf(DType type);

/// One tensor of a safetensors file: the bytes lie at dataStart + [begin, end).
struct TensorEntry {
    std::string name;
    DType type = DType::F32;
    std::vector<std::uint64_t> shape;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;

    bool operator==(const TensorEntry&) const = default;
};

/// The header of a safetensors file. After parseSafetensors() every tensor lies inside the file,
/// none overlap, nothing lies between them, and shape times element size is the length.
struct SafetensorsHeader {
    std::uint64_t dataStart = 0;      ///< byte of the file at which offsets begin
    std::vector<TensorEntry> tensors; ///< in the order of their bytes
};

/// Reads and checks the header of a whole mapped file. `file` is the name for messages.
///
/// Errors, all Invalid, naming file and tensor: `E-MODEL-001` the file is shorter than its header
/// says or the header is larger than 100 MB; `E-MODEL-002` the header is not the JSON object of the
/// format (or not UTF-8); `E-MODEL-003` an unknown type, or a shape whose product overflows or does
/// not fit the bytes; `E-MODEL-004` offsets out of range, overlapping, with holes, or bytes after
/// the last tensor; `E-MODEL-005` a name twice.
[[nodiscard]] Result<SafetensorsHeader> parseSafetensors(std::span<const std::byte> bytes,
                                                         std::string_view file);

/// A name from an untrusted file as it may stand in a message: at most 100 bytes, in quotes,
/// control characters and broken UTF-8 replaced.
[[nodiscard]] std::string inQuotes(std::string_view name);

} // namespace muster::model
