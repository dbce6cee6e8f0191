/* SPDX-License-Identifier: Apache-2.0
 * block.h - what the codecs share that give each block of `param` elements a scale.
 *
 * Wire: one scale per block (4 bytes each), then the codes, packed. A code is a small
 * integer; its value is code * scale. Encoding is two passes over a block that stays in
 * the L1 cache; codes narrower than a byte go through a buffer of bytes, so that packing
 * is a loop over whole words, which compilers vectorise. */
#ifndef STRAIT_KERNELS_BLOCK_H
#define STRAIT_KERNELS_BLOCK_H

#include <float.h>
#include <math.h>

#include "base/bytes.h"
#include "base/random.h"
#include "kernels.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))

enum { CODES = 512 }; /* of the buffer; divides into whole bytes for every width */

ALWAYS_INLINE size_t block_count(size_t n, size_t block)
{
    return (n + block - 1) / block;
}

/* Ask for the next n elements while the processor computes on those it has; of a large
 * block only for its begin: the processor's own prefetching has the rest. */
ALWAYS_INLINE void block_prefetch(const float *x, const float *residual, size_t n)
{
    n = n < 1024 ? n : 1024;
    for (size_t i = 0; i < n; i += 16) {
        __builtin_prefetch(x + i);
        __builtin_prefetch(residual + i, 1);
    }
}

/* v = x + residual_in; returns the largest magnitude bits. Signed, because SSE2 has no
 * unsigned comparison. */
ALWAYS_INLINE uint32_t block_sum(const float *restrict x, const float *residual_in, float *v,
                                 size_t n)
{
    int32_t largest = 0;

    INDEPENDENT
    for (size_t i = 0; i < n; i++) {
        float sum = x[i] + residual_in[i];
        int32_t magnitude = (int32_t)(float_bits(sum) & 0x7fffffffu);

        v[i] = sum;
        largest = magnitude > largest ? magnitude : largest;
    }
    return (uint32_t)largest;
}

/* The scale at which the largest magnitude has the code `top`; 0 where that would be
 * subnormal: such a block is sent as zeros and stays in the residual whole. */
static inline float scale_of(uint32_t largest_bits, float top)
{
    float scale = bits_float(largest_bits) / top;

    if (scale < FLT_MIN) return 0.0f;
    /* at the very top of the range top * scale could round to infinity */
    return top * scale > FLT_MAX ? nextafterf(scale, 0.0f) : scale;
}

/* No encoder writes a scale that is negative, subnormal or makes `top` infinite. */
static inline bool bad_scale(float scale, float top)
{
    uint32_t bits = float_bits(scale);

    return bits >= NONFINITE_BITS || (bits != 0 && scale < FLT_MIN) || top * scale > FLT_MAX;
}

/* v is within +-2^22: adding and taking away 1.5 * 2^23 rounds it to an integer as the
 * FPU rounds, to nearest even. */
ALWAYS_INLINE float round_even(float v)
{
    return (v + 12582912.0f) - 12582912.0f;
}

/* What is added before rounding to nearest, so that the mean of many roundings is the value:
 * one of 2^24 numbers between -0.5 and 0.5, both excluded, evenly spread around 0. A whole
 * number stays one. */
ALWAYS_INLINE float noise_of(uint32_t random)
{
    return (float)((int32_t)random >> 7 | 1) * 0x1p-25f;
}

/* How the elements from `index` on are rounded: to nearest even, or by chance. */
struct rounding {
    bool stochastic;
    uint64_t key;
    uint32_t index; /* modulo 2^32 */
};

ALWAYS_INLINE struct rounding rounding_of(const struct encoding *e, bool stochastic, size_t at)
{
    return (struct rounding){ stochastic, e->noise, (uint32_t)(e->first + at) };
}

/* codes = v / scale, rounded; v -= codes * scale, which is exact if rounded to nearest. */
ALWAYS_INLINE void quantise(float *restrict v, size_t n, float scale, float top,
                            struct rounding r, int8_t *restrict codes)
{
    float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;

    for (size_t i = 0; i < n; i++) {
        float code = v[i] * inverse;

        if (r.stochastic) code += noise_of(random_u32(r.key, r.index + (uint32_t)i));
        code = round_even(code);
        code = code > top ? top : code;
        code = code < -top ? -top : code;
        codes[i] = (int8_t)(int)code;
        v[i] -= code * scale;
    }
}

ALWAYS_INLINE void put_values(const int8_t *restrict codes, size_t n, float scale, bool add,
                              float *restrict out)
{
    if (add)
        for (size_t i = 0; i < n; i++) out[i] += (float)codes[i] * scale;
    else
        for (size_t i = 0; i < n; i++) out[i] = (float)codes[i] * scale;
}

/* Unpack `n` codes; true: one of them, or the padding, is what no encoder writes. Reads
 * whole bytes and writes a whole byte's worth of codes. */
typedef bool unpack_codes(const uint8_t *packed, size_t n, int8_t *codes);

ALWAYS_INLINE bool decode_packed(const uint8_t *restrict wire, size_t n, size_t block,
                                 size_t codes_per_byte, float top, unpack_codes *unpack, bool add,
                                 float *restrict out)
{
    const uint8_t *packed = wire + 4 * block_count(n, block);
    int8_t codes[CODES];
    bool bad = false;

    for (size_t b = 0, at = 0; at < n; b++, at += block) {
        size_t end = n - at < block ? n : at + block;
        float scale = lef32_get(wire + 4 * b);

        bad |= bad_scale(scale, top);
        for (size_t i = at; i < end; i += CODES) {
            size_t count = end - i < CODES ? end - i : CODES;

            bad |= unpack(packed + i / codes_per_byte, count, codes);
            put_values(codes, count, scale, add, out + i);
        }
    }
    return !bad;
}

/* A sum whose order is part of the format: element i of a block goes to lane i % 16, the
 * lanes are then added by halves. Any vector width gives the same bits. Magnitudes are
 * summed times 2^-17, so that 65536 of them stay finite. */
enum { LANES = 16 };
#define SUM_UNIT 0x1p-17f

typedef float lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t lane_bits __attribute__((vector_size(4 * LANES)));

ALWAYS_INLINE float sum_of_lanes(float *lane)
{
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++) lane[j] += lane[j + half];
    return lane[0];
}

#endif
