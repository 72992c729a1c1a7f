// SPDX-License-Identifier: Apache-2.0
#include "model/decoder_p.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace muster::model {
namespace {

/// Vocabulary entries whose logits exist at a time.
constexpr std::size_t vocabularyBlock = 384;

/// A soft-max that sees its logits block by block.
struct RunningLoss {
    double highest = -std::numeric_limits<double>::infinity();
    double sum = 0.0; ///< Σ exp(x − highest)
    float target = 0.0F;
    std::size_t best = 0;
    float bestLogit = -std::numeric_limits<float>::infinity();

    void add(float blockHighest, float blockSum)
    {
        const double high = blockHighest;
        if (high > highest) {
            sum *= std::exp(highest - high);
            highest = high;
        }
        sum += static_cast<double>(blockSum) * std::exp(high - highest);
    }
    [[nodiscard]] float loss() const
    {
        return static_cast<float>(std::log(sum) + (highest - static_cast<double>(target)));
    }
};

} // namespace

PanelDecoder::PanelDecoder(const DecoderShape& shape, const KernelSet& kernels, Rounding rounding,
                           DecoderLayout layout, const std::byte* image,
                           std::shared_ptr<const void> owner)
    : m_shape(shape), m_kernels(kernels), m_decoder(*kernels.decoder), m_rounding(rounding),
      m_layout(std::move(layout)), m_image(image), m_owner(std::move(owner))
{
    if (m_shape.rope.kind != RopeKind::None)
        m_frequencies = ropeFrequencies(m_shape.rope, m_shape.headSize);
}

void PanelDecoder::embed(std::span<const ScoredTokens> items)
{
    const std::size_t width = m_shape.width;
    m_offsets.assign(1, 0);
    std::size_t longest = 0;
    for (const auto& item : items) {
        m_offsets.push_back(m_offsets.back() + item.tokens.size() - 1);
        longest = std::max(longest, item.tokens.size() - 1);
    }
    rotation(longest);
    float* row = m_state.reserve(m_offsets.back() * width);
    const auto elementSize = sizeOf(m_layout.wordType);
    const auto head = panelsAt(m_layout.head, m_image);
    for (const auto& item : items) {
        for (std::size_t t = 0; t + 1 < item.tokens.size(); ++t, row += width) {
            const auto token = static_cast<std::size_t>(item.tokens[t]);
            if (m_layout.words == nowhere) {
                readPanelRow(head, m_kernels.panel, token, row);
            } else {
                const std::byte* word = m_image + m_layout.words + token * width * elementSize;
                const auto* half =
                    static_cast<const std::uint16_t*>(static_cast<const void*>(word));
                if (m_layout.wordType == DType::F32)
                    std::memcpy(row, word, width * sizeof(float));
                else
                    (m_layout.wordType == DType::F16 ? m_kernels.fromHalf
                                                     : m_kernels.fromBfloat16)(row, half, width);
                if (m_rounding == Rounding::Bfloat16)
                    m_kernels.round(row, width);
            }
            if (m_layout.positions != nowhere)
                m_kernels.add(row, at(m_layout.positions) + t * width, width);
        }
    }
}

void PanelDecoder::rotation(std::size_t positions)
{
    const auto half = m_frequencies.size();
    for (auto position = half == 0 ? positions : m_cosine.size() / half; position < positions;
         ++position) {
        for (const float frequency : m_frequencies) {
            const float angle = static_cast<float>(position) * frequency;
            m_cosine.push_back(static_cast<float>(std::cos(static_cast<double>(angle))));
            m_sine.push_back(static_cast<float>(std::sin(static_cast<double>(angle))));
        }
    }
}

void PanelDecoder::normalise(const NormPlace& place, const float* input, std::size_t rows,
                             float* output)
{
    const std::size_t width = m_shape.width;
    if (m_shape.norm == NormKind::Rms)
        m_decoder.rmsNorm({.input = input,
                           .inputStride = width,
                           .rows = rows,
                           .width = width,
                           .gain = at(place.gain),
                           .epsilon = static_cast<float>(m_shape.epsilon),
                           .output = output,
                           .outputStride = width,
                           .rounding = m_rounding});
    else
        m_kernels.layerNorm({.input = input,
                             .rows = rows,
                             .width = width,
                             .gain = at(place.gain),
                             .shift = at(place.shift),
                             .epsilon = static_cast<float>(m_shape.epsilon),
                             .output = output,
                             .rounding = m_rounding});
}

