// SPDX-License-Identifier: Apache-2.0
#include "model/encoder_weights_p.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>
#include <utility>

namespace muster::model {
namespace {

std::string shapeText(std::span<const std::uint64_t> shape)
{
    return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// Collects tensors by name and what is wrong with them.
class Matcher final {
public:
    explicit Matcher(const Checkpoint& checkpoint) : m_checkpoint(checkpoint) {}

    TensorView take(const std::string& name, std::vector<std::uint64_t> shape)
    {
        auto at = m_checkpoint.tensors().find(name);
        if (at == m_checkpoint.tensors().end())
            at = m_checkpoint.tensors().find(olderName(name));
        if (at == m_checkpoint.tensors().end()) {
            m_problems.push_back(fmt::format("{} is missing", inQuotes(name)));
            return {};
        }
        const auto& view = at->second;
        m_used.insert(at->first);
        if (!std::equal(shape.begin(), shape.end(), view.shape.begin(), view.shape.end())) {
            m_problems.push_back(fmt::format("{} has shape {} and config.json asks for {}",
                                             inQuotes(name), shapeText(view.shape),
                                             shapeText(shape)));
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
    LinearTensors linear(const LinearNames& names, std::uint64_t out, std::uint64_t in)
    {
        auto weight = take(names.weight, {out, in});
        return {weight, take(names.bias, {out})};
    }
    LinearTensors norm(const LinearNames& names, std::uint64_t width)
    {
        auto weight = take(names.weight, {width});
        return {weight, take(names.bias, {width})};
    }
    Result<EncoderTensors> finish(EncoderTensors tensors, const std::vector<std::string>& harmless)
    {
        for (const auto& [name, view] : m_checkpoint.tensors()) {
            const bool isHarmless =
                std::any_of(harmless.begin(), harmless.end(),
                            [&](const std::string& start) { return name.starts_with(start); });
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
                        fmt::format("the checkpoint does not fit its config.json ({} problem{}): "
                                    "{}{}",
                                    count, count == 1 ? "" : "s", fmt::join(m_problems, "; "),
                                    count > shown ? "; and more" : ""));
        }
        tensors.digest = m_hasher.result();
        tensors.parameters = m_parameters;
        tensors.bytes = m_bytes;
        return tensors;
    }

private:
    /// Checkpoints converted from TensorFlow call the gain gamma and the shift beta.
    static std::string olderName(const std::string& name)
    {
        constexpr std::array<std::pair<std::string_view, std::string_view>, 2> endings{
            {{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}}};
        for (const auto& [now, then] : endings) {
            if (name.ends_with(now))
                return name.substr(0, name.size() - now.size()) + std::string(then);
        }
        return name;
    }

    const Checkpoint& m_checkpoint;
    std::set<std::string, std::less<>> m_used;
    std::vector<std::string> m_problems;
    std::string m_badType;
    Hasher m_hasher;
    std::uint64_t m_parameters = 0;
    std::uint64_t m_bytes = 0;
};

/// Writes parameters into the image.
class Filler final {
public:
    Filler(const KernelSet& kernels, Rounding rounding, std::byte* image)
        : m_kernels(kernels), m_rounding(rounding), m_image(image)
    {
    }

    float* at(std::size_t place) const
    {
        return static_cast<float*>(static_cast<void*>(m_image + place));
    }
    void copy(const TensorView& tensor, std::size_t place, std::size_t skip = 0)
    {
        const auto count = tensor.bytes.size() / sizeOf(tensor.type);
        read(tensor, {at(place) + skip, count});
    }
    void norm(const LinearTensors& tensors, const NormPlace& place)
    {
        copy(tensors.weight, place.gain);
        copy(tensors.bias, place.shift);
    }
    /// Layers with the same input, one after the other as one layer.
    void linear(std::span<const LinearTensors* const> parts, std::size_t depth,
                const LinearPlace& place)
    {
        std::size_t columns = 0;
        for (const auto* part : parts) {
            const auto count = part->bias.bytes.size() / sizeOf(part->bias.type);
            m_weight.resize((columns + count) * depth);
            read(part->weight, std::span(m_weight).subspan(columns * depth));
            copy(part->bias, place.bias, columns);
            columns += count;
        }
        packPanels(m_kernels, m_weight.data(), columns, depth, at(place.panels));
    }

private:
    void read(const TensorView& tensor, std::span<float> to)
    {
        readFloats(m_kernels, tensor, 0, to);
        if (m_rounding == Rounding::Bfloat16)
            m_kernels.round(to.data(), to.size());
    }

    const KernelSet& m_kernels;
    Rounding m_rounding;
    std::byte* m_image;
    std::vector<float> m_weight;
};

} // namespace

Result<EncoderTensors> matchTensors(const EncoderPlan& plan, const Checkpoint& checkpoint)
{
    const auto& shape = plan.shape;
    const auto& names = plan.names;
    Matcher match(checkpoint);
    EncoderTensors tensors;
    tensors.words = match.take(names.words, {shape.vocabulary, shape.embedding});
    tensors.positions = match.take(names.positions, {shape.positions, shape.embedding});
    if (!names.segments.empty())
        tensors.segments = match.take(names.segments, {shape.segments, shape.embedding});
    tensors.embeddingNorm = match.norm(names.embeddingNorm, shape.embedding);
    if (!names.projection.weight.empty())
        tensors.projection = match.linear(names.projection, shape.width, shape.embedding);
    for (const auto& layer : names.layers) {
        LayerTensors& to = tensors.layers.emplace_back();
        to.query = match.linear(layer.query, shape.width, shape.width);
        to.key = match.linear(layer.key, shape.width, shape.width);
        to.value = match.linear(layer.value, shape.width, shape.width);
        to.attentionOutput = match.linear(layer.attentionOutput, shape.width, shape.width);
        to.attentionNorm = match.norm(layer.attentionNorm, shape.width);
        to.up = match.linear(layer.up, shape.inner, shape.width);
        to.down = match.linear(layer.down, shape.width, shape.inner);
        to.outputNorm = match.norm(layer.outputNorm, shape.width);
    }
    tensors.head = match.linear(names.head, 2, shape.width);
    return match.finish(std::move(tensors), names.harmless);
}

void readFloats(const KernelSet& kernels, const TensorView& tensor, std::size_t first,
                std::span<float> to)
{
    const auto size = sizeOf(tensor.type);
    const auto bytes = tensor.bytes.subspan(first * size, to.size() * size);
    if (tensor.type == DType::F32) {
        std::memcpy(to.data(), bytes.data(), bytes.size());
        return;
    }
    // Through a small buffer, because a file may hold its tensors at odd places.
    std::array<std::uint16_t, 2048> part{};
    for (std::size_t done = 0; done < to.size(); done += part.size()) {
        const auto count = std::min(part.size(), to.size() - done);
        std::memcpy(part.data(), bytes.data() + done * size, count * size);
        if (tensor.type == DType::F16)
            kernels.fromHalf(to.data() + done, part.data(), count);
        else
            kernels.fromBfloat16(to.data() + done, part.data(), count);
    }
}

ImageLayout layOut(const EncoderShape& shape, const KernelSet& kernels, DType wordType)
{
    ImageLayout layout;
    layout.wordType = wordType;
    const auto take = [&](std::size_t bytes) {
        const auto place = layout.size;
        layout.size += (bytes + 63) / 64 * 64;
        return place;
    };
    const auto floats = [&](std::size_t count) { return take(count * sizeof(float)); };
    const auto norm = [&](std::size_t width) {
        const auto gain = floats(width);
        return NormPlace{gain, floats(width)};
    };
    const auto linear = [&](std::size_t columns, std::size_t depth) {
        const auto panels = floats(panelFloats(kernels, columns, depth));
        return LinearPlace{panels, floats(panelFloats(kernels, columns, 1))};
    };
    layout.words = take(std::size_t{shape.vocabulary} * shape.embedding * sizeOf(wordType));
    layout.positions = floats(std::size_t{shape.positions} * shape.embedding);
    layout.segments = floats(std::size_t{shape.segments} * shape.embedding);
    layout.embeddingNorm = norm(shape.embedding);
    if (shape.embedding != shape.width)
        layout.projection = linear(shape.width, shape.embedding);
    for (std::uint32_t i = 0; i < shape.layers; ++i) {
        LayerPlaces& layer = layout.layers.emplace_back();
        layer.attentionInput = linear(std::size_t{3} * shape.width, shape.width);
        layer.attentionOutput = linear(shape.width, shape.width);
        layer.attentionNorm = norm(shape.width);
        layer.up = linear(shape.inner, shape.width);
        layer.down = linear(shape.width, shape.inner);
        layer.outputNorm = norm(shape.width);
    }
    layout.head = linear(2, shape.width);
    return layout;
}

void fillImage(const EncoderShape& shape, const KernelSet& kernels, Rounding rounding,
               const EncoderTensors& tensors, const ImageLayout& layout, std::byte* image)
{
    Filler fill(kernels, rounding, image);
    std::memcpy(image + layout.words, tensors.words.bytes.data(), tensors.words.bytes.size());
    fill.copy(tensors.positions, layout.positions);
    if (shape.segments != 0)
        fill.copy(tensors.segments, layout.segments);
    fill.norm(tensors.embeddingNorm, layout.embeddingNorm);
    const auto single = [&](const LinearTensors& part, std::size_t depth,
                            const LinearPlace& place) {
        const std::array<const LinearTensors*, 1> parts{&part};
        fill.linear(parts, depth, place);
    };
    if (shape.embedding != shape.width)
        single(tensors.projection, shape.embedding, layout.projection);
    for (std::size_t i = 0; i < tensors.layers.size(); ++i) {
        const auto& layer = tensors.layers[i];
        const auto& place = layout.layers[i];
        const std::array<const LinearTensors*, 3> parts{&layer.query, &layer.key, &layer.value};
        fill.linear(parts, shape.width, place.attentionInput);
        single(layer.attentionOutput, shape.width, place.attentionOutput);
        fill.norm(layer.attentionNorm, place.attentionNorm);
        single(layer.up, shape.width, place.up);
        single(layer.down, shape.inner, place.down);
        fill.norm(layer.outputNorm, place.outputNorm);
    }
    single(tensors.head, shape.width, layout.head);
}

} // namespace muster::model
