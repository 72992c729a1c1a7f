// SPDX-License-Identifier: Apache-2.0
#include "model/decoder_weights_p.h"

#include "model/tensor_matcher_p.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

namespace muster::model {
namespace {

/// Output column `lane` of a panel: which part and which of its rows; nothing beyond the last.
struct Source {
    std::size_t part = 0;
    std::size_t row = 0;
    bool isThere = false;
};

Source sourceOf(const MatrixTensors& matrix, std::size_t panelWidth, std::size_t column)
{
    if (matrix.isGated) {
        const auto half = panelWidth / 2;
        const auto panel = column / panelWidth;
        const auto lane = column % panelWidth;
        const auto row = panel * half + lane % half;
        return {lane / half, row, row < matrix.rows.front()};
    }
    for (std::size_t part = 0; part < matrix.parts.size(); ++part) {
        if (column < matrix.rows[part])
            return {part, column, true};
        column -= matrix.rows[part];
    }
    return {};
}

std::size_t outputColumns(const MatrixTensors& matrix)
{
    if (matrix.isGated)
        return matrix.rows.front();
    std::size_t columns = 0;
    for (const auto rows : matrix.rows)
        columns += rows;
    return columns;
}

std::size_t panelCount(const MatrixTensors& matrix, std::size_t panelWidth)
{
    const auto width = matrix.isGated ? panelWidth / 2 : panelWidth;
    return (outputColumns(matrix) + width - 1) / width;
}

/// Elements of one column of a panel.
std::size_t elementsOf(PanelType type, std::size_t depth)
{
    return type == PanelType::Int8Pairs ? (depth + 1) / 2 * 2 : depth;
}

/// Where input k of column `lane` stands in a panel.
std::size_t elementOf(PanelType type, std::size_t k, std::size_t lane, std::size_t panelWidth)
{
    return type == PanelType::Int8Pairs ? (k / 2 * panelWidth + lane) * 2 + k % 2
                                        : k * panelWidth + lane;
}

std::uint16_t bfloat16Of(float value)
{
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if (value != value)
        return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
    return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

float wide(std::uint16_t bfloat16)
{
    return std::bit_cast<float>(static_cast<std::uint32_t>(bfloat16) << 16U);
}

template <typename T>
T* placeOf(std::byte* image, std::size_t place)
{
    return static_cast<T*>(static_cast<void*>(image + place));
}

template <typename T>
const T* placeOf(const std::byte* image, std::size_t place)
{
    return static_cast<const T*>(static_cast<const void*>(image + place));
}

/// Writes parameters into the image.
class Filler final {
public:
    Filler(const KernelSet& kernels, const WeightForm& form, std::byte* image)
        : m_kernels(kernels), m_form(form), m_image(image)
    {
    }

    void vector(const TensorView& tensor, std::size_t place)
    {
        const auto count = tensor.bytes.size() / sizeOf(tensor.type);
        read(tensor, 0, {placeOf<float>(m_image, place), count});
    }
    void norm(const LinearTensors& tensors, const NormPlace& place)
    {
        vector(tensors.weight, place.gain);
        if (!tensors.bias.shape.empty())
            vector(tensors.bias, place.shift);
    }
    void matrix(const MatrixTensors& from, const MatrixPlace& to)
    {
        const auto width = m_kernels.panel;
        const std::size_t depth = from.depth;
        m_rows.resize(width * depth);
        for (std::size_t panel = 0; panel < to.panels; ++panel) {
            readRows(from, panel);
            switch (to.type) {
            case PanelType::Float32: {
                float* out = placeOf<float>(m_image, to.elements) + panel * depth * width;
                for (std::size_t lane = 0; lane < width; ++lane)
                    for (std::size_t k = 0; k < depth; ++k)
                        out[k * width + lane] = m_rows[lane * depth + k];
                break;
            }
            case PanelType::Bfloat16: {
                auto* out = placeOf<std::uint16_t>(m_image, to.elements) + panel * depth * width;
                for (std::size_t lane = 0; lane < width; ++lane)
                    for (std::size_t k = 0; k < depth; ++k)
                        out[k * width + lane] = bfloat16Of(m_rows[lane * depth + k]);
                break;
            }
            case PanelType::Int8:
            case PanelType::Int8Pairs:
                int8Panel(to, panel);
                break;
            case PanelType::Int4:
                int4Panel(to, panel);
                break;
            }
            if (to.bias != nowhere)
                biasPanel(from, to, panel);
        }
    }

private:
    void read(const TensorView& tensor, std::size_t first, std::span<float> to)
    {
        readFloats(m_kernels, tensor, first, to);
        if (m_form.rounding == Rounding::Bfloat16)
            m_kernels.round(to.data(), to.size());
    }
    /// The weights of a panel as rows [panel width][depth].
    void readRows(const MatrixTensors& from, std::size_t panel)
    {
        const auto width = m_kernels.panel;
        const std::size_t depth = from.depth;
        for (std::size_t lane = 0; lane < width; ++lane) {
            const auto source = sourceOf(from, width, panel * width + lane);
            float* row = m_rows.data() + lane * depth;
            if (!source.isThere) {
                std::fill_n(row, depth, 0.0F);
                continue;
            }
            const auto& weight = from.parts[source.part].weight;
            if (!from.isTransposed) {
                read(weight, source.row * depth, {row, depth});
                continue;
            }
            const std::size_t columns = from.rows[source.part];
            for (std::size_t k = 0; k < depth; ++k)
                read(weight, k * columns + source.row, {row + k, 1});
        }
    }
    void biasPanel(const MatrixTensors& from, const MatrixPlace& to, std::size_t panel)
    {
        const auto width = m_kernels.panel;
        float* out = placeOf<float>(m_image, to.bias) + panel * width;
        for (std::size_t lane = 0; lane < width; ++lane) {
            const auto source = sourceOf(from, width, panel * width + lane);
            if (source.isThere && !from.parts[source.part].bias.shape.empty())
                read(from.parts[source.part].bias, source.row, {out + lane, 1});
        }
    }
    /// Symmetric: scale = max|w| / 127, q = w / scale to nearest.
    void int8Panel(const MatrixPlace& to, std::size_t panel)
    {
        constexpr float largest = 127.0F;
        const auto width = m_kernels.panel;
        auto* out = placeOf<std::int8_t>(m_image, to.elements) +
                    panel * elementsOf(to.type, to.depth) * width;
        float* scales = placeOf<float>(m_image, to.scales) + panel * width;
        for (std::size_t lane = 0; lane < width; ++lane) {
            const float* row = m_rows.data() + lane * to.depth;
            float top = 0.0F;
            bool isFinite = true;
            for (std::size_t k = 0; k < to.depth; ++k) {
                top = std::max(top, std::fabs(row[k]));
                isFinite = isFinite && std::isfinite(row[k]);
            }
            // A weight that is no number stays visible: the whole row gives none.
            scales[lane] = isFinite ? top / largest : std::nanf("");
            if (!isFinite || !(scales[lane] > 0.0F))
                continue;
            for (std::size_t k = 0; k < to.depth; ++k)
                out[elementOf(to.type, k, lane, width)] = static_cast<std::int8_t>(
                    std::clamp(std::nearbyint(row[k] / scales[lane]), -largest, largest));
        }
    }
    /// Asymmetric: scale = (max − min) / 15 and min in bfloat16, q = (w − min) / scale to nearest.
    void int4Panel(const MatrixPlace& to, std::size_t panel)
    {
        constexpr float steps = 15.0F;
        const auto width = m_kernels.panel;
        const auto half = width / 2;
        auto* out = placeOf<std::uint8_t>(m_image, to.elements) + panel * to.depth * half;
        const auto groups = (to.depth + to.group - 1) / to.group;
        auto* scales = placeOf<std::uint16_t>(m_image, to.scales) + panel * groups * 2 * width;
        for (std::size_t lane = 0; lane < width; ++lane) {
            const float* row = m_rows.data() + lane * to.depth;
            for (std::size_t group = 0; group < groups; ++group) {
                const auto first = group * to.group;
                const auto end = std::min(first + to.group, to.depth);
                float low = row[first];
                float high = row[first];
                bool isFinite = true;
                for (auto k = first; k < end; ++k) {
                    low = std::min(low, row[k]);
                    high = std::max(high, row[k]);
                    isFinite = isFinite && std::isfinite(row[k]);
                }
                auto* pair = scales + group * 2 * width + lane;
                pair[0] = bfloat16Of(isFinite ? (high - low) / steps : std::nanf(""));
                pair[width] = bfloat16Of(low);
                const float scale = wide(pair[0]);
                const float least = wide(pair[width]);
                if (!(scale > 0.0F))
                    continue;
                for (auto k = first; k < end; ++k) {
                    const auto q = static_cast<unsigned>(
                        std::clamp(std::nearbyint((row[k] - least) / scale), 0.0F, steps));
                    auto& byte = out[k * half + lane % half];
                    byte = static_cast<std::uint8_t>(byte | (lane < half ? q : q << 4U));
                }
            }
        }
    }

    const KernelSet& m_kernels;
    WeightForm m_form;
    std::byte* m_image;
    std::vector<float> m_rows;
};

LinearTensors takeLinear(TensorMatcher& match, const LinearNames& names, std::uint64_t out,
                         std::uint64_t in, bool isTransposed)
{
    LinearTensors tensors;
    tensors.weight =
        isTransposed ? match.take(names.weight, {in, out}) : match.take(names.weight, {out, in});
    if (!names.bias.empty())
        tensors.bias = match.take(names.bias, {out});
    return tensors;
}

LinearTensors takeNorm(TensorMatcher& match, const LinearNames& names, std::uint64_t width)
{
    LinearTensors tensors;
    tensors.weight = match.take(names.weight, {width});
    if (!names.bias.empty())
        tensors.bias = match.take(names.bias, {width});
    return tensors;
}

} // namespace

Result<DecoderTensors> matchDecoder(const DecoderPlan& plan, const Checkpoint& checkpoint)
{
    const auto& shape = plan.shape;
    const auto& names = plan.names;
    TensorMatcher match(checkpoint, names.optionalPrefix);
    const auto matrix = [&](std::vector<std::pair<const LinearNames*, std::uint32_t>> parts,
                            std::uint32_t depth) {
        MatrixTensors to;
        to.depth = depth;
        to.isTransposed = names.isTransposed;
        for (const auto& [part, rows] : parts) {
            to.parts.push_back(takeLinear(match, *part, rows, depth, names.isTransposed));
            to.rows.push_back(rows);
        }
        return to;
    };
    DecoderTensors tensors;
    tensors.words = match.take(names.words, {shape.vocabulary, shape.width});
    if (!names.positions.empty())
        tensors.positions = match.take(names.positions, {shape.positions, shape.width});
    for (const auto& layer : names.layers) {
        auto& to = tensors.layers.emplace_back();
        to.inputNorm = takeNorm(match, layer.inputNorm, shape.width);
        if (names.isFused)
            to.attentionInput =
                matrix({{&layer.query, shape.queryWidth() + 2 * shape.keyWidth()}}, shape.width);
        else
            to.attentionInput = matrix({{&layer.query, shape.queryWidth()},
                                        {&layer.key, shape.keyWidth()},
                                        {&layer.value, shape.keyWidth()}},
                                       shape.width);
        if (!layer.queryNorm.weight.empty()) {
            to.queryNorm = takeNorm(match, layer.queryNorm, shape.headSize);
            to.keyNorm = takeNorm(match, layer.keyNorm, shape.headSize);
        }
        to.attentionOutput = matrix({{&layer.attentionOutput, shape.width}}, shape.queryWidth());
        to.middleNorm = takeNorm(match, layer.middleNorm, shape.width);
        if (shape.isGated) {
            to.up = matrix({{&layer.gate, shape.inner}, {&layer.up, shape.inner}}, shape.width);
            to.up.isGated = true;
        } else {
            to.up = matrix({{&layer.up, shape.inner}}, shape.width);
        }
        to.down = matrix({{&layer.down, shape.width}}, shape.inner);
    }
    tensors.finalNorm = takeNorm(match, names.finalNorm, shape.width);
    tensors.head.depth = shape.width;
    tensors.head.rows = {shape.vocabulary};
    if (shape.isTied) {
        tensors.head.parts.push_back({tensors.words, {}});
        match.mustEqual(names.head, tensors.words);
    } else {
        tensors.head.parts.push_back({match.take(names.head, {shape.vocabulary, shape.width}), {}});
    }
    if (auto status = match.finish(names.harmless); !status)
        return fail(std::move(status).error());
    tensors.digest = match.digest();
    tensors.parameters = match.parameters();
    tensors.bytes = match.bytes();
    return tensors;
}

WeightForm weightForm(Precision precision, std::uint32_t group)
{
    switch (precision) {
    case Precision::Bfloat16:
        return {PanelType::Bfloat16, PanelType::Bfloat16, 0, Rounding::Bfloat16};
    case Precision::Int8:
        return {PanelType::Int8, PanelType::Int8, 0, Rounding::None};
    case Precision::Int8Dynamic:
        return {PanelType::Int8Pairs, PanelType::Int8Pairs, 0, Rounding::None};
    case Precision::Int4:
        return {PanelType::Int4, PanelType::Int8, group, Rounding::None};
    case Precision::Float32:
    case Precision::Float16:
        break;
    }
    return {};
}

DecoderLayout layOut(const DecoderShape& shape, const DecoderTensors& tensors,
                     const KernelSet& kernels, const WeightForm& form)
{
    DecoderLayout layout;
    const auto take = [&](std::size_t bytes) {
        const auto place = layout.size;
        layout.size += (bytes + 63) / 64 * 64;
        return place;
    };
    const auto floats = [&](std::size_t count) { return take(count * sizeof(float)); };
    const auto norm = [&](const LinearTensors& from) {
        const auto gain = floats(shape.width);
        return NormPlace{gain, from.bias.shape.empty() ? nowhere : floats(shape.width)};
    };
    const auto matrix = [&](const MatrixTensors& from, PanelType type) {
        // Weights that are bfloat16 in the checkpoint are kept so: half the memory, the same
        // numbers.
        const bool isHalf =
            std::all_of(from.parts.begin(), from.parts.end(),
                        [](const LinearTensors& part) { return part.weight.type == DType::Bf16; });
        if (type == PanelType::Float32 && isHalf)
            type = PanelType::Bfloat16;
        MatrixPlace place;
        place.type = type;
        place.depth = from.depth;
        place.panels = panelCount(from, kernels.panel);
        place.columns = outputColumns(from);
        place.isGated = from.isGated;
        const auto elements = place.panels * elementsOf(type, place.depth) * kernels.panel;
        switch (type) {
        case PanelType::Float32:
            place.elements = take(elements * sizeof(float));
            break;
        case PanelType::Bfloat16:
            place.elements = take(elements * sizeof(std::uint16_t));
            break;
        case PanelType::Int8:
        case PanelType::Int8Pairs:
            place.elements = take(elements);
            place.scales = floats(place.panels * kernels.panel);
            break;
        case PanelType::Int4:
            place.group = form.group;
            place.elements = take(elements / 2);
            place.scales = take(place.panels * ((place.depth + form.group - 1) / form.group) * 2 *
                                kernels.panel * sizeof(std::uint16_t));
            break;
        }
        if (from.hasBias())
            place.bias = floats(place.panels * kernels.panel);
        return place;
    };
    layout.wordType = tensors.words.type;
    if (!shape.isTied)
        layout.words = take(std::size_t{shape.vocabulary} * shape.width * sizeOf(layout.wordType));
    if (!tensors.positions.shape.empty())
        layout.positions = floats(std::size_t{shape.positions} * shape.width);
    for (const auto& layer : tensors.layers) {
        auto& to = layout.layers.emplace_back();
        to.inputNorm = norm(layer.inputNorm);
        to.attentionInput = matrix(layer.attentionInput, form.matrices);
        if (!layer.queryNorm.weight.shape.empty()) {
            to.queryNorm = floats(shape.headSize);
            to.keyNorm = floats(shape.headSize);
        }
        to.attentionOutput = matrix(layer.attentionOutput, form.matrices);
        to.middleNorm = norm(layer.middleNorm);
        to.up = matrix(layer.up, form.matrices);
        // The inputs of the last matrix have entries that are forty times their root mean square:
        // 8 bits for each row are too few for the rest of them.
        to.down = matrix(layer.down,
                         form.matrices == PanelType::Int8Pairs ? PanelType::Int8 : form.matrices);
    }
    layout.finalNorm = norm(tensors.finalNorm);
    layout.head = matrix(tensors.head, form.head);
    return layout;
}

void fillImage(const DecoderTensors& tensors, const KernelSet& kernels, const WeightForm& form,
               const DecoderLayout& layout, std::byte* image)
{
    Filler fill(kernels, form, image);
    if (layout.words != nowhere)
        std::memcpy(image + layout.words, tensors.words.bytes.data(), tensors.words.bytes.size());
    if (layout.positions != nowhere)
        fill.vector(tensors.positions, layout.positions);
    for (std::size_t i = 0; i < layout.layers.size(); ++i) {
        const auto& from = tensors.layers[i];
        const auto& to = layout.layers[i];
        fill.norm(from.inputNorm, to.inputNorm);
        fill.matrix(from.attentionInput, to.attentionInput);
        if (to.queryNorm != nowhere) {
            fill.vector(from.queryNorm.weight, to.queryNorm);
            fill.vector(from.keyNorm.weight, to.keyNorm);
        }
        fill.matrix(from.attentionOutput, to.attentionOutput);
        fill.norm(from.middleNorm, to.middleNorm);
        fill.matrix(from.up, to.up);
        fill.matrix(from.down, to.down);
    }
    fill.norm(tensors.finalNorm, layout.finalNorm);
    fill.matrix(tensors.head, layout.head);
}

Panels panelsAt(const MatrixPlace& place, const std::byte* image)
{
    return {place.type, image + place.elements,
            place.scales == nowhere ? nullptr : image + place.scales, place.depth, place.group};
}

void readPanelRow(const Panels& panels, std::size_t panelWidth, std::size_t row, float* to)
{
    const auto panel = row / panelWidth;
    const auto lane = row % panelWidth;
    const auto start = panel * elementsOf(panels.type, panels.depth) * panelWidth;
    for (std::size_t k = 0; k < panels.depth; ++k) {
        const auto at = start + elementOf(panels.type, k, lane, panelWidth);
        switch (panels.type) {
        case PanelType::Float32:
            to[k] = placeOf<float>(panels.elements, 0)[at];
            break;
        case PanelType::Bfloat16:
            to[k] = wide(placeOf<std::uint16_t>(panels.elements, 0)[at]);
            break;
        case PanelType::Int8:
        case PanelType::Int8Pairs:
            to[k] = static_cast<float>(placeOf<std::int8_t>(panels.elements, 0)[at]) *
                    placeOf<float>(panels.scales, 0)[row];
            break;
        case PanelType::Int4: {
            const auto half = panelWidth / 2;
            const auto groups = (panels.depth + panels.group - 1) / panels.group;
            const auto byte = static_cast<unsigned>(
                panels.elements[(panel * panels.depth + k) * half + lane % half]);
            const auto* pair = placeOf<std::uint16_t>(panels.scales, 0) +
                               (panel * groups + k / panels.group) * 2 * panelWidth + lane;
            to[k] = std::fma(static_cast<float>(lane < half ? byte & 15U : byte >> 4U),
                             wide(pair[0]), wide(pair[panelWidth]));
            break;
        }
        }
    }
}

} // namespace muster::model
