// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/hash.h"
#include "base/result.h"
#include "model/checkpoint.h"
#include "model/encoder_weights_p.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::model {

/// Collects tensors of a checkpoint by name, and what is wrong with them; the checkpoint is to
/// outlive it.
class TensorMatcher final {
public:
    /// `optionalPrefix`: a beginning of names that the checkpoint may leave out.
    explicit TensorMatcher(const Checkpoint& checkpoint, std::string optionalPrefix = {});

    [[nodiscard]] bool has(const std::string& name) const;
    /// A tensor of this shape; empty when it is missing or wrong, which finish() reports.
    TensorView take(const std::string& name, std::vector<std::uint64_t> shape);
    LinearTensors linear(const LinearNames& names, std::uint64_t out, std::uint64_t in);
    LinearTensors norm(const LinearNames& names, std::uint64_t width);
    /// A tensor that repeats another one.
    void mustEqual(const std::string& name, const TensorView& other);

    /// Refuses tensors that nobody took and whose names do not begin with one of `harmless` (or,
    /// for an entry that begins with `*`, end with what follows). Errors: `E-MODEL-030`,
    /// `E-MODEL-031`.
    [[nodiscard]] Status finish(const std::vector<std::string>& harmless);

    [[nodiscard]] Hash128 digest() const { return m_hasher.result(); }
    [[nodiscard]] std::uint64_t parameters() const { return m_parameters; }
    [[nodiscard]] std::uint64_t bytes() const { return m_bytes; }

private:
    using Place = std::map<std::string, TensorView, std::less<>>::const_iterator;
    [[nodiscard]] Place find(const std::string& name) const;

    const Checkpoint& m_checkpoint;
    std::string m_optionalPrefix;
    std::set<std::string, std::less<>> m_used;
    std::vector<std::string> m_problems;
    std::string m_badType;
    Hasher m_hasher;
    std::uint64_t m_parameters = 0;
    std::uint64_t m_bytes = 0;
};

} // namespace muster::model
