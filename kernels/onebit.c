/* SPDX-License-Identifier: Apache-2.0
 * onebit.c - the sign of each element; per block of `param` elements (a multiple of 8)
 * the mean of those from 0 on and the mean magnitude of those below, which they stand for.
 *
 * Zeros of both signs count as positive. Seide et al. 2014. */
#include "block.h"

/* What the `count` elements of one sign stand for; sum is in units of SUM_UNIT. */
static inline float mean_of(float *lane, size_t count)
{
    float mean = sum_of_lanes(lane) / (float)(count > 0 ? count : 1);

    mean = mean < FLT_MAX * SUM_UNIT ? mean : FLT_MAX * SUM_UNIT; /* rounded beyond the range */
    mean /= SUM_UNIT;
    return mean < FLT_MIN ? 0.0f : mean;
}

/* The lanes of block.h once per sign; an element of the other sign adds 0 to a lane. */
ALWAYS_INLINE void means(const float *v, size_t n, float *positive, float *negative)
{
    lanes above = { 0 }, below = { 0 }, zero = { 0 }, some, part;
    lane_bits count = { 0 }, mask, bits;
    float lane[LANES];
    int32_t counts[LANES];
    size_t negatives = 0;

    for (size_t i = 0; i < n; i += LANES) {
        float last[LANES] = { 0 };

        if (n - i < LANES) memcpy(last, v + i, (n - i) * sizeof *last);
        memcpy(&some, n - i < LANES ? last : v + i, sizeof some);
        mask = some < zero;
        some *= SUM_UNIT;
        count -= mask;
        memcpy(&bits, &some, sizeof bits);
        bits &= mask;
        memcpy(&part, &bits, sizeof part);
        below -= part;
        above += some - part; /* one of them is the other, or 0 */
    }
    memcpy(lane, &above, sizeof lane);
    memcpy(counts, &count, sizeof counts);
    for (int j = 0; j < LANES; j++) negatives += (size_t)counts[j];
    *positive = mean_of(lane, n - negatives);
    memcpy(lane, &below, sizeof lane);
    *negative = mean_of(lane, negatives);
}

/* Eight bytes of 0 or 1, as a 64-bit word, drawn together to its low byte. */
ALWAYS_INLINE void pack(uint8_t *restrict codes, size_t n, uint8_t *restrict packed)
{
    for (size_t i = n; i % 8 != 0; i++) codes[i] = 0;
    for (size_t i = 0; i < (n + 7) / 8; i++) {
        uint64_t word = le64_get(codes + 8 * i);

        word |= word >> 7;
        word |= word >> 14;
        packed[i] = (uint8_t)((word & 0x0fu) | (word >> 28 & 0xf0u));
    }
}

ALWAYS_INLINE void unpack(const uint8_t *restrict packed, size_t n, uint8_t *restrict codes)
{
    for (size_t i = 0; i < (n + 7) / 8; i++) {
        uint64_t word = packed[i];

        word = (word | word << 28) & 0x0000000f0000000fu;
        word = (word | word << 14) & 0x0003000300030003u;
        le64_put(codes + 8 * i, (word | word << 7) & 0x0101010101010101u);
    }
}

ALWAYS_INLINE float value(uint8_t code, float positive, float negative)
{
    int32_t mask = -(int32_t)code;

    return bits_float((float_bits(-negative) & (uint32_t)mask) |
                      (float_bits(positive) & ~(uint32_t)mask));
}

uint32_t OF_ISA(onebit_encode)(const float *x, const float *residual_in, float *residual_out,
                               size_t n, const struct encoding *e, uint8_t *wire)
{
    size_t block = e->param;
    uint8_t *packed = wire + 8 * block_count(n, block), codes[CODES];

    for (size_t b = 0, at = 0; at < n; b++, at += block) {
        size_t end = n - at < block ? n : at + block;
        uint32_t largest = block_sum(x + at, residual_in + at, residual_out + at, end - at);
        float positive, negative;

        if (largest >= NONFINITE_BITS) return largest;
        means(residual_out + at, end - at, &positive, &negative);
        lef32_put(wire + 8 * b, positive);
        lef32_put(wire + 8 * b + 4, negative);
        if (n - at >= 2 * block) block_prefetch(x + end, residual_in + end, block);
        for (size_t i = at; i < end; i += CODES) {
            size_t count = end - i < CODES ? end - i : CODES;
            float *v = residual_out + i;

            for (size_t j = 0; j < count; j++) {
                codes[j] = v[j] < 0.0f;
                v[j] -= value(codes[j], positive, negative);
            }
            pack(codes, count, packed + i / 8);
        }
    }
    return 0;
}

ALWAYS_INLINE bool decode(const uint8_t *restrict wire, size_t n, size_t block, bool add,
                          float *restrict out)
{
    const uint8_t *packed = wire + 8 * block_count(n, block);
    uint8_t codes[CODES];
    bool bad = n % 8 != 0 && packed[n / 8] >> n % 8 != 0;

    for (size_t b = 0, at = 0; at < n; b++, at += block) {
        size_t end = n - at < block ? n : at + block;
        float positive = lef32_get(wire + 8 * b), negative = lef32_get(wire + 8 * b + 4);

        bad |= bad_scale(positive, 1.0f) || bad_scale(negative, 1.0f);
        for (size_t i = at; i < end; i += CODES) {
            size_t count = end - i < CODES ? end - i : CODES;

            unpack(packed + i / 8, count, codes);
            for (size_t j = 0; j < count; j++)
                out[i + j] = value(codes[j], positive, negative) + (add ? out[i + j] : 0.0f);
        }
    }
    return !bad;
}

bool OF_ISA(onebit_decode)(const uint8_t *wire, size_t n, const struct encoding *e, float *out)
{
    return decode(wire, n, e->param, false, out);
}

bool OF_ISA(onebit_decode_add)(const uint8_t *wire, size_t n, const struct encoding *e, float *out)
{
    return decode(wire, n, e->param, true, out);
}
