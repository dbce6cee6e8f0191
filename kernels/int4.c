/* SPDX-License-Identifier: Apache-2.0
 * int4.c - blocks of `param` elements (a multiple of 8) that share one fp32 scale, two
 * signed codes a byte.
 *
 * scale = largest magnitude of the block / 7; codes are -7 .. 7 in two's complement, the
 * lower half of a byte first. 8 bytes read and 4.5 written an element. */
#include "block.h"

#define TOP 7.0f

/* Two codes of a byte each are the 16-bit word 0h0l: hl is its low byte with its shift. */
ALWAYS_INLINE void pack(int8_t *restrict codes, size_t n, uint8_t *restrict packed)
{
    if (n % 2 != 0) codes[n] = 0;
    for (size_t i = 0; i < (n + 1) / 2; i++) {
        uint16_t word = le16_get((const uint8_t *)codes + 2 * i);

        packed[i] = (uint8_t)((word & 0x0fu) | (word >> 4 & 0xf0u));
    }
}

/* In each byte h of the word: (h ^ 8) - 8 extends the sign; 8 itself is refused. */
ALWAYS_INLINE bool unpack(const uint8_t *restrict packed, size_t n, int8_t *restrict codes)
{
    uint8_t refused = 0;

    for (size_t i = 0; i < (n + 1) / 2; i++)
        le16_put((uint8_t *)codes + 2 * i,
                 (uint16_t)((packed[i] & 0x0fu) | (uint16_t)(packed[i] & 0xf0u) << 4));
    for (size_t i = 0; i < n; i++) {
        codes[i] = (int8_t)((codes[i] ^ 8) - 8);
        refused |= codes[i] == -8;
    }
    return refused != 0 || (n % 2 != 0 && packed[n / 2] >> 4 != 0);
}

ALWAYS_INLINE uint32_t encode(const float *x, const float *residual_in, float *residual_out,
                              size_t n, const struct encoding *e, bool stochastic, uint8_t *wire)
{
    size_t block = e->param;
    uint8_t *packed = wire + 4 * block_count(n, block);
    int8_t codes[CODES];

    for (size_t b = 0, at = 0; at < n; b++, at += block) {
        size_t end = n - at < block ? n : at + block;
        uint32_t largest = block_sum(x + at, residual_in + at, residual_out + at, end - at);
        float scale = scale_of(largest, TOP);

        if (largest >= NONFINITE_BITS) return largest;
        lef32_put(wire + 4 * b, scale);
        if (n - at >= 2 * block) block_prefetch(x + end, residual_in + end, block);
        for (size_t i = at; i < end; i += CODES) {
            size_t count = end - i < CODES ? end - i : CODES;

            quantise(residual_out + i, count, scale, TOP, rounding_of(e, stochastic, i), codes);
            pack(codes, count, packed + i / 2);
        }
    }
    return 0;
}

uint32_t OF_ISA(int4_encode)(const float *x, const float *residual_in, float *residual_out,
                             size_t n, const struct encoding *e, uint8_t *wire)
{
    return e->stochastic ? encode(x, residual_in, residual_out, n, e, true, wire)
                         : encode(x, residual_in, residual_out, n, e, false, wire);
}

bool OF_ISA(int4_decode)(const uint8_t *wire, size_t n, const struct encoding *e, float *out)
{
    return decode_packed(wire, n, e->param, 2, TOP, unpack, false, out);
}

bool OF_ISA(int4_decode_add)(const uint8_t *wire, size_t n, const struct encoding *e, float *out)
{
    return decode_packed(wire, n, e->param, 2, TOP, unpack, true, out);
}