void PanelDecoder::multiply(const MatrixPlace& place, const float* input, std::size_t rows,
                            float* output, const float* residual, Activation activation,
                            Rounding rounding)
{
    m_decoder.product(
        {.input = input,
         .inputStride = place.depth,
         .rows = rows,
         .weights = panelsAt(place, m_image),
         .panels = place.panels,
         .bias = at(place.bias),
         .residual = residual,
         .output = output,
         .outputStride = place.columns,
         .columns = place.columns,
         .activation = activation,
         .gate = place.isGated ? Gate::Pairs : Gate::None,
         .rounding = rounding,
         .scratch = m_product.reserve(productScratch(m_decoder, panelsAt(place, m_image)))});
}

/// Queries, keys and values of some rows, normalised and rotated.
void PanelDecoder::attentionInput(const DecoderLayerPlaces& places, std::size_t first,
                                  std::size_t rows)
{
    const std::size_t width = m_shape.width;
    const std::size_t stride = attentionWidth();
    const std::size_t headSize = m_shape.headSize;
    const float* state = m_state.reserve(0) + first * width;
    float* normed = m_normed.reserve(m_decoder.rows * width);
    float* attention = m_attention.reserve(0) + first * stride;
    normalise(places.inputNorm, state, rows, normed);
    multiply(places.attentionInput, normed, rows, attention, nullptr, Activation::None,
             Rounding::None);
    const auto headNorm = [&](std::size_t gain, float* values, std::size_t heads) {
        m_decoder.rmsNorm({.input = values,
                           .inputStride = headSize,
                           .rows = heads,
                           .width = headSize,
                           .gain = at(gain),
                           .epsilon = static_cast<float>(m_shape.epsilon),
                           .output = values,
                           .outputStride = headSize});
    };
    auto item = std::upper_bound(m_offsets.begin(), m_offsets.end(), first) - 1;
    const auto half = m_frequencies.size();
    for (std::size_t row = first; row < first + rows; ++row, attention += stride) {
        while (row >= *(item + 1))
            ++item;
        float* keys = attention + m_shape.queryWidth();
        if (places.queryNorm != nowhere) {
            headNorm(places.queryNorm, attention, m_shape.heads);
            headNorm(places.keyNorm, keys, m_shape.keyHeads);
        }
        if (half != 0) {
            const auto position = row - *item;
            // Queries and keys stand side by side.
            m_decoder.rotate(attention, m_shape.heads + m_shape.keyHeads, headSize,
                             m_cosine.data() + position * half, m_sine.data() + position * half);
        }
        if (m_rounding == Rounding::Bfloat16)
            m_kernels.round(attention, stride);
    }
}

/// Everything after the attention of some rows.
void PanelDecoder::feedForward(const DecoderLayerPlaces& places, std::size_t first,
                               std::size_t rows)
{
    const std::size_t width = m_shape.width;
    float* state = m_state.reserve(0) + first * width;
    const float* context = m_context.reserve(0) + first * m_shape.queryWidth();
    float* normed = m_normed.reserve(m_decoder.rows * width);
    float* inner = m_inner.reserve(m_decoder.rows * m_shape.inner);
    multiply(places.attentionOutput, context, rows, state, state, Activation::None, Rounding::None);
    normalise(places.middleNorm, state, rows, normed);
    multiply(places.up, normed, rows, inner, nullptr, m_shape.activation, m_rounding);
    multiply(places.down, inner, rows, state, state, Activation::None, Rounding::None);
}

