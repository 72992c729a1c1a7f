// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace muster::foreign {

/// Numbers or short texts of an array file, in row-major order.
struct NumberArray {
    enum class Type { Integer, Real, Text };
    Type type = Type::Integer;
    std::vector<std::uint64_t> shape;   ///< empty for one value
    std::vector<std::int64_t> integers; ///< Integer
    std::vector<double> reals;          ///< Real
    std::vector<std::string> texts;     ///< Text

    [[nodiscard]] std::uint64_t size() const
    {
        return type == Type::Integer ? integers.size()
               : type == Type::Real  ? reals.size()
                                     : texts.size();
    }
};

/// Reads NumPy's `.npy`, versions 1 to 3: `<`/`>`/`|` bool, int8 … int64, uint8 … uint64 (below
/// 2^63), float16, float32, float64 and `U` texts; C or Fortran order. Object arrays are pickles
/// and refused. Error: Invalid (`E-FOREIGN-007`).
[[nodiscard]] Result<NumberArray> readNpy(std::string_view name, std::string_view bytes);

/// Reads a torch file in the zip format that holds one plain tensor, or a dict, list or tuple of
/// them: names with arrays. data.pkl is looked at by a small interpreter that knows only what such
/// files need (dicts, lists, tuples, texts, integers, None, truth values, tensors of the standard
/// storages, OrderedDict) and calls nothing; anything else is refused with the reason, and so is
/// the format before torch 1.6. Error: Invalid (`E-FOREIGN-008`).
[[nodiscard]] Result<std::vector<std::pair<std::string, NumberArray>>>
readTorch(std::string_view name, std::string_view bytes);

} // namespace muster::foreign
