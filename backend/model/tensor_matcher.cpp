// SPDX-License-Identifier: Apache-2.0
#include "model/tensor_matcher_p.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace muster::model {
namespace {

std::string shapeText(std::span<const std::uint64_t> shape)
{
    return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// Checkpoints converted from TensorFlow call the gain gamma and the shift beta.
std::string olderName(const std::string& name)
{
    constexpr std::array<std::pair<std::string_view, std::string_view>, 2> endings{
        {{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}}};
    for (const auto& [now, then] : endings) {
        if (name.ends_with(now))
            return name.substr(0, name.size() - now.size()) + std::string(then);
    }
    return name;
}

bool matches(std::string_view name, std::string_view pattern)
{
    return pattern.starts_with('*') ? name.ends_with(pattern.substr(1)) : name.starts_with(pattern);
}

} // namespace

TensorMatcher::TensorMatcher(const Checkpoint& checkpoint, std::string optionalPrefix)
    : m_checkpoint(checkpoint), m_optionalPrefix(std::move(optionalPrefix))
{
}

TensorMatcher::Place TensorMatcher::find(const std::string& name) const
{
    const auto& tensors = m_checkpoint.tensors();
    auto at = tensors.find(name);
    if (at == tensors.end())
        at = tensors.find(olderName(name));
    if (at == tensors.end() && !m_optionalPrefix.empty() && name.starts_with(m_optionalPrefix))
        at = tensors.find(name.substr(m_optionalPrefix.size()));
    return at;
}

bool TensorMatcher::has(const std::string& name) const
{
    return find(name) != m_checkpoint.tensors().end();
}

TensorView TensorMatcher::take(const std::string& name, std::vector<std::uint64_t> shape)
{
    const auto at = find(name);
    if (at == m_checkpoint.tensors().end()) {
        m_problems.push_back(fmt::format("{} is missing", inQuotes(name)));
        return {};
    }
    const auto& view = at->second;
    m_used.insert(at->first);
    if (!std::equal(shape.begin(), shape.end(), view.shape.begin(), view.shape.end())) {
        m_problems.push_back(fmt::format("{} has shape {} and config.json asks for {}",
                                         inQuotes(name), shapeText(view.shape), shapeText(shape)));
        return {};
    }
    if (view.type != DType::F32 && view.type != DType::F16 && view.type != DType::Bf16) {
        m_badType = fmt::format("tensor {} in {} has type {}; Muster reads F32, F16 and BF16",
                                inQuotes(name), inQuotes(view.file), nameOf(view.type));
        return {};
    }
    m_hasher.add(name).add(nameOf(view.type)).add(std::uint64_t{view.shape.size()});
    for (const auto extent : view.shape)
        m_hasher.add(extent);
    m_hasher.add(hash128(view.bytes));
    m_parameters += view.bytes.size() / sizeOf(view.type);
    m_bytes += view.bytes.size();
    return view;
}

LinearTensors TensorMatcher::linear(const LinearNames& names, std::uint64_t out, std::uint64_t in)
{
    auto weight = take(names.weight, {out, in});
    return {weight, take(names.bias, {out})};
}

LinearTensors TensorMatcher::norm(const LinearNames& names, std::uint64_t width)
{
    auto weight = take(names.weight, {width});
    return {weight, take(names.bias, {width})};
}

void TensorMatcher::mustEqual(const std::string& name, const TensorView& other)
{
    const auto at = find(name);
    if (at == m_checkpoint.tensors().end())
        return;
    m_used.insert(at->first);
    const auto& view = at->second;
    if (view.type != other.type || !std::ranges::equal(view.shape, other.shape) ||
        !std::ranges::equal(view.bytes, other.bytes))
        m_problems.push_back(
            fmt::format("{} differs from the tensor that config.json ties it to", inQuotes(name)));
}

Status TensorMatcher::finish(const std::vector<std::string>& harmless)
{
    for (const auto& [name, view] : m_checkpoint.tensors()) {
        const bool isHarmless =
            std::any_of(harmless.begin(), harmless.end(),
                        [&](const std::string& pattern) { return matches(name, pattern); });
        if (!isHarmless && !m_used.contains(name))
            m_problems.push_back(fmt::format("{} in {} is not a parameter of this architecture",
                                             inQuotes(name), inQuotes(view.file)));
    }
    if (!m_badType.empty())
        return fail(Error::Kind::Invalid, "E-MODEL-031", m_badType);
    if (!m_problems.empty()) {
        constexpr std::size_t shown = 12;
        const auto count = m_problems.size();
        m_problems.resize(std::min(count, shown));
        return fail(Error::Kind::Invalid, "E-MODEL-030",
                    fmt::format("the checkpoint does not fit its config.json ({} problem{}): {}{}",
                                count, count == 1 ? "" : "s", fmt::join(m_problems, "; "),
                                count > shown ? "; and more" : ""));
    }
    return {};
}

} // namespace muster::model
