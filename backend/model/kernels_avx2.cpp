// SPDX-License-Identifier: Apache-2.0
#include "model/kernels_p.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)

#include <immintrin.h>

namespace muster::model {
namespace {

struct Simd {
    using V = __m256;
    static constexpr std::size_t lanes = 8;
    static constexpr std::size_t tileRows = 6;
    static constexpr const char* name = "avx2";

    static V zero() { return _mm256_setzero_ps(); }
    static V set(float x) { return _mm256_set1_ps(x); }
    static V load(const float* from) { return _mm256_loadu_ps(from); }
    static V broadcast(const float* from) { return _mm256_broadcast_ss(from); }
    static void store(float* to, V x) { _mm256_storeu_ps(to, x); }
    static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
    /// c − a · b
    static V fnma(V a, V b, V c) { return _mm256_fnmadd_ps(a, b, c); }
    static V add(V a, V b) { return _mm256_add_ps(a, b); }
    static V sub(V a, V b) { return _mm256_sub_ps(a, b); }
    static V mul(V a, V b) { return _mm256_mul_ps(a, b); }
    static V div(V a, V b) { return _mm256_div_ps(a, b); }
    // The second operand is returned when one is NaN, so data stand second.
    static V max(V a, V b) { return _mm256_max_ps(b, a); }
    static V min(V a, V b) { return _mm256_min_ps(b, a); }
    static V absolute(V x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), x); }
    static V nearest(V x)
    {
        return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    static V powerOfTwo(V n)
    {
        const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
        return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
    }
    static V rounded(V x)
    {
        const __m256i bits = _mm256_castps_si256(x);
        const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
        const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
        const V cut = _mm256_castsi256_ps(
            _mm256_and_si256(up, _mm256_set1_epi32(static_cast<int>(0xFFFF0000U))));
        return _mm256_blendv_ps(cut, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    }
    static float sum(V x)
    {
        __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
        s = _mm_add_ps(s, _mm_movehl_ps(s, s));
        s = _mm_add_ss(s, _mm_shuffle_ps(s, s, 1));
        return _mm_cvtss_f32(s);
    }
    static float largest(V x)
    {
        __m128 s = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
        s = _mm_max_ps(s, _mm_movehl_ps(s, s));
        s = _mm_max_ss(s, _mm_shuffle_ps(s, s, 1));
        return _mm_cvtss_f32(s);
    }
    static V loadHalf(const std::uint16_t* from)
    {
        return _mm256_cvtph_ps(
            _mm_loadu_si128(static_cast<const __m128i*>(static_cast<const void*>(from))));
    }
    static V loadBfloat16(const std::uint16_t* from)
    {
        const __m256i wide = _mm256_cvtepu16_epi32(
            _mm_loadu_si128(static_cast<const __m128i*>(static_cast<const void*>(from))));
        return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
    }
    static V loadInt8(const std::byte* from)
    {
        return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadu_si64(from)));
    }
    using Pairs = __m256i;
    using Sums = __m256i;
    static Sums zeroSums() { return _mm256_setzero_si256(); }
    static __m256i loadAny(const void* from)
    {
        return _mm256_loadu_si256(static_cast<const __m256i*>(from));
    }
    static Sums loadSums(const std::int32_t* from) { return loadAny(from); }
    static void storeSums(std::int32_t* to, Sums sums)
    {
        _mm256_storeu_si256(static_cast<__m256i*>(static_cast<void*>(to)), sums);
    }
    static Pairs loadPairs(const std::int16_t* from) { return loadAny(from); }
    static Pairs broadcastPair(const std::int16_t* from)
    {
        return _mm256_castps_si256(
            _mm256_broadcast_ss(static_cast<const float*>(static_cast<const void*>(from))));
    }
    static Sums addProducts(Sums sums, Pairs a, Pairs b)
    {
        return _mm256_add_epi32(sums, _mm256_madd_epi16(a, b));
    }
    static V toFloats(Sums sums) { return _mm256_cvtepi32_ps(sums); }
    static void storeInt16(std::int16_t* to, V x)
    {
        const __m256i wide = _mm256_cvtps_epi32(x);
        _mm_storeu_si128(
            static_cast<__m128i*>(static_cast<void*>(to)),
            _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1)));
    }
    /// 2 · lanes numbers of 8 bits as 16 bits.
    static void widen(const std::byte* from, std::int16_t* to)
    {
        const __m128i bytes =
            _mm_loadu_si128(static_cast<const __m128i*>(static_cast<const void*>(from)));
        _mm256_storeu_si256(static_cast<__m256i*>(static_cast<void*>(to)),
                            _mm256_cvtepi8_epi16(bytes));
    }
    static void loadNibbles(const std::byte* from, V& low, V& high)
    {
        const __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadu_si64(from));
        low = _mm256_cvtepi32_ps(_mm256_and_si256(bytes, _mm256_set1_epi32(15)));
        high = _mm256_cvtepi32_ps(_mm256_srli_epi32(bytes, 4));
    }
};

} // namespace
} // namespace muster::model

#include "model/decoder_body_p.h"

const muster::model::KernelSet* muster::model::avx2Kernels()
{
    return &kernelSet;
}

#else

const muster::model::KernelSet* muster::model::avx2Kernels()
{
    return nullptr;
}

#endif
