// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/file.h"
#include "base/result.h"
#include "model/safetensors.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::model {

/// A tensor of a checkpoint, borrowed from the mapped file.
struct TensorView {
    DType type = DType::F32;
    std::span<const std::uint64_t> shape;
    std::span<const std::byte> bytes; ///< not necessarily aligned
    std::string_view file;
};

/// The tensors of a Hugging Face directory: `model.safetensors`, or the shards that
/// `model.safetensors.index.json` names. Files stay mapped while it lives.
class Checkpoint final {
public:
    /// Errors: NotFound (`E-MODEL-010`) no weights; Invalid `E-MODEL-011` only pickled weights,
    /// which can run code when they are read and are therefore never opened; `E-MODEL-012` the
    /// index is malformed, leaves the directory or disagrees with a shard; those of
    /// parseSafetensors().
    [[nodiscard]] static Result<Checkpoint> open(const std::filesystem::path& directory);

    /// By name, in the order of names.
    [[nodiscard]] const std::map<std::string, TensorView, std::less<>>& tensors() const
    {
        return m_tensors;
    }

private:
    struct File {
        std::string name;
        MappedFile map;
        SafetensorsHeader header;
    };
    Checkpoint() = default;
    Status addFile(const std::filesystem::path& path, std::string name);

    std::vector<std::unique_ptr<File>> m_files;
    std::map<std::string, TensorView, std::less<>> m_tensors;
};

} // namespace muster::model
