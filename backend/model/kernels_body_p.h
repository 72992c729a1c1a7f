// SPDX-License-Identifier: Apache-2.0
// The inner loops over `Simd`, which the including file defines in its own unnamed namespace for
// one instruction set. Nothing of the standard library with external linkage may be used here: the
// linker would keep one copy of it, compiled for any of the instruction sets.
#pragma once

#include "model/kernels_p.h"

namespace muster::model {
namespace {

using V = Simd::V;
constexpr std::size_t lanes = Simd::lanes;
constexpr std::size_t panelWidth = 2 * lanes;
constexpr std::size_t tileRows = Simd::tileRows;
/// Depth of one pass over a panel: 384 · 16 floats stay in the first-level cache.
constexpr std::size_t depthBlock = 384;
/// Rows whose inputs stay in the second-level cache while all panels pass.
constexpr std::size_t rowBlock = 16 * tileRows;

constexpr std::size_t roundUp(std::size_t value, std::size_t step)
{
    return (value + step - 1) / step * step;
}

/// e^x to about one unit in the last place; x is clamped to [−87.3, 88].
inline V exponential(V x)
{
    x = Simd::min(Simd::max(x, Simd::set(-87.3F)), Simd::set(88.0F));
    const V n = Simd::nearest(Simd::mul(x, Simd::set(1.44269504F)));
    V r = Simd::fnma(n, Simd::set(0.693359375F), x);
    r = Simd::fnma(n, Simd::set(-2.12194440e-4F), r);
    V p = Simd::set(1.0F / 720.0F);
    p = Simd::fma(p, r, Simd::set(1.0F / 120.0F));
    p = Simd::fma(p, r, Simd::set(1.0F / 24.0F));
    p = Simd::fma(p, r, Simd::set(1.0F / 6.0F));
    p = Simd::fma(p, r, Simd::set(0.5F));
    p = Simd::fma(p, r, Simd::set(1.0F));
    p = Simd::fma(p, r, Simd::set(1.0F));
    return Simd::mul(p, Simd::powerOfTwo(n));
}

inline V activated(V x, Activation activation)
{
    const V one = Simd::set(1.0F);
    switch (activation) {
    case Activation::None:
        break;
    case Activation::GeluErf: {
        const V half = Simd::mul(x, Simd::set(0.5F));
        const V z = Simd::mul(Simd::absolute(x), Simd::set(0.707106781F));
        const V t = Simd::div(one, Simd::fma(z, Simd::set(0.3275911F), one));
        V p = Simd::set(1.061405429F);
        p = Simd::fma(p, t, Simd::set(-1.453152027F));
        p = Simd::fma(p, t, Simd::set(1.421413741F));
        p = Simd::fma(p, t, Simd::set(-0.284496736F));
        p = Simd::fma(p, t, Simd::set(0.254829592F));
        p = Simd::mul(p, t);
        const V e = exponential(Simd::fnma(z, z, Simd::zero()));
        const V erf = Simd::fnma(p, e, one);
        // x/2 + |x|/2 · erf(|x|/√2)
        return Simd::fma(Simd::absolute(half), erf, half);
    }
    case Activation::GeluTanh: {
        const V cube = Simd::mul(Simd::mul(x, x), x);
        const V y = Simd::mul(Simd::fma(cube, Simd::set(0.044715F), x), Simd::set(0.797884561F));
        // tanh(y) = 1 − 2 / (e^2y + 1)
        const V e = exponential(Simd::add(y, y));
        const V tanh = Simd::sub(one, Simd::div(Simd::set(2.0F), Simd::add(e, one)));
        const V half = Simd::mul(x, Simd::set(0.5F));
        return Simd::fma(half, tanh, half);
    }
    case Activation::Relu:
        return Simd::max(x, Simd::zero());
    case Activation::Silu:
        return Simd::div(x, Simd::add(one, exponential(Simd::sub(Simd::zero(), x))));
    }
    return x;
}

struct Tile {
    const float* a;
    std::size_t aStride;
    const float* b; ///< [depth, panelWidth]
    std::size_t depth;
    float* c;
    std::size_t cStride;
    const float* bias;     ///< start of the sums, or null: go on from what stands in c
    const float* residual; ///< added at the end, or null
};

/// Rows × one panel; sums in registers, k in rising order.
template <std::size_t rows>
inline __attribute__((always_inline)) void multiply(const Tile& t, bool last, Activation activation,
                                                    Rounding rounding)
{
    V sum[rows][2];
    if (t.bias != nullptr) {
        const V b0 = Simd::load(t.bias);
        const V b1 = Simd::load(t.bias + lanes);
#pragma GCC unroll 16
        for (std::size_t r = 0; r < rows; ++r) {
            sum[r][0] = b0;
            sum[r][1] = b1;
        }
    } else {
#pragma GCC unroll 16
        for (std::size_t r = 0; r < rows; ++r) {
            const float* c = t.c + r * t.cStride;
            sum[r][0] = Simd::load(c);
            sum[r][1] = Simd::load(c + lanes);
        }
    }
    const float* b = t.b;
    const float* a[rows];
#pragma GCC unroll 16
    for (std::size_t r = 0; r < rows; ++r)
        a[r] = t.a + r * t.aStride;
    for (std::size_t k = 0; k < t.depth; ++k) {
        const V b0 = Simd::load(b);
        const V b1 = Simd::load(b + lanes);
        b += panelWidth;
#pragma GCC unroll 16
        for (std::size_t r = 0; r < rows; ++r) {
            const V x = Simd::broadcast(a[r] + k);
            sum[r][0] = Simd::fma(x, b0, sum[r][0]);
            sum[r][1] = Simd::fma(x, b1, sum[r][1]);
        }
    }
#pragma GCC unroll 16
    for (std::size_t r = 0; r < rows; ++r) {
        float* c = t.c + r * t.cStride;
        V x0 = sum[r][0];
        V x1 = sum[r][1];
        if (last) {
            if (t.residual != nullptr) {
                const float* from = t.residual + r * t.cStride;
                x0 = Simd::add(x0, Simd::load(from));
                x1 = Simd::add(x1, Simd::load(from + lanes));
            }
            if (activation != Activation::None) {
                x0 = activated(x0, activation);
                x1 = activated(x1, activation);
            }
            if (rounding == Rounding::Bfloat16) {
                x0 = Simd::rounded(x0);
                x1 = Simd::rounded(x1);
            }
        }
        Simd::store(c, x0);
        Simd::store(c + lanes, x1);
    }
}

template <std::size_t rows>
__attribute__((noinline)) void multiplyRows(const Tile& t, bool last, Activation activation,
                                            Rounding rounding)
{
    multiply<rows>(t, last, activation, rounding);
}

using Multiply = void (*)(const Tile&, bool, Activation, Rounding);

Multiply multiplyFor(std::size_t rows)
{
    static_assert(tileRows <= 12);
    switch (rows) {
    case 1:
        return multiplyRows<1>;
    case 2:
        return multiplyRows<2>;
    case 3:
        return multiplyRows<3>;
    case 4:
        return multiplyRows<4>;
    case 5:
        return multiplyRows<5>;
    case 6:
        return multiplyRows<6>;
    case 7:
        return multiplyRows<7>;
    case 8:
        return multiplyRows<8>;
    case 9:
        return multiplyRows<9>;
    case 10:
        return multiplyRows<10>;
    case 11:
        return multiplyRows<11>;
    default:
        return multiplyRows<12>;
    }
}

void linear(const LinearCall& call)
{
    if (call.depth == 0 || call.columns == 0)
        return;
    for (std::size_t row0 = 0; row0 < call.rows; row0 += rowBlock) {
        const auto rowEnd = row0 + rowBlock < call.rows ? row0 + rowBlock : call.rows;
        for (std::size_t k0 = 0; k0 < call.depth; k0 += depthBlock) {
            const auto depth = k0 + depthBlock < call.depth ? depthBlock : call.depth - k0;
            const bool last = k0 + depth == call.depth;
            for (std::size_t column = 0; column < call.columns; column += panelWidth) {
                const bool whole = column + panelWidth <= call.columns;
                for (std::size_t row = row0; row < rowEnd; row += tileRows) {
                    const auto rows = row + tileRows <= rowEnd ? tileRows : rowEnd - row;
                    Tile tile;
                    tile.a = call.input + row * call.inputStride + k0;
                    tile.aStride = call.inputStride;
                    tile.b = call.panels + column * call.depth + k0 * panelWidth;
                    tile.depth = depth;
                    tile.bias = k0 == 0 ? call.bias + column : nullptr;
                    float* to = call.output + row * call.outputStride + column;
                    const float* residual = call.residual != nullptr
                                                ? call.residual + row * call.outputStride + column
                                                : nullptr;
                    if (whole) {
                        tile.c = to;
                        tile.cStride = call.outputStride;
                        tile.residual = residual;
                        multiplyFor(rows)(tile, last, call.activation, call.rounding);
                        continue;
                    }
                    // The last panel is narrower than the registers: go through a buffer.
                    float buffer[tileRows * panelWidth];
                    float added[tileRows * panelWidth];
                    const auto width = call.columns - column;
                    for (std::size_t r = 0; r < rows; ++r) {
                        for (std::size_t c = 0; c < panelWidth; ++c) {
                            const bool inside = c < width;
                            buffer[r * panelWidth + c] =
                                inside && k0 != 0 ? to[r * call.outputStride + c] : 0.0F;
                            added[r * panelWidth + c] = inside && residual != nullptr
                                                            ? residual[r * call.outputStride + c]
                                                            : 0.0F;
                        }
                    }
                    tile.c = buffer;
                    tile.cStride = panelWidth;
                    tile.residual = residual != nullptr ? added : nullptr;
                    multiplyFor(rows)(tile, last, call.activation, call.rounding);
                    for (std::size_t r = 0; r < rows; ++r)
                        for (std::size_t c = 0; c < width; ++c)
                            to[r * call.outputStride + c] = buffer[r * panelWidth + c];
                }
            }
        }
    }
}

/// Turns one row of scores into unnormalised probabilities; returns 1 / Σ.
float softmaxRow(float* row, std::size_t tokens, std::size_t padded, float scale)
{
    for (std::size_t i = tokens; i < padded; ++i)
        row[i] = -3.0e38F;
    V highest = Simd::load(row);
    for (std::size_t i = lanes; i < padded; i += lanes)
        highest = Simd::max(highest, Simd::load(row + i));
    const V offset = Simd::set(-Simd::largest(highest) * scale);
    const V factor = Simd::set(scale);
    V sum = Simd::zero();
    for (std::size_t i = 0; i < padded; i += lanes) {
        const V e = exponential(Simd::fma(Simd::load(row + i), factor, offset));
        Simd::store(row + i, e);
        if (i + lanes <= tokens)
            sum = Simd::add(sum, e);
    }
    float total = Simd::sum(sum);
    for (std::size_t i = tokens / lanes * lanes; i < tokens; ++i)
        total += row[i];
    for (std::size_t i = tokens; i < padded; ++i)
        row[i] = 0.0F;
    return 1.0F / total;
}

void attention(const AttentionCall& call)
{
    const auto width = call.heads * call.headSize;
    const auto stride = 3 * width;
    const auto tokens = call.tokens;
    const auto padded = roundUp(tokens, panelWidth);
    const auto valueWidth = roundUp(call.headSize, panelWidth);
    float* keys = call.scratch;                    // [padded / panel][headSize][panel]
    float* values = keys + padded * call.headSize; // [valueWidth / panel][tokens][panel]
    float* scores = values + tokens * valueWidth;  // [tile][padded]
    float* narrow = scores + tileRows * padded;    // [tile][valueWidth]
    static const float zeros[panelWidth] = {};
    for (std::size_t head = 0; head < call.heads; ++head) {
        const float* query = call.qkv + head * call.headSize;
        const float* key = query + width;
        const float* value = key + width;
        for (std::size_t token = 0; token < padded; ++token) {
            float* to = keys + token / panelWidth * panelWidth * call.headSize + token % panelWidth;
            if (token < tokens) {
                const float* from = key + token * stride;
                for (std::size_t k = 0; k < call.headSize; ++k)
                    to[k * panelWidth] = from[k];
            } else {
                for (std::size_t k = 0; k < call.headSize; ++k)
                    to[k * panelWidth] = 0.0F;
            }
        }
        for (std::size_t column = 0; column < valueWidth; column += panelWidth) {
            float* to = values + column * tokens;
            const auto count =
                column + panelWidth <= call.headSize ? panelWidth : call.headSize - column;
            for (std::size_t token = 0; token < tokens; ++token, to += panelWidth) {
                const float* from = value + token * stride + column;
                for (std::size_t k = 0; k < panelWidth; ++k)
                    to[k] = k < count ? from[k] : 0.0F;
            }
        }
        for (std::size_t row = 0; row < tokens; row += tileRows) {
            const auto rows = row + tileRows <= tokens ? tileRows : tokens - row;
            const auto product = multiplyFor(rows);
            for (std::size_t column = 0; column < padded; column += panelWidth) {
                product(Tile{query + row * stride, stride, keys + column * call.headSize,
                             call.headSize, scores + column, padded, zeros, nullptr},
                        false, Activation::None, Rounding::None);
            }
            float scale[tileRows];
            for (std::size_t r = 0; r < rows; ++r)
                scale[r] = softmaxRow(scores + r * padded, tokens, padded, call.scale);
            for (std::size_t column = 0; column < valueWidth; column += panelWidth) {
                product(Tile{scores, padded, values + column * tokens, tokens, narrow + column,
                             valueWidth, zeros, nullptr},
                        false, Activation::None, Rounding::None);
            }
            for (std::size_t r = 0; r < rows; ++r) {
                float* from = narrow + r * valueWidth;
                for (std::size_t c = 0; c < valueWidth; c += lanes) {
                    V x = Simd::mul(Simd::load(from + c), Simd::set(scale[r]));
                    if (call.rounding == Rounding::Bfloat16)
                        x = Simd::rounded(x);
                    Simd::store(from + c, x);
                }
                float* to = call.output + (row + r) * width + head * call.headSize;
                for (std::size_t c = 0; c < call.headSize; ++c)
                    to[c] = from[c];
            }
        }
    }
}

void layerNorm(const LayerNormCall& call)
{
    const auto whole = call.width / lanes * lanes;
    const float count = static_cast<float>(call.width);
    for (std::size_t row = 0; row < call.rows; ++row) {
        const float* x = call.input + row * call.width;
        float* y = call.output + row * call.width;
        V sum = Simd::zero();
        for (std::size_t i = 0; i < whole; i += lanes)
            sum = Simd::add(sum, Simd::load(x + i));
        float total = Simd::sum(sum);
        for (std::size_t i = whole; i < call.width; ++i)
            total += x[i];
        const float mean = total / count;
        V squares = Simd::zero();
        for (std::size_t i = 0; i < whole; i += lanes) {
            const V d = Simd::sub(Simd::load(x + i), Simd::set(mean));
            squares = Simd::fma(d, d, squares);
        }
        float variance = Simd::sum(squares);
        for (std::size_t i = whole; i < call.width; ++i)
            variance += (x[i] - mean) * (x[i] - mean);
        const float factor = 1.0F / __builtin_sqrtf(variance / count + call.epsilon);
        for (std::size_t i = 0; i < whole; i += lanes) {
            const V d = Simd::mul(Simd::sub(Simd::load(x + i), Simd::set(mean)), Simd::set(factor));
            V z = Simd::fma(d, Simd::load(call.gain + i), Simd::load(call.shift + i));
            if (call.rounding == Rounding::Bfloat16)
                z = Simd::rounded(z);
            Simd::store(y + i, z);
        }
        if (whole < call.width) {
            float rest[lanes] = {};
            for (std::size_t i = whole; i < call.width; ++i)
                rest[i - whole] = (x[i] - mean) * factor * call.gain[i] + call.shift[i];
            if (call.rounding == Rounding::Bfloat16)
                Simd::store(rest, Simd::rounded(Simd::load(rest)));
            for (std::size_t i = whole; i < call.width; ++i)
                y[i] = rest[i - whole];
        }
    }
}

void add(float* to, const float* from, std::size_t count)
{
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        Simd::store(to + i, Simd::add(Simd::load(to + i), Simd::load(from + i)));
    for (; i < count; ++i)
        to[i] += from[i];
}

/// Applies f to whole registers; the rest goes through a register that is filled up with 0.
template <typename F>
inline void each(float* values, std::size_t count, F f)
{
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        Simd::store(values + i, f(Simd::load(values + i)));
    if (i < count) {
        float rest[lanes] = {};
        for (std::size_t k = i; k < count; ++k)
            rest[k - i] = values[k];
        Simd::store(rest, f(Simd::load(rest)));
        for (std::size_t k = i; k < count; ++k)
            values[k] = rest[k - i];
    }
}

void roundAll(float* values, std::size_t count)
{
    each(values, count, [](V x) { return Simd::rounded(x); });
}

void activate(float* values, std::size_t count, Activation activation)
{
    each(values, count, [activation](V x) { return activated(x, activation); });
}

void fromHalf(float* to, const std::uint16_t* from, std::size_t count)
{
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes)
        Simd::store(to + i, Simd::loadHalf(from + i));
    if (i < count) {
        std::uint16_t rest[lanes] = {};
        float wide[lanes];
        for (std::size_t k = i; k < count; ++k)
            rest[k - i] = from[k];
        Simd::store(wide, Simd::loadHalf(rest));
        for (std::size_t k = i; k < count; ++k)
            to[k] = wide[k - i];
    }
}

void fromBfloat16(float* to, const std::uint16_t* from, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i)
        to[i] = __builtin_bit_cast(float, static_cast<std::uint32_t>(from[i]) << 16U);
}

} // namespace
} // namespace muster::model
