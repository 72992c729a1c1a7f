// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/encoder_weights_p.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

namespace muster::model {

/// Floats at a multiple of 64 bytes that grow and never shrink, so that a rank stops asking for
/// memory after its largest unit.
class Buffer final {
public:
    /// At least `count` floats; what stood in it before may be lost.
    float* reserve(std::size_t count)
    {
        if (count > m_count) {
            m_data.reset(
                static_cast<float*>(::operator new[](count * sizeof(float), std::align_val_t{64})));
            m_count = count;
        }
        return m_data.get();
    }

private:
    struct Free {
        void operator()(float* data) const { ::operator delete[](data, std::align_val_t{64}); }
    };
    std::unique_ptr<float, Free> m_data;
    std::size_t m_count = 0;
};

/// Items one after the other without padding.
struct PackedTokens {
    std::span<const std::int32_t> tokens;   ///< [T]
    std::span<const std::uint8_t> segments; ///< [T], or empty: all zero
    std::span<const std::uint32_t> offsets; ///< [n + 1], where each item starts
};

/// Computes the logits of packed items. Lives on one thread.
class Encoder {
public:
    virtual ~Encoder() = default;
    Encoder() = default;
    Encoder(const Encoder&) = delete;
    Encoder& operator=(const Encoder&) = delete;

    /// `logits`: start and end of each token [T, 2], or the classes of each item [n, outputs] when
    /// the shape is a classifier's. Token ids, segments and lengths are within
    /// the model's tables (checked by the caller). Error: Internal (`E-MODEL-090`).
    [[nodiscard]] virtual Status run(const PackedTokens& packed, float* logits) = 0;
    /// One word for the kernel line, such as `avx2` or `onednn`.
    [[nodiscard]] virtual std::string kernels() const = 0;
};

/// Muster's own kernels over an image of packed weights. The bits of an item depend on the item
/// only, whatever else is in the unit.
class PanelEncoder final : public Encoder {
public:
    /// `image` is layout.size bytes and is kept alive by `owner`.
    PanelEncoder(const EncoderShape& shape, const KernelSet& kernels, Rounding rounding,
                 ImageLayout layout, const std::byte* image, std::shared_ptr<const void> owner);

    Status run(const PackedTokens& packed, float* logits) override;
    std::string kernels() const override { return m_kernels.name; }

private:
    void embed(const PackedTokens& packed);
    void attend(const LayerPlaces& places, std::span<const std::uint32_t> offsets);
    void feedForward(const LayerPlaces& places, std::size_t count);
    void classify(std::size_t items, float* logits);
    [[nodiscard]] const float* at(std::size_t place) const
    {
        return static_cast<const float*>(static_cast<const void*>(m_image + place));
    }

    EncoderShape m_shape;
    const KernelSet& m_kernels;
    Rounding m_rounding;
    ImageLayout m_layout;
    const std::byte* m_image;
    std::shared_ptr<const void> m_owner;
    Buffer m_state;     ///< [T, width]
    Buffer m_attention; ///< [T, 3 · width]
    Buffer m_context;   ///< [T, width]
    Buffer m_inner;     ///< [rows of a block, inner]
    Buffer m_scratch;
};

/// Position of each token in the position table.
[[nodiscard]] std::vector<std::uint32_t> positionsOf(const EncoderShape& shape,
                                                     std::span<const std::int32_t> tokens,
                                                     std::span<const std::uint32_t> offsets);

} // namespace muster::model
