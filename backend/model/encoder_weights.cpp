// SPDX-License-Identifier: Apache-2.0
#include "model/encoder_weights_p.h"

#include "model/tensor_matcher_p.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace muster::model {
namespace {

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
    TensorMatcher match(checkpoint);
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
    if (shape.isClassifier())
        tensors.pooler = match.linear(names.pooler, shape.width, shape.width);
    tensors.head = match.linear(names.head, shape.outputs, shape.width);
    if (auto status = match.finish(names.harmless); !status)
        return fail(std::move(status).error());
    tensors.digest = match.digest();
    tensors.parameters = match.parameters();
    tensors.bytes = match.bytes();
    return tensors;
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
    if (shape.isClassifier())
        layout.pooler = linear(shape.width, shape.width);
    layout.head = linear(shape.outputs, shape.width);
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
    if (shape.isClassifier())
        single(tensors.pooler, shape.width, layout.pooler);
    single(tensors.head, shape.width, layout.head);
}

} // namespace muster::model
