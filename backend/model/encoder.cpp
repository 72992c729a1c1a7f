// SPDX-License-Identifier: Apache-2.0
#include "model/encoder_p.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace muster::model {
namespace {

/// Rows that go through the feed-forward block together: their inner values stay in the cache.
constexpr std::size_t blockRows = 96;

} // namespace

std::vector<std::uint32_t> positionsOf(const EncoderShape& shape,
                                       std::span<const std::int32_t> tokens,
                                       std::span<const std::uint32_t> offsets)
{
    std::vector<std::uint32_t> positions(tokens.size());
    for (std::size_t item = 0; item + 1 < offsets.size(); ++item) {
        std::uint32_t next = shape.counting == Positions::AfterPadding
                                 ? static_cast<std::uint32_t>(shape.padToken) + 1
                                 : 0;
        for (std::size_t t = offsets[item]; t < offsets[item + 1]; ++t) {
            const bool isPad =
                shape.counting == Positions::AfterPadding && tokens[t] == shape.padToken;
            positions[t] = isPad ? static_cast<std::uint32_t>(shape.padToken) : next++;
        }
    }
    return positions;
}

PanelEncoder::PanelEncoder(const EncoderShape& shape, const KernelSet& kernels, Rounding rounding,
                           ImageLayout layout, const std::byte* image,
                           std::shared_ptr<const void> owner)
    : m_shape(shape), m_kernels(kernels), m_rounding(rounding), m_layout(std::move(layout)),
      m_image(image), m_owner(std::move(owner))
{
}

void PanelEncoder::embed(const PackedTokens& packed)
{
    const auto count = packed.tokens.size();
    const std::size_t width = m_shape.embedding;
    const bool isProjected = m_shape.embedding != m_shape.width;
    float* state = isProjected
                       ? m_context.reserve(count * std::max<std::size_t>(width, m_shape.width))
                       : m_state.reserve(count * width);
    const auto positions = positionsOf(m_shape, packed.tokens, packed.offsets);
    const auto elementSize = sizeOf(m_layout.wordType);
    for (std::size_t t = 0; t < count; ++t) {
        float* row = state + t * width;
        const std::byte* word = m_image + m_layout.words +
                                static_cast<std::size_t>(packed.tokens[t]) * width * elementSize;
        if (m_layout.wordType == DType::F32) {
            std::memcpy(row, word, width * sizeof(float));
        } else {
            const auto* half = static_cast<const std::uint16_t*>(static_cast<const void*>(word));
            (m_layout.wordType == DType::F16 ? m_kernels.fromHalf
                                             : m_kernels.fromBfloat16)(row, half, width);
        }
        if (m_rounding == Rounding::Bfloat16)
            m_kernels.round(row, width);
        if (m_shape.segments != 0) {
            const std::size_t segment = packed.segments.empty() ? 0 : packed.segments[t];
            m_kernels.add(row, at(m_layout.segments) + segment * width, width);
        }
        m_kernels.add(row, at(m_layout.positions) + positions[t] * width, width);
    }
    m_kernels.layerNorm({.input = state,
                         .rows = count,
                         .width = width,
                         .gain = at(m_layout.embeddingNorm.gain),
                         .shift = at(m_layout.embeddingNorm.shift),
                         .epsilon = static_cast<float>(m_shape.epsilon),
                         .output = state,
                         .rounding = m_rounding});
    if (isProjected) {
        m_kernels.linear({.input = state,
                          .inputStride = width,
                          .rows = count,
                          .depth = width,
                          .columns = m_shape.width,
                          .panels = at(m_layout.projection.panels),
                          .bias = at(m_layout.projection.bias),
                          .output = m_state.reserve(count * m_shape.width),
                          .outputStride = m_shape.width,
                          .rounding = m_rounding});
    }
}

/// From m_state to m_context: queries, keys, values and their attention.
void PanelEncoder::attend(const LayerPlaces& places, std::span<const std::uint32_t> offsets)
{
    const std::size_t count = offsets.back();
    const std::size_t width = m_shape.width;
    const std::size_t headSize = width / m_shape.heads;
    float* state = m_state.reserve(count * width);
    float* attention = m_attention.reserve(count * 3 * width);
    float* context = m_context.reserve(count * width);
    m_kernels.linear({.input = state,
                      .inputStride = width,
                      .rows = count,
                      .depth = width,
                      .columns = 3 * width,
                      .panels = at(places.attentionInput.panels),
                      .bias = at(places.attentionInput.bias),
                      .output = attention,
                      .outputStride = 3 * width,
                      .rounding = m_rounding});
    for (std::size_t item = 0; item + 1 < offsets.size(); ++item) {
        const std::size_t first = offsets[item];
        const std::size_t tokens = offsets[item + 1] - first;
        m_kernels.attention(
            {.qkv = attention + first * 3 * width,
             .tokens = tokens,
             .heads = m_shape.heads,
             .headSize = headSize,
             .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(headSize))),
             .output = context + first * width,
             .scratch = m_scratch.reserve(attentionScratch(m_kernels, tokens, headSize)),
             .rounding = m_rounding});
    }
}

