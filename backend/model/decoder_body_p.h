// SPDX-License-Identifier: Apache-2.0
// The inner loops of decoders, over what kernels_body_p.h defines for one instruction set. The same
// rule holds: nothing of the standard library with external linkage.
#pragma once

#include "model/decoder_kernels_p.h"
#include "model/kernels_body_p.h"

namespace muster::model {
namespace {

/// Rows of a block: a part of their inputs stays in the second-level cache while panels pass.
constexpr std::size_t productRows = 16 * tileRows;
/// Panels of a chunk: their sums stay in the second-level cache between passes over the depth.
constexpr std::size_t productPanels = 24;
constexpr std::size_t attentionRows = 4 * tileRows;
constexpr std::size_t attentionDepth = 256;
constexpr std::size_t scratchFloats =
    productRows * productPanels * panelWidth + depthBlock * panelWidth;

struct Strip {
    const float* a;
    std::size_t aStride;
    const float* b; ///< [depth, panelWidth]
    std::size_t depth;
    float* c; ///< sums
    std::size_t cStride;
    bool isFirst; ///< start from 0, not from what stands in c
};

/// Rows × one panel; sums in registers, k in rising order.
template <std::size_t rows>
__attribute__((noinline)) void strip(const Strip& s)
{
    V sum[rows][2];
#pragma GCC unroll 16
    for (std::size_t r = 0; r < rows; ++r) {
        const float* c = s.c + r * s.cStride;
        sum[r][0] = s.isFirst ? Simd::zero() : Simd::load(c);
        sum[r][1] = s.isFirst ? Simd::zero() : Simd::load(c + lanes);
    }
    const float* b = s.b;
    const float* a[rows];
#pragma GCC unroll 16
    for (std::size_t r = 0; r < rows; ++r)
        a[r] = s.a + r * s.aStride;
    for (std::size_t k = 0; k < s.depth; ++k) {
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
        float* c = s.c + r * s.cStride;
        Simd::store(c, sum[r][0]);
        Simd::store(c + lanes, sum[r][1]);
    }
}

using StripFunction = void (*)(const Strip&);

StripFunction stripFor(std::size_t rows)
{
    static_assert(tileRows <= 6);
    switch (rows) {
    case 1:
        return strip<1>;
    case 2:
        return strip<2>;
    case 3:
        return strip<3>;
    case 4:
        return strip<4>;
    case 5:
        return strip<5>;
    default:
        return strip<6>;
    }
}

const float* floatsAt(const std::byte* place)
{
    return static_cast<const float*>(static_cast<const void*>(place));
}

const std::uint16_t* halvesAt(const std::byte* place)
{
    return static_cast<const std::uint16_t*>(static_cast<const void*>(place));
}

/// Depth first … first + depth of one panel as float32 [depth, panelWidth], in place when they are
/// float32 already.
const float* unpacked(const Panels& w, std::size_t panel, std::size_t first, std::size_t depth,
                      float* buffer)
{
    const auto row = panel * w.depth + first;
    float* to = buffer;
    switch (w.type) {
    case PanelType::Float32:
        return floatsAt(w.elements) + row * panelWidth;
    case PanelType::Bfloat16: {
        const std::uint16_t* from = halvesAt(w.elements) + row * panelWidth;
        for (std::size_t i = 0; i < depth * panelWidth; i += lanes)
            Simd::store(to + i, Simd::loadBfloat16(from + i));
        break;
    }
    case PanelType::Int8: {
        const std::byte* from = w.elements + row * panelWidth;
        const float* scales = floatsAt(w.scales) + panel * panelWidth;
        const V s0 = Simd::load(scales);
        const V s1 = Simd::load(scales + lanes);
        for (std::size_t k = 0; k < depth; ++k, from += panelWidth, to += panelWidth) {
            Simd::store(to, Simd::mul(Simd::loadInt8(from), s0));
            Simd::store(to + lanes, Simd::mul(Simd::loadInt8(from + lanes), s1));
        }
        break;
    }
    case PanelType::Int4: {
        const std::byte* from = w.elements + row * lanes;
        const auto groups = (w.depth + w.group - 1) / w.group;
        std::size_t k = first;
        const auto end = first + depth;
        while (k < end) {
            const auto group = k / w.group;
            const auto stop = (group + 1) * w.group < end ? (group + 1) * w.group : end;
            const std::uint16_t* scales =
                halvesAt(w.scales) + (panel * groups + group) * 2 * panelWidth;
            const V s0 = Simd::loadBfloat16(scales);
            const V s1 = Simd::loadBfloat16(scales + lanes);
            const V z0 = Simd::loadBfloat16(scales + panelWidth);
            const V z1 = Simd::loadBfloat16(scales + panelWidth + lanes);
            for (; k < stop; ++k, from += lanes, to += panelWidth) {
                V low;
                V high;
                Simd::loadNibbles(from, low, high);
                Simd::store(to, Simd::fma(low, s0, z0));
                Simd::store(to + lanes, Simd::fma(high, s1, z1));
            }
        }
        break;
    }
    }
    return buffer;
}

/// Writes the part of a register that lies inside the output.
inline void storePart(float* to, V x, std::size_t count)
{
    if (count >= lanes) {
        Simd::store(to, x);
        return;
    }
    float rest[lanes];
    Simd::store(rest, x);
    for (std::size_t i = 0; i < count; ++i)
        to[i] = rest[i];
}

inline V loadPart(const float* from, std::size_t count)
{
    if (count >= lanes)
        return Simd::load(from);
    float rest[lanes] = {};
    for (std::size_t i = 0; i < count; ++i)
        rest[i] = from[i];
    return Simd::load(rest);
}

/// What follows the sums of rows × one panel.
void finishPanel(const ProductCall& call, std::size_t panel, std::size_t row0, std::size_t rows,
                 const float* sums)
{
    const bool isRounded = call.rounding == Rounding::Bfloat16;
    V b0 = Simd::zero();
    V b1 = Simd::zero();
    if (call.bias != nullptr) {
        b0 = Simd::load(call.bias + panel * panelWidth);
        b1 = Simd::load(call.bias + panel * panelWidth + lanes);
    }
    const auto width = call.gate == Gate::Pairs ? lanes : panelWidth;
    const auto column = panel * width;
    const auto left = call.columns > column ? call.columns - column : 0;
    const auto count0 = left < lanes ? left : lanes;
    const auto count1 = left - count0 < lanes ? left - count0 : lanes;
    for (std::size_t r = 0; r < rows; ++r, sums += panelWidth) {
        V x0 = Simd::add(Simd::load(sums), b0);
        V x1 = Simd::add(Simd::load(sums + lanes), b1);
        const auto at = (row0 + r) * call.outputStride + column;
        if (call.gate == Gate::Pairs) {
            x0 = Simd::mul(activated(x0, call.activation), x1);
        } else if (call.activation != Activation::None) {
            x0 = activated(x0, call.activation);
            x1 = activated(x1, call.activation);
        }
        if (call.residual != nullptr)
            x0 = Simd::add(x0, loadPart(call.residual + at, count0));
        if (isRounded)
            x0 = Simd::rounded(x0);
        storePart(call.output + at, x0, count0);
        if (call.gate == Gate::Pairs || count1 == 0)
            continue;
        if (call.residual != nullptr)
            x1 = Simd::add(x1, loadPart(call.residual + at + lanes, count1));
        if (isRounded)
            x1 = Simd::rounded(x1);
        storePart(call.output + at + lanes, x1, count1);
    }
}

void product(const ProductCall& call)
{
    const auto depth = call.weights.depth;
    // Passes of about the same depth.
    const auto passes = (depth + depthBlock - 1) / depthBlock;
    const auto pass = passes == 0 ? 1 : (depth + passes - 1) / passes;
    float* buffer = call.scratch;
    float* sums = call.scratch + depthBlock * panelWidth; // [panels of a chunk][rows][panelWidth]
    for (std::size_t row0 = 0; row0 < call.rows; row0 += productRows) {
        const auto rows = row0 + productRows < call.rows ? productRows : call.rows - row0;
        for (std::size_t chunk = 0; chunk < call.panels; chunk += productPanels) {
            const auto chunkEnd =
                chunk + productPanels < call.panels ? chunk + productPanels : call.panels;
            for (std::size_t k0 = 0; k0 < depth; k0 += pass) {
                const auto count = k0 + pass < depth ? pass : depth - k0;
                for (std::size_t panel = chunk; panel < chunkEnd; ++panel) {
                    const float* b =
                        unpacked(call.weights, call.firstPanel + panel, k0, count, buffer);
                    float* c = sums + (panel - chunk) * productRows * panelWidth;
                    const float* a = call.input + row0 * call.inputStride + k0;
                    std::size_t row = 0;
                    for (; row + tileRows <= rows; row += tileRows)
                        strip<tileRows>({a + row * call.inputStride, call.inputStride, b, count,
                                         c + row * panelWidth, panelWidth, k0 == 0});
                    if (row < rows)
                        stripFor(rows - row)({a + row * call.inputStride, call.inputStride, b,
                                              count, c + row * panelWidth, panelWidth, k0 == 0});
                    if (k0 + count == depth)
                        finishPanel(call, panel, row0, rows, c);
                }
            }
        }
    }
}

/// Turns scores low … high − 1 of a row of `padded` into unnormalised probabilities and the others
/// into 0; returns 1 / Σ. Which register adds which key depends on its place only.
float maskedSoftmax(float* row, std::size_t low, std::size_t high, std::size_t padded, float scale)
{
    for (std::size_t i = 0; i < low; ++i)
        row[i] = -3.0e38F;
    for (std::size_t i = high; i < padded; ++i)
        row[i] = -3.0e38F;
    V highest = Simd::load(row);
    for (std::size_t i = lanes; i < padded; i += lanes)
        highest = Simd::max(highest, Simd::load(row + i));
    const V offset = Simd::set(-Simd::largest(highest) * scale);
    const V factor = Simd::set(scale);
    for (std::size_t i = 0; i < padded; i += lanes)
        Simd::store(row + i, exponential(Simd::fma(Simd::load(row + i), factor, offset)));
    for (std::size_t i = 0; i < low; ++i)
        row[i] = 0.0F;
    for (std::size_t i = high; i < padded; ++i)
        row[i] = 0.0F;
    V sum = Simd::zero();
    for (std::size_t i = 0; i < padded; i += lanes)
        sum = Simd::add(sum, Simd::load(row + i));
    return 1.0F / Simd::sum(sum);
}

/// Keys as panels [padded / panel][headSize][panel] and values as [width / panel][padded][panel].
void packHead(const CausalAttentionCall& call, const float* key, const float* value, float* keys,
              float* values, std::size_t padded)
{
    for (std::size_t token = 0; token < padded; ++token) {
        float* to = keys + token / panelWidth * panelWidth * call.headSize + token % panelWidth;
        const float* from = key + token * call.stride;
        for (std::size_t k = 0; k < call.headSize; ++k)
            to[k * panelWidth] = token < call.tokens ? from[k] : 0.0F;
    }
    for (std::size_t column = 0; column < call.headSize; column += panelWidth) {
        float* to = values + column * padded;
        const auto count =
            column + panelWidth <= call.headSize ? panelWidth : call.headSize - column;
        for (std::size_t token = 0; token < call.tokens; ++token, to += panelWidth) {
            const float* from = value + token * call.stride + column;
            for (std::size_t k = 0; k < panelWidth; ++k)
                to[k] = k < count ? from[k] : 0.0F;
        }
    }
}

struct PackedHead {
    const float* keys;
    const float* values;
    std::size_t padded;
    float* scores; ///< [attentionRows][padded]
    float* sums;   ///< [attentionRows][width]
};

/// Queries first … first + rows of one head.
void attendRows(const CausalAttentionCall& call, const PackedHead& head, std::size_t query,
                std::size_t first, std::size_t rows)
{
    const auto lowOf = [&](std::size_t token) {
        return call.window != 0 && token + 1 > call.window ? token + 1 - call.window : 0;
    };
    // All but the last panels have no masked key; the keys before the window are not touched.
    const auto start = lowOf(first) / panelWidth * panelWidth;
    const auto width = roundUp(call.headSize, panelWidth);
    const auto stride = head.padded;
    const float* queries = call.queries + first * call.stride + query * call.headSize;
    const auto last = roundUp(first + rows, panelWidth);
    for (std::size_t column = start; column < last; column += panelWidth) {
        for (std::size_t tile = 0; tile < rows; tile += tileRows) {
            const auto count = tile + tileRows < rows ? tileRows : rows - tile;
            if (column >= first + tile + count)
                continue;
            stripFor(count)({queries + tile * call.stride, call.stride,
                             head.keys + column * call.headSize, call.headSize,
                             head.scores + tile * stride + column - start, stride, true});
        }
    }
    float scales[attentionRows];
    for (std::size_t r = 0; r < rows; ++r) {
        const auto tileEnd =
            (r / tileRows + 1) * tileRows < rows ? (r / tileRows + 1) * tileRows : rows;
        const auto token = first + r;
        scales[r] = maskedSoftmax(head.scores + r * stride, lowOf(token) - start, token + 1 - start,
                                  roundUp(first + tileEnd, panelWidth) - start, call.scale);
    }
    for (std::size_t column = 0; column < width; column += panelWidth) {
        for (std::size_t k0 = start; k0 < first + rows; k0 += attentionDepth) {
            for (std::size_t tile = 0; tile < rows; tile += tileRows) {
                const auto count = tile + tileRows < rows ? tileRows : rows - tile;
                const auto end = first + tile + count;
                if (k0 >= end)
                    continue;
                const auto depth = end - k0 < attentionDepth ? end - k0 : attentionDepth;
                stripFor(count)({head.scores + tile * stride + k0 - start, stride,
                                 head.values + column * head.padded + k0 * panelWidth, depth,
                                 head.sums + tile * width + column, width, k0 == start});
            }
        }
    }
    for (std::size_t r = 0; r < rows; ++r) {
        const V scale = Simd::set(scales[r]);
        float* to = call.output + (first + r) * call.outputStride + query * call.headSize;
        for (std::size_t c = 0; c < call.headSize; c += lanes) {
            V x = Simd::mul(Simd::load(head.sums + r * width + c), scale);
            if (call.rounding == Rounding::Bfloat16)
                x = Simd::rounded(x);
            storePart(to + c, x, call.headSize - c);
        }
    }
}

void causalAttention(const CausalAttentionCall& call)
{
    const auto padded = roundUp(call.tokens, panelWidth);
    const auto width = roundUp(call.headSize, panelWidth);
    float* keys = call.scratch;
    float* values = keys + padded * call.headSize;
    float* scores = values + padded * width;
    float* sums = scores + attentionRows * padded;
    const auto share = call.heads / call.keyHeads;
    for (std::size_t keyHead = 0; keyHead < call.keyHeads; ++keyHead) {
        packHead(call, call.keys + keyHead * call.headSize, call.values + keyHead * call.headSize,
                 keys, values, padded);
        const PackedHead head{keys, values, padded, scores, sums};
        for (std::size_t first = 0; first < call.tokens; first += attentionRows) {
            const auto rows =
                first + attentionRows < call.tokens ? attentionRows : call.tokens - first;
            for (std::size_t i = 0; i < share; ++i)
                attendRows(call, head, keyHead * share + i, first, rows);
        }
    }
}

void rmsNorm(const RmsNormCall& call)
{
    const auto whole = call.width / lanes * lanes;
    for (std::size_t row = 0; row < call.rows; ++row) {
        const float* x = call.input + row * call.inputStride;
        float* y = call.output + row * call.outputStride;
        V squares = Simd::zero();
        for (std::size_t i = 0; i < whole; i += lanes) {
            const V v = Simd::load(x + i);
            squares = Simd::fma(v, v, squares);
        }
        float total = Simd::sum(squares);
        for (std::size_t i = whole; i < call.width; ++i)
            total += x[i] * x[i];
        const float factor =
            1.0F / __builtin_sqrtf(total / static_cast<float>(call.width) + call.epsilon);
        for (std::size_t i = 0; i < call.width; i += lanes) {
            const auto count = call.width - i;
            V v = Simd::mul(loadPart(x + i, count), Simd::set(factor));
            v = Simd::mul(v, loadPart(call.gain + i, count));
            if (call.rounding == Rounding::Bfloat16)
                v = Simd::rounded(v);
            storePart(y + i, v, count);
        }
    }
}

void rotate(float* values, std::size_t heads, std::size_t headSize, const float* cosine,
            const float* sine)
{
    const auto half = headSize / 2;
    for (std::size_t head = 0; head < heads; ++head) {
        float* one = values + head * headSize;
        float* two = one + half;
        for (std::size_t i = 0; i < half; i += lanes) {
            const auto count = half - i;
            const V c = loadPart(cosine + i, count);
            const V s = loadPart(sine + i, count);
            const V x = loadPart(one + i, count);
            const V y = loadPart(two + i, count);
            storePart(one + i, Simd::fnma(y, s, Simd::mul(x, c)), count);
            storePart(two + i, Simd::fma(x, s, Simd::mul(y, c)), count);
        }
    }
}

void expSum(const float* values, std::size_t count, float& largest, float& sum)
{
    const auto whole = count / lanes * lanes;
    float highest = values[0];
    if (whole != 0) {
        V high = Simd::load(values);
        for (std::size_t i = lanes; i < whole; i += lanes)
            high = Simd::max(high, Simd::load(values + i));
        highest = Simd::largest(high);
    }
    for (std::size_t i = whole; i < count; ++i)
        highest = values[i] > highest ? values[i] : highest;
    const V offset = Simd::set(highest);
    V total = Simd::zero();
    for (std::size_t i = 0; i < whole; i += lanes)
        total = Simd::add(total, exponential(Simd::sub(Simd::load(values + i), offset)));
    float all = Simd::sum(total);
    if (whole < count) {
        float rest[lanes];
        Simd::store(rest, exponential(Simd::sub(loadPart(values + whole, count - whole), offset)));
        for (std::size_t i = whole; i < count; ++i)
            all += rest[i - whole];
    }
    largest = highest;
    sum = all;
}

constexpr DecoderKernels decoderKernels{scratchFloats,   productRows, attentionRows, product,
                                        causalAttention, rmsNorm,     rotate,        expSum};

constexpr KernelSet kernelSet{Simd::name, panelWidth, tileRows,     linear,
                              attention,  layerNorm,  add,          roundAll,
                              activate,   fromHalf,   fromBfloat16, &decoderKernels};

} // namespace
} // namespace muster::model
