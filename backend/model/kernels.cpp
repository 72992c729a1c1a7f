// SPDX-License-Identifier: Apache-2.0
#include "model/kernels_p.h"

#include <bit>
#include <cmath>

namespace muster::model {
namespace {

/// The portable set: what the compiler makes of loops over eight numbers.
struct Simd {
    static constexpr std::size_t lanes = 8;
    static constexpr std::size_t tileRows = 2;
    static constexpr const char* name = "plain";
    struct V {
        float x[lanes];
    };

    template <typename F>
    static V made(F f)
    {
        V v;
        for (std::size_t i = 0; i < lanes; ++i)
            v.x[i] = f(i);
        return v;
    }
    static V zero() { return set(0.0F); }
    static V set(float x)
    {
        return made([&](std::size_t) { return x; });
    }
    static V load(const float* from)
    {
        return made([&](std::size_t i) { return from[i]; });
    }
    static V broadcast(const float* from) { return set(*from); }
    static void store(float* to, const V& v)
    {
        for (std::size_t i = 0; i < lanes; ++i)
            to[i] = v.x[i];
    }
    static V fma(const V& a, const V& b, const V& c)
    {
        return made([&](std::size_t i) { return a.x[i] * b.x[i] + c.x[i]; });
    }
    static V fnma(const V& a, const V& b, const V& c)
    {
        return made([&](std::size_t i) { return c.x[i] - a.x[i] * b.x[i]; });
    }
    static V add(const V& a, const V& b)
    {
        return made([&](std::size_t i) { return a.x[i] + b.x[i]; });
    }
    static V sub(const V& a, const V& b)
    {
        return made([&](std::size_t i) { return a.x[i] - b.x[i]; });
    }
    static V mul(const V& a, const V& b)
    {
        return made([&](std::size_t i) { return a.x[i] * b.x[i]; });
    }
    static V div(const V& a, const V& b)
    {
        return made([&](std::size_t i) { return a.x[i] / b.x[i]; });
    }
    static V max(const V& a, const V& b)
    {
        return made([&](std::size_t i) { return b.x[i] > a.x[i] ? b.x[i] : a.x[i]; });
    }
    static V min(const V& a, const V& b)
    {
        return made([&](std::size_t i) { return b.x[i] < a.x[i] ? b.x[i] : a.x[i]; });
    }
    static V absolute(const V& v)
    {
        return made([&](std::size_t i) { return std::fabs(v.x[i]); });
    }
    static V nearest(const V& v)
    {
        // Adding and taking away 1.5 · 2²³ rounds to an integer for |x| < 2²².
        constexpr float shift = 12582912.0F;
        return made([&](std::size_t i) { return (v.x[i] + shift) - shift; });
    }
    static V powerOfTwo(const V& n)
    {
        return made([&](std::size_t i) {
            const float bounded = n.x[i] >= -127.0F && n.x[i] <= 128.0F ? n.x[i] : 0.0F;
            return std::bit_cast<float>(
                static_cast<std::uint32_t>(static_cast<std::int32_t>(bounded) + 127) << 23U);
        });
    }
    static V rounded(const V& v)
    {
        return made([&](std::size_t i) {
            const auto bits = std::bit_cast<std::uint32_t>(v.x[i]);
            if (v.x[i] != v.x[i])
                return v.x[i];
            return std::bit_cast<float>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) & 0xFFFF0000U);
        });
    }
    static float sum(const V& v)
    {
        float total = 0.0F;
        for (const float x : v.x)
            total += x;
        return total;
    }
    static float largest(const V& v)
    {
        float highest = v.x[0];
        for (const float x : v.x)
            highest = x > highest ? x : highest;
        return highest;
    }
    static float wide(std::uint16_t half)
    {
        const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16U;
        const std::uint32_t exponent = (half >> 10U) & 0x1FU;
        const std::uint32_t fraction = half & 0x3FFU;
        if (exponent == 0) {
            const float small = static_cast<float>(fraction) * 0x1p-24F;
            return sign != 0 ? -small : small;
        }
        const std::uint32_t bits = exponent == 31
                                       ? sign | 0x7F800000U | (fraction << 13U)
                                       : sign | ((exponent + 112U) << 23U) | (fraction << 13U);
        return std::bit_cast<float>(bits);
    }
    static V loadHalf(const std::uint16_t* from)
    {
        return made([&](std::size_t i) { return wide(from[i]); });
    }
    static V loadBfloat16(const std::uint16_t* from)
    {
        return made([&](std::size_t i) {
            return std::bit_cast<float>(static_cast<std::uint32_t>(from[i]) << 16U);
        });
    }
    static V loadInt8(const std::byte* from)
    {
        return made(
            [&](std::size_t i) { return static_cast<float>(static_cast<std::int8_t>(from[i])); });
    }
    struct Pairs {
        std::int16_t x[2 * lanes];
    };
    struct Sums {
        std::int32_t x[lanes];
    };
    static Sums zeroSums() { return {}; }
    static Sums loadSums(const std::int32_t* from)
    {
        Sums sums;
        for (std::size_t i = 0; i < lanes; ++i)
            sums.x[i] = from[i];
        return sums;
    }
    static void storeSums(std::int32_t* to, const Sums& sums)
    {
        for (std::size_t i = 0; i < lanes; ++i)
            to[i] = sums.x[i];
    }
    static Pairs loadPairs(const std::int16_t* from)
    {
        Pairs pairs;
        for (std::size_t i = 0; i < 2 * lanes; ++i)
            pairs.x[i] = from[i];
        return pairs;
    }
    static Pairs broadcastPair(const std::int16_t* from)
    {
        Pairs pairs;
        for (std::size_t i = 0; i < 2 * lanes; ++i)
            pairs.x[i] = from[i % 2];
        return pairs;
    }
    static Sums addProducts(Sums sums, const Pairs& a, const Pairs& b)
    {
        for (std::size_t i = 0; i < lanes; ++i)
            sums.x[i] += a.x[2 * i] * b.x[2 * i] + a.x[2 * i + 1] * b.x[2 * i + 1];
        return sums;
    }
    static V toFloats(const Sums& sums)
    {
        return made([&](std::size_t i) { return static_cast<float>(sums.x[i]); });
    }
    static void storeInt16(std::int16_t* to, const V& v)
    {
        for (std::size_t i = 0; i < lanes; ++i)
            to[i] = v.x[i] >= -127.0F && v.x[i] <= 127.0F ? static_cast<std::int16_t>(v.x[i])
                                                          : std::int16_t{0};
    }
    /// 2 · lanes numbers of 8 bits as 16 bits.
    static void widen(const std::byte* from, std::int16_t* to)
    {
        for (std::size_t i = 0; i < 2 * lanes; ++i)
            to[i] = static_cast<std::int8_t>(from[i]);
    }
    static void loadNibbles(const std::byte* from, V& low, V& high)
    {
        low = made([&](std::size_t i) {
            return static_cast<float>(static_cast<unsigned>(from[i]) & 15U);
        });
        high = made([&](std::size_t i) {
            return static_cast<float>(static_cast<unsigned>(from[i]) >> 4U);
        });
    }
};

} // namespace
} // namespace muster::model

#include "model/decoder_body_p.h"

namespace muster::model {

const KernelSet* plainKernels()
{
    return &kernelSet;
}

const KernelSet& bestKernels()
{
#if defined(__x86_64__)
    if (avx2Kernels() != nullptr && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return *avx2Kernels();
#endif
    return *plainKernels();
}

} // namespace muster::model
