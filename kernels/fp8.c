/* SPDX-License-Identifier: Apache-2.0
 * fp8.c - blocks of `param` elements that share one fp32 scale, an e4m3 float each.
 *
 * scale = largest magnitude of the block / 448, the largest e4m3; code = v / scale,
 * rounded to nearest, ties to even, or by chance. Precision falls off with the magnitude as int8's
 * does not: small values beside an outlier keep 4 digits down to 2^-6 of scale. */
#include "block.h"

#define TOP 448.0f

/* Signed where it compares: SSE2 and AVX2 have no unsigned comparison. */
ALWAYS_INLINE uint8_t fp8_from(float v)
{
    uint32_t bits = float_bits(v), sign = bits >> 24 & 0x80u;
    int32_t m = (int32_t)(bits & 0x7fffffffu), h;
    /* below 2^-6: adding 2^14 moves the rounding to the subnormal's last bit, 2^-9 */
    int32_t small = (int32_t)float_bits(bits_float((uint32_t)m) + 0x1p14f) - 0x46800000;
    /* otherwise: rebias the exponent by 7 - 127 and round the 20 dropped bits */
    int32_t normal = (m - 0x3c000000 + 0x7ffff + (m >> 20 & 1)) >> 20;
    int32_t tiny = -(int32_t)(m < 0x3c800000);

    h = (small & tiny) | (normal & ~tiny);
    h = h > 0x7e ? 0x7e : h; /* v / scale may be a rounding above 448 */
    return (uint8_t)((uint32_t)h | sign);
}

/* The same by chance: what is dropped is the probability of the code above. */
ALWAYS_INLINE uint8_t fp8_by_chance(float v, uint32_t random)
{
    uint32_t bits = float_bits(v), sign = bits >> 24 & 0x80u;
    int32_t m = (int32_t)(bits & 0x7fffffffu), h;
    int32_t small = (int32_t)round_even(bits_float((uint32_t)m) * 512.0f + noise_of(random));
    int32_t normal = (m - 0x3c000000 + (int32_t)(random >> 12)) >> 20;
    int32_t tiny = -(int32_t)(m < 0x3c800000);

    h = (small & tiny) | (normal & ~tiny);
    h = h > 0x7e ? 0x7e : h;
    return (uint8_t)((uint32_t)h | sign);
}

ALWAYS_INLINE float fp8_to(uint8_t code)
{
    int32_t m = code & 0x7f, tiny = -(int32_t)(m < 0x08);
    uint32_t sign = (uint32_t)(code & 0x80u) << 24;
    float small = bits_float(0x46800000u | (uint32_t)m) - 0x1p14f;
    int32_t normal = (m << 20) + 0x3c000000;

    return bits_float(((float_bits(small) & (uint32_t)tiny) |
                       ((uint32_t)normal & ~(uint32_t)tiny)) | sign);
}

ALWAYS_INLINE void quantise_fp8(float *restrict v, size_t n, float scale, struct rounding r,
                                uint8_t *restrict codes)
{
    float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;

    for (size_t i = 0; i < n; i++) {
        float t = v[i] * inverse;

        codes[i] = r.stochastic
                       ? fp8_by_chance(t, random_u32(r.key, r.index + (uint32_t)i))
                       : fp8_from(t);
        v[i] -= fp8_to(codes[i]) * scale;
    }
}

ALWAYS_INLINE uint32_t encode(const float *x, const float *residual_in, float *residual_out,
                              size_t n, const struct encoding *e, bool stochastic, uint8_t *wire)
{
    size_t block = e->param;
    uint8_t *codes = wire + 4 * block_count(n, block);

    for (size_t b = 0, at = 0; at < n; b++, at += block) {
        size_t count = n - at < block ? n - at : block;
        uint32_t largest = block_sum(x + at, residual_in + at, residual_out + at, count);
        float scale = scale_of(largest, TOP);

        if (largest >= NONFINITE_BITS) return largest;
        lef32_put(wire + 4 * b, scale);
        if (n - at >= 2 * block) block_prefetch(x + at + block, residual_in + at + block, block);
        quantise_fp8(residual_out + at, count, scale, rounding_of(e, stochastic, at), codes + at);
    }
    return 0;
}

uint32_t OF_ISA(fp8_encode)(const float *x, const float *residual_in, float *residual_out,
                            size_t n, const struct encoding *e, uint8_t *wire)
{
    return e->stochastic ? encode(x, residual_in, residual_out, n, e, true, wire)
                         : encode(x, residual_in, residual_out, n, e, false, wire);
}

ALWAYS_INLINE bool decode(const uint8_t *restrict wire, size_t n, size_t block, bool add,
                          float *restrict out)
{
    const uint8_t *codes = wire + 4 * block_count(n, block);
    bool bad = false;

    for (size_t b = 0, at = 0; at < n; b++, at += block) {
        size_t end = n - at < block ? n : at + block;
        float scale = lef32_get(wire + 4 * b);
        uint8_t nan = 0;

        for (size_t i = at; i < end; i++) nan |= (codes[i] & 0x7f) == 0x7f;
        bad |= nan != 0 || bad_scale(scale, TOP);
        if (add)
            for (size_t i = at; i < end; i++) out[i] += fp8_to(codes[i]) * scale;
        else
            for (size_t i = at; i < end; i++) out[i] = fp8_to(codes[i]) * scale;
    }
    return !bad;
}

bool OF_ISA(fp8_decode)(const uint8_t *wire, size_t n, const struct encoding *e, float *out)
{
    return decode(wire, n, e->param, false, out);
}

bool OF_ISA(fp8_decode_add)(const uint8_t *wire, size_t n, const struct encoding *e, float *out)
{
    return decode(wire, n, e->param, true, out);
}