/// The rest of the layer for the first `count` rows of m_state and m_context; the result is in
/// m_state.
void PanelEncoder::feedForward(const LayerPlaces& places, std::size_t count)
{
    const std::size_t width = m_shape.width;
    float* state = m_state.reserve(0);
    float* attention = m_attention.reserve(0);
    const float* context = m_context.reserve(0);
    float* inner = m_inner.reserve(std::min(count, blockRows) * m_shape.inner);
    for (std::size_t first = 0; first < count; first += blockRows) {
        const auto rows = std::min(blockRows, count - first);
        float* block = state + first * width;
        // The block of queries, keys and values is no longer needed and takes the sums: a product
        // of several depth blocks passes through its output, which must not be the residual.
        float* sums = attention;
        const auto norm = [&](const NormPlace& place) {
            m_kernels.layerNorm({.input = sums,
                                 .rows = rows,
                                 .width = width,
                                 .gain = at(place.gain),
                                 .shift = at(place.shift),
                                 .epsilon = static_cast<float>(m_shape.epsilon),
                                 .output = block,
                                 .rounding = m_rounding});
        };
        m_kernels.linear({.input = context + first * width,
                          .inputStride = width,
                          .rows = rows,
                          .depth = width,
                          .columns = width,
                          .panels = at(places.attentionOutput.panels),
                          .bias = at(places.attentionOutput.bias),
                          .residual = block,
                          .output = sums,
                          .outputStride = width,
                          .rounding = m_rounding});
        norm(places.attentionNorm);
        m_kernels.linear({.input = block,
                          .inputStride = width,
                          .rows = rows,
                          .depth = width,
                          .columns = m_shape.inner,
                          .panels = at(places.up.panels),
                          .bias = at(places.up.bias),
                          .output = inner,
                          .outputStride = m_shape.inner,
                          .activation = m_shape.activation,
                          .rounding = m_rounding});
        m_kernels.linear({.input = inner,
                          .inputStride = m_shape.inner,
                          .rows = rows,
                          .depth = m_shape.inner,
                          .columns = width,
                          .panels = at(places.down.panels),
                          .bias = at(places.down.bias),
                          .residual = block,
                          .output = sums,
                          .outputStride = width,
                          .rounding = m_rounding});
        norm(places.outputNorm);
    }
}

/// Logits of the classes from the first `items` rows of m_state.
void PanelEncoder::classify(std::size_t items, float* logits)
{
    const std::size_t width = m_shape.width;
    float* pooled = m_context.reserve(0);
    m_kernels.linear({.input = m_state.reserve(0),
                      .inputStride = width,
                      .rows = items,
                      .depth = width,
                      .columns = width,
                      .panels = at(m_layout.pooler.panels),
                      .bias = at(m_layout.pooler.bias),
                      .output = pooled,
                      .outputStride = width,
                      .activation = m_shape.head == Head::ReluClasses   ? Activation::Relu
                                    : m_shape.head == Head::GeluClasses ? Activation::GeluErf
                                                                        : Activation::None,
                      .rounding = m_rounding});
    if (m_shape.head == Head::TanhClasses) {
        for (std::size_t i = 0; i < items * width; ++i)
            pooled[i] = std::tanh(pooled[i]);
        if (m_rounding == Rounding::Bfloat16)
            m_kernels.round(pooled, items * width);
    }
    m_kernels.linear({.input = pooled,
                      .inputStride = width,
                      .rows = items,
                      .depth = width,
                      .columns = m_shape.outputs,
                      .panels = at(m_layout.head.panels),
                      .bias = at(m_layout.head.bias),
                      .output = logits,
                      .outputStride = m_shape.outputs,
                      .rounding = m_rounding});
}

Status PanelEncoder::run(const PackedTokens& packed, float* logits)
{
    if (packed.tokens.empty())
        return {};
    const auto tokens = packed.tokens.size();
    const auto items = packed.offsets.size() - 1;
    const std::size_t width = m_shape.width;
    embed(packed);
    for (const auto& places : m_layout.layers) {
        attend(places, packed.offsets);
        const bool isLast = &places == &m_layout.layers.back();
        if (isLast && m_shape.isClassifier()) {
            // Nothing behind the last attention looks at other tokens than the first of each item.
            float* state = m_state.reserve(0);
            float* context = m_context.reserve(0);
            for (std::size_t item = 0; item < items; ++item) {
                const std::size_t from = packed.offsets[item] * width;
                std::copy_n(state + from, width, state + item * width);
                std::copy_n(context + from, width, context + item * width);
            }
            feedForward(places, items);
        } else {
            feedForward(places, tokens);
        }
    }
    if (m_shape.isClassifier()) {
        classify(items, logits);
        return {};
    }
    m_kernels.linear({.input = m_state.reserve(0),
                      .inputStride = width,
                      .rows = tokens,
                      .depth = width,
                      .columns = 2,
                      .panels = at(m_layout.head.panels),
                      .bias = at(m_layout.head.bias),
                      .output = logits,
                      .outputStride = 2,
                      .rounding = m_rounding});
    return {};
}

} // namespace muster::model
