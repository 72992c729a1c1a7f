// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/decoder_weights_p.h"
#include "model/encoder_p.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace muster::model {

/// A sequence and the positions in it that are scored: [scoredFrom, tokens.size()).
struct ScoredTokens {
    std::span<const std::int32_t> tokens; ///< the last one is a target only
    std::uint32_t scoredFrom = 1;         ///< at least 1
};

struct TokenLoss {
    float loss = 0.0F;     ///< −ln of the target's soft-max probability, nats
    bool isGreedy = false; ///< the target is the arg-max, the lowest index of equal logits
};

/// Losses of a causal language model. Lives on one thread.
class Decoder {
public:
    virtual ~Decoder() = default;
    Decoder() = default;
    Decoder(const Decoder&) = delete;
    Decoder& operator=(const Decoder&) = delete;

    /// Appends the losses of all scored positions, item after item. Token ids, lengths and scored
    /// positions are within the model's limits (checked by the caller). Error: Internal
    /// (`E-MODEL-090`).
    [[nodiscard]] virtual Status run(std::span<const ScoredTokens> items,
                                     std::vector<TokenLoss>& losses) = 0;
    /// One word for the kernel line, such as `avx2`.
    [[nodiscard]] virtual std::string kernels() const = 0;
};

/// Muster's own kernels over an image of packed weights. The bits of an item depend on the item
/// only, whatever else is in the unit.
class PanelDecoder final : public Decoder {
public:
    /// `image` is layout.size bytes and is kept alive by `owner`.
    PanelDecoder(const DecoderShape& shape, const KernelSet& kernels, Rounding rounding,
                 DecoderLayout layout, const std::byte* image, std::shared_ptr<const void> owner);

    Status run(std::span<const ScoredTokens> items, std::vector<TokenLoss>& losses) override;
    std::string kernels() const override { return m_kernels.name; }

private:
    void embed(std::span<const ScoredTokens> items);
    void rotation(std::size_t positions);
    void layer(std::size_t index);
    void attentionInput(const DecoderLayerPlaces& places, std::size_t first, std::size_t rows);
    void feedForward(const DecoderLayerPlaces& places, std::size_t first, std::size_t rows);
    void score(std::span<const ScoredTokens> items, std::vector<TokenLoss>& losses);
    void normalise(const NormPlace& place, const float* input, std::size_t rows, float* output);
    void multiply(const MatrixPlace& place, const float* input, std::size_t rows, float* output,
                  const float* residual, Activation activation, Rounding rounding);
    [[nodiscard]] const float* at(std::size_t place) const
    {
        return place == nowhere
                   ? nullptr
                   : static_cast<const float*>(static_cast<const void*>(m_image + place));
    }
    [[nodiscard]] std::size_t attentionWidth() const
    {
        return std::size_t{m_shape.queryWidth()} + 2 * std::size_t{m_shape.keyWidth()};
    }

    DecoderShape m_shape;
    const KernelSet& m_kernels;
    const DecoderKernels& m_decoder;
    Rounding m_rounding;
    DecoderLayout m_layout;
    const std::byte* m_image;
    std::shared_ptr<const void> m_owner;
    std::vector<float> m_frequencies;
    std::vector<float> m_cosine; ///< [positions, headSize / 2]
    std::vector<float> m_sine;
    std::vector<std::size_t> m_offsets; ///< where each item's fed tokens start, and the end
    Buffer m_state;                     ///< [T, width]
    Buffer m_attention;                 ///< [T, queries, keys and values]
    Buffer m_context;                   ///< [T, heads · headSize]
    Buffer m_normed;                    ///< [rows of a block, width]
    Buffer m_inner;                     ///< [rows of a block, inner]
    Buffer m_logits;                    ///< [rows of a block, columns of a block]
    Buffer m_product;
    Buffer m_scratch;
};

} // namespace muster::model
