// SPDX-License-Identifier: Apache-2.0
// The inner loops of decoders, over what kernels_body_p.h defines for one instruction set. The same
// rule holds: nothing of the standard library with external linkage.
#pragma once

#include "model/decoder_kernels_p.h"
#include "model/kernels_body_p.h"

namespace muster::model {
namespace {

/// Rows of a block: a part of their inputs stays in the second-level cache while panels pass.
constexpr std::size_t productRows = 32 * tileRows;
/// Panels of a chunk: their sums stay in the second-level cache between passes over the depth.
constexpr std::size_t productPanels = 12;
/// Depth of one pass over a panel.
constexpr std::size_t productDepth = 320;
constexpr std::size_t attentionRows = 4 * tileRows;
constexpr std::size_t attentionDepth = 256;
constexpr std::size_t scratchFloats =
    productRows * productPanels * panelWidth + productDepth * panelWidth;

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

/// As Strip for pairs of 16-bit integers; depth counts pairs.
struct IntegerStrip {
    const std::int16_t* a; ///< [rows, 2 · depth]
    std::size_t aStride;
    const std::int16_t* b; ///< [depth, panelWidth, 2]
    std::size_t depth;
    std::int32_t* c; ///< [rows, panelWidth]
    bool isFirst;
};

template <std::size_t rows>
__attribute__((noinline)) void integerStrip(const IntegerStrip& s)
{
    Simd::Sums sum[rows][2];
#pragma GCC unroll 16
    for (std::size_t r = 0; r < rows; ++r) {
        const std::int32_t* c = s.c + r * panelWidth;
        sum[r][0] = s.isFirst ? Simd::zeroSums() : Simd::loadSums(c);
        sum[r][1] = s.isFirst ? Simd::zeroSums() : Simd::loadSums(c + lanes);
    }
    const std::int16_t* b = s.b;
    const std::int16_t* a[rows];
#pragma GCC unroll 16
    for (std::size_t r = 0; r < rows; ++r)
        a[r] = s.a + r * s.aStride;
    for (std::size_t k = 0; k < s.depth; ++k) {
        const Simd::Pairs b0 = Simd::loadPairs(b);
        const Simd::Pairs b1 = Simd::loadPairs(b + panelWidth);
        b += 2 * panelWidth;
#pragma GCC unroll 16
        for (std::size_t r = 0; r < rows; ++r) {
            const Simd::Pairs x = Simd::broadcastPair(a[r] + 2 * k);
            sum[r][0] = Simd::addProducts(sum[r][0], x, b0);
            sum[r][1] = Simd::addProducts(sum[r][1], x, b1);
        }
    }
#pragma GCC unroll 16
    for (std::size_t r = 0; r < rows; ++r) {
        std::int32_t* c = s.c + r * panelWidth;
        Simd::storeSums(c, sum[r][0]);
        Simd::storeSums(c + lanes, sum[r][1]);
    }
}

using IntegerStripFunction = void (*)(const IntegerStrip&);

IntegerStripFunction integerStripFor(std::size_t rows)
{
    switch (rows) {
    case 1:
        return integerStrip<1>;
    case 2:
        return integerStrip<2>;
    case 3:
        return integerStrip<3>;
    case 4:
        return integerStrip<4>;
    case 5:
        return integerStrip<5>;
    default:
        return integerStrip<6>;
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
    case PanelType::Int8Pairs:
        break; // not multiplied as floats
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

/// Rounds a row to −127 … 127 times the scale that is returned, and fills up to a whole pair. A row
/// with a number that is not finite has a scale that is none.
float quantiseRow(const float* from, std::size_t depth, std::int16_t* to)
{
    V high = Simd::zero();
    V poison = Simd::zero();
    const auto each = [&](auto f) {
        for (std::size_t k = 0; k < depth; k += lanes)
            f(k, loadPart(from + k, depth - k));
    };
    each([&](std::size_t, V x) {
        high = Simd::max(high, Simd::absolute(x));
        poison = Simd::fma(x, Simd::zero(), poison);
    });
    constexpr float steps = 127.0F;
    const float top = Simd::largest(high);
    const V factor = Simd::set(top > 0.0F ? steps / top : 0.0F);
    each([&](std::size_t k, V x) {
        std::int16_t rest[lanes];
        const auto count = depth - k < lanes ? depth - k : lanes;
        Simd::storeInt16(rest, Simd::nearest(Simd::mul(x, factor)));
        for (std::size_t i = 0; i < count; ++i)
            to[k + i] = rest[i];
    });
    if (depth % 2 != 0)
        to[depth] = 0;
    return top / steps + Simd::sum(poison);
}

/// Turns the integer sums of rows × one panel into float32, in place.
void scaleSums(const std::int32_t* sums, std::size_t rows, const float* rowScales,
               const float* columnScales, float* to)
{
    const V s0 = Simd::load(columnScales);
    const V s1 = Simd::load(columnScales + lanes);
    for (std::size_t r = 0; r < rows; ++r, sums += panelWidth, to += panelWidth) {
        const V scale = Simd::set(rowScales[r]);
        const V x0 = Simd::toFloats(Simd::loadSums(sums));
        const V x1 = Simd::toFloats(Simd::loadSums(sums + lanes));
        Simd::store(to, Simd::mul(x0, Simd::mul(scale, s0)));
        Simd::store(to + lanes, Simd::mul(x1, Simd::mul(scale, s1)));
    }
}

/// product() with weights and inputs of 8 bits.
void integerProduct(const ProductCall& call)
{
    const auto depth = call.weights.depth;
    const auto pairs = (depth + 1) / 2;
    // The scratch memory holds integers here: chars may stand for everything.
    char* place = static_cast<char*>(static_cast<void*>(call.scratch));
    float* floats = call.scratch;
    auto* widened = static_cast<std::int16_t*>(static_cast<void*>(place));
    char* after = place + productDepth * panelWidth * sizeof(float);
    auto* sums = static_cast<std::int32_t*>(static_cast<void*>(after));
    floats =
        static_cast<float*>(static_cast<void*>(after + productRows * panelWidth * sizeof(float)));
    char* tail = place + scratchFloats * sizeof(float);
    auto* scales = static_cast<float*>(static_cast<void*>(tail));
    auto* inputs =
        static_cast<std::int16_t*>(static_cast<void*>(tail + productRows * sizeof(float)));
    for (std::size_t row0 = 0; row0 < call.rows; row0 += productRows) {
        const auto rows = row0 + productRows < call.rows ? productRows : call.rows - row0;
        for (std::size_t r = 0; r < rows; ++r)
            scales[r] = quantiseRow(call.input + (row0 + r) * call.inputStride, depth,
                                    inputs + r * 2 * pairs);
        for (std::size_t panel = 0; panel < call.panels; ++panel) {
            const auto at = call.firstPanel + panel;
            for (std::size_t k0 = 0; k0 < pairs; k0 += productDepth) {
                const auto count = k0 + productDepth < pairs ? productDepth : pairs - k0;
                const std::byte* from = call.weights.elements + (at * pairs + k0) * 2 * panelWidth;
                for (std::size_t i = 0; i < count * 2 * panelWidth; i += panelWidth)
                    Simd::widen(from + i, widened + i);
                for (std::size_t row = 0; row < rows; row += tileRows) {
                    const auto tile = row + tileRows < rows ? tileRows : rows - row;
                    integerStripFor(tile)({inputs + row * 2 * pairs + 2 * k0, 2 * pairs, widened,
                                           count, sums + row * panelWidth, k0 == 0});
                }
            }
            scaleSums(sums, rows, scales, floatsAt(call.weights.scales) + at * panelWidth, floats);
            finishPanel(call, panel, row0, rows, floats);
        }
    }
}

void product(const ProductCall& call)
{
    if (call.weights.type == PanelType::Int8Pairs)
        return integerProduct(call);
    const auto depth = call.weights.depth;
    // Passes of about the same depth.
    const auto passes = (depth + productDepth - 1) / productDepth;
    const auto pass = passes == 0 ? 1 : (depth + passes - 1) / passes;
    float* buffer = call.scratch;
    float* sums = call.scratch + productDepth * panelWidth; // [panels of a chunk][rows][panelWidth]
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

/// Whether every packed value is finite.
bool areFinite(const CausalAttentionCall& call, const float* values, std::size_t padded)
{
    V poison = Simd::zero();
    for (std::size_t column = 0; column < call.headSize; column += panelWidth) {
        const float* from = values + column * padded;
        for (std::size_t i = 0; i < call.tokens * panelWidth; i += lanes)
            poison = Simd::fma(Simd::load(from + i), Simd::zero(), poison);
    }
    return Simd::sum(poison) == 0.0F;
}

struct PackedHead {
    const float* keys;
    const float* values;
    std::size_t padded;
    /// Queries whose values are summed together. A masked key of the same tile has the weight 0,
    /// which is not enough when its value is no finite number: then each query is on its own.
    std::size_t tile;
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
            for (std::size_t tile = 0; tile < rows; tile += head.tile) {
                const auto count = tile + head.tile < rows ? head.tile : rows - tile;
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
        const auto tile = areFinite(call, values, padded) ? tileRows : std::size_t{1};
        const PackedHead head{keys, values, padded, tile, scores, sums};
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
