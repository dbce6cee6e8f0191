/* SPDX-License-Identifier: Apache-2.0
 * int8.c - blocks of `param` elements that share one fp32 scale, a signed byte each.
 *
 * scale = largest magnitude of the block / 127; code = v / scale, rounded to nearest,
 * ties to even, or by chance. To nearest, the difference v - code * scale is exact for every
 * code but 0, where it is v itself. 8 bytes read and 5 written an element. */
#include "block.h"

#define TOP 127.0f

ALWAYS_INLINE uint32_t encode(const float *x, const float *residual_in, float *residual_out,
                              size_t n, const struct encoding *e, bool stochastic, uint8_t *wire)
{
    size_t block = e->param;
    int8_t *codes = (int8_t *)(wire + 4 * block_count(n, block));

    for (size_t b = 0, at = 0; at < n; b++, at += block) {
        size_t count = n - at < block ? n - at : block;
        uint32_t largest = block_sum(x + at, residual_in + at, residual_out + at, count);
        float scale = scale_of(largest, TOP);

        if (largest >= NONFINITE_BITS) return largest;
        lef32_put(wire + 4 * b, scale);
        if (n - at >= 2 * block) block_prefetch(x + at + block, residual_in + at + block, block);
        quantise(residual_out + at, count, scale, TOP, rounding_of(e, stochastic, at), codes + at);
    }
    return 0;
}

uint32_t OF_ISA(int8_encode)(const float *x, const float *residual_in, float *residual_out,
                             size_t n, const struct encoding *e, uint8_t *wire)
{
    return e->stochastic ? encode(x, residual_in, residual_out, n, e, true, wire)
                         : encode(x, residual_in, residual_out, n, e, false, wire);
}

ALWAYS_INLINE bool decode(const uint8_t *wire, size_t n, size_t block, bool add, float *out)
{
    const int8_t *codes = (const int8_t *)(wire + 4 * block_count(n, block));
    bool bad = false;

    for (size_t b = 0, at = 0; at < n; b++, at += block) {
        size_t count = n - at < block ? n - at : block;
        float scale = lef32_get(wire + 4 * b);
        uint8_t refused = 0;

        for (size_t i = at; i < at + count; i++) refused |= codes[i] == -128;
        bad |= refused != 0 || bad_scale(scale, TOP);
        put_values(codes + at, count, scale, add, out + at);
    }
    return !bad;
}

bool OF_ISA(int8_decode)(const uint8_t *wire, size_t n, const struct encoding *e, float *out)
{
    return decode(wire, n, e->param, false, out);
}

bool OF_ISA(int8_decode_add)(const uint8_t *wire, size_t n, const struct encoding *e, float *out)
{
    return decode(wire, n, e->param, true, out);
}