void PanelDecoder::layer(std::size_t index)
{
    const auto& places = m_layout.layers[index];
    const auto count = m_offsets.back();
    const std::size_t stride = attentionWidth();
    const std::size_t queryWidth = m_shape.queryWidth();
    float* attention = m_attention.reserve(count * stride);
    float* context = m_context.reserve(count * queryWidth);
    for (std::size_t first = 0; first < count; first += m_decoder.rows)
        attentionInput(places, first, std::min(m_decoder.rows, count - first));
    for (std::size_t item = 0; item + 1 < m_offsets.size(); ++item) {
        const auto first = m_offsets[item];
        const auto tokens = m_offsets[item + 1] - first;
        const float* queries = attention + first * stride;
        m_decoder.attention(
            {.queries = queries,
             .keys = queries + queryWidth,
             .values = queries + queryWidth + m_shape.keyWidth(),
             .stride = stride,
             .tokens = tokens,
             .heads = m_shape.heads,
             .keyHeads = m_shape.keyHeads,
             .headSize = m_shape.headSize,
             .window = m_shape.windows[index],
             .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(m_shape.headSize))),
             .output = context + first * queryWidth,
             .outputStride = queryWidth,
             .scratch =
                 m_scratch.reserve(causalScratch(m_kernels, m_decoder, tokens, m_shape.headSize)),
             .rounding = m_rounding});
    }
    for (std::size_t first = 0; first < count; first += m_decoder.rows)
        feedForward(places, first, std::min(m_decoder.rows, count - first));
}

/// The head and the loss in blocks of rows and of vocabulary.
void PanelDecoder::score(std::span<const ScoredTokens> items, std::vector<TokenLoss>& losses)
{
    const std::size_t width = m_shape.width;
    struct Row {
        std::size_t state;
        std::size_t target;
    };
    std::vector<Row> rows;
    for (std::size_t item = 0; item < items.size(); ++item) {
        const auto& [tokens, scoredFrom] = items[item];
        for (std::size_t p = scoredFrom; p < tokens.size(); ++p)
            rows.push_back({m_offsets[item] + p - 1, static_cast<std::size_t>(tokens[p])});
    }
    const float* state = m_state.reserve(0);
    float* normed = m_normed.reserve(m_decoder.rows * width);
    float* logits = m_logits.reserve(m_decoder.rows * vocabularyBlock);
    const auto panelsOfBlock = vocabularyBlock / m_kernels.panel;
    std::vector<RunningLoss> running;
    for (std::size_t first = 0; first < rows.size(); first += m_decoder.rows) {
        const auto count = std::min(m_decoder.rows, rows.size() - first);
        for (std::size_t r = 0; r < count; ++r)
            std::memcpy(normed + r * width, state + rows[first + r].state * width,
                        width * sizeof(float));
        normalise(m_layout.finalNorm, normed, count, normed);
        running.assign(count, {});
        for (std::size_t panel = 0; panel < m_layout.head.panels; panel += panelsOfBlock) {
            const auto column = panel * m_kernels.panel;
            const auto columns = std::min(vocabularyBlock, m_shape.vocabulary - column);
            m_decoder.product({.input = normed,
                               .inputStride = width,
                               .rows = count,
                               .weights = panelsAt(m_layout.head, m_image),
                               .firstPanel = panel,
                               .panels = std::min(panelsOfBlock, m_layout.head.panels - panel),
                               .output = logits,
                               .outputStride = vocabularyBlock,
                               .columns = columns,
                               .scratch = m_product.reserve(
                                   productScratch(m_decoder, panelsAt(m_layout.head, m_image)))});
            for (std::size_t r = 0; r < count; ++r) {
                const float* own = logits + r * vocabularyBlock;
                auto& loss = running[r];
                float highest = 0.0F;
                float sum = 0.0F;
                m_decoder.expSum(own, columns, highest, sum);
                loss.add(highest, sum);
                if (highest > loss.bestLogit) {
                    loss.bestLogit = highest;
                    loss.best = column + static_cast<std::size_t>(
                                             std::find(own, own + columns, highest) - own);
                }
                const auto target = rows[first + r].target;
                if (target >= column && target < column + columns)
                    loss.target = own[target - column];
            }
        }
        for (std::size_t r = 0; r < count; ++r)
            losses.push_back({running[r].loss(), running[r].best == rows[first + r].target});
    }
}

Status PanelDecoder::run(std::span<const ScoredTokens> items, std::vector<TokenLoss>& losses)
{
    embed(items);
    for (std::size_t index = 0; index < m_layout.layers.size(); ++index)
        layer(index);
    score(items, losses);
    return {};
}

} // namespace muster::model
