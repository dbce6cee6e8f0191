/* SPDX-License-Identifier: Apache-2.0
 * int8.c - blocks of `param` elements that share one fp32 scale.
 *
 * Wire: one scale per block (4 bytes each), then one signed byte an element.
 * scale = largest magnitude of the block / 127; code = v / scale, rounded to nearest,
 * ties to even. A block whose scale would be subnormal is sent as zeros and stays in
 * the residual whole. The difference v - code * scale is exact for every code but 0,
 * where it is v itself. Two passes over a block that stays in the L1 cache: 8 bytes
 * read and 5 written an element. */
#include <float.h>
#include <math.h>

#include "base/bytes.h"
#include "kernels.h"

static size_t block_count(size_t n, size_t block)
{
    return (n + block - 1) / block;
}

static float scale_of(uint32_t largest_bits)
{
    float scale = bits_float(largest_bits) / 127.0f;

    if (scale < FLT_MIN) return 0.0f;
    /* at the very top of the range 127 * scale could round to infinity */
    return 127.0f * scale > FLT_MAX ? nextafterf(scale, 0.0f) : scale;
}

/* v * inverse is within +-127 and a rounding: adding and taking away 1.5 * 2^23 rounds
 * it to an integer as the FPU rounds, to nearest even. */
static inline float round_even(float v)
{
    return (v + 12582912.0f) - 12582912.0f;
}

static uint32_t encode_block(const float *restrict x, const float *residual_in,
                             float *restrict v, size_t n, int8_t *restrict codes, uint8_t *scale_at)
{
    uint32_t largest = 0;
    float scale, inverse;

    for (size_t i = 0; i < n; i++) {
        uint32_t magnitude;

        v[i] = x[i] + residual_in[i];
        magnitude = float_bits(v[i]) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    if (largest >= NONFINITE_BITS) return largest;
    scale = scale_of(largest);
    inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    lef32_put(scale_at, scale);
    for (size_t i = 0; i < n; i++) {
        float code = round_even(v[i] * inverse);

        code = code > 127.0f ? 127.0f : code;
        code = code < -127.0f ? -127.0f : code;
        codes[i] = (int8_t)(int)code;
        v[i] -= code * scale;
    }
    return largest;
}

uint32_t int8_encode(const float *x, const float *residual_in, float *residual_out,
                            size_t n, const struct encoding *e, uint8_t *wire)
{
    size_t block = e->param;
    int8_t *codes = (int8_t *)(wire + 4 * block_count(n, block));
    uint32_t largest = 0;

    for (size_t b = 0, at = 0; at < n; b++, at += block) {
        size_t count = n - at < block ? n - at : block;
        uint32_t magnitude = encode_block(x + at, residual_in + at, residual_out + at, count,
                                          codes + at, wire + 4 * b);

        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}

static inline bool bad_scale(float scale)
{
    return float_bits(scale) >= NONFINITE_BITS; /* negative ones have the top bit */
}

bool int8_decode(const uint8_t *wire, size_t n, const struct encoding *e, float *restrict out)
{
    size_t block = e->param;
    const int8_t *codes = (const int8_t *)(wire + 4 * block_count(n, block));
    unsigned bad = 0;

    for (size_t b = 0, at = 0; at < n; b++, at += block) {
        size_t end = n - at < block ? n : at + block;
        float scale = lef32_get(wire + 4 * b);

        bad |= bad_scale(scale);
        for (size_t i = at; i < end; i++) {
            bad |= codes[i] == -128;
            out[i] = (float)codes[i] * scale;
        }
    }
    return bad == 0;
}

bool int8_decode_add(const uint8_t *wire, size_t n, const struct encoding *e, float *restrict out)
{
    size_t block = e->param;
    const int8_t *codes = (const int8_t *)(wire + 4 * block_count(n, block));
    unsigned bad = 0;

    for (size_t b = 0, at = 0; at < n; b++, at += block) {
        size_t end = n - at < block ? n : at + block;
        float scale = lef32_get(wire + 4 * b);

        bad |= bad_scale(scale);
        for (size_t i = at; i < end; i++) {
            bad |= codes[i] == -128;
            out[i] += (float)codes[i] * scale;
        }
    }
    return bad == 0;
}
