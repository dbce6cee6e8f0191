/* SPDX-License-Identifier: Apache-2.0
 * int2.c - blocks of `param` elements (a multiple of 8) that share one fp32 scale, four
 * 2-bit codes a byte.
 *
 * The code q = 0 .. 3 stands for (2q - 3) * scale: -3, -1, 1, 3. On a Gaussian block
 * those four levels leave 0.12 of the energy at their best, which is with scale = 0.5 of
 * the root of the mean square; -1, 0, 1 leave 0.19. The mean magnitude would do as well
 * for a Gaussian, but goes lower where few elements are large.
 *
 * Rounding by chance is right on average only between the outermost levels, so scale is then
 * a third of the largest magnitude. */
#include "block.h"

#define TOP 3.0f

/* Squares are of v times unit, which is 1 / largest: they neither overflow nor vanish. */
ALWAYS_INLINE float scale_of_squares(const float *v, size_t n, float largest)
{
    lanes sum = { 0 }, some;
    float lane[LANES], last[LANES] = { 0 }, unit, scale;
    size_t whole = n - n % LANES;

    if (largest < FLT_MIN) return 0.0f;
    unit = largest < 0x1p126f ? 1.0f / largest : 0x1p-126f; /* no subnormal unit */
    for (size_t i = 0; i < whole; i += LANES) {
        memcpy(&some, v + i, sizeof some);
        some *= unit;
        sum += some * some;
    }
    memcpy(last, v + whole, (n - whole) * sizeof *last);
    memcpy(&some, last, sizeof some);
    some *= unit;
    sum += some * some;
    memcpy(lane, &sum, sizeof lane);
    scale = 0.5f * sqrtf(sum_of_lanes(lane) / (float)n) / unit;
    scale = scale < 0x1.5p126f ? scale : 0x1.5p126f; /* 3 * scale is finite */
    return scale < FLT_MIN ? 0.0f : scale;
}

/* Four codes of a byte each, as a 32-bit word, drawn together to its low byte. */
ALWAYS_INLINE void pack(int8_t *restrict codes, size_t n, uint8_t *restrict packed)
{
    for (size_t i = n; i % 4 != 0; i++) codes[i] = 0;
    for (size_t i = 0; i < (n + 3) / 4; i++) {
        uint32_t word = le32_get((const uint8_t *)codes + 4 * i);

        packed[i] = (uint8_t)(word | word >> 6 | word >> 12 | word >> 18);
    }
}

ALWAYS_INLINE bool unpack(const uint8_t *restrict packed, size_t n, int8_t *restrict codes)
{
    for (size_t i = 0; i < (n + 3) / 4; i++) {
        uint32_t four = packed[i];

        le32_put((uint8_t *)codes + 4 * i, (four & 3u) | (four & 0x0cu) << 6 |
                                               (four & 0x30u) << 12 | (four & 0xc0u) << 18);
    }
    for (size_t i = 0; i < n; i++) codes[i] = (int8_t)(2 * codes[i] - 3);
    return n % 4 != 0 && packed[n / 4] >> 2 * (n % 4) != 0;
}

/* q is how many of the borders -2 * scale, 0 and 2 * scale v reaches. */
ALWAYS_INLINE void choose(float *restrict v, size_t n, float scale, int8_t *restrict codes)
{
    float border = 2.0f * scale;

    for (size_t i = 0; i < n; i++) {
        int q = (v[i] >= -border) + (v[i] >= 0.0f) + (v[i] >= border);

        codes[i] = (int8_t)q;
        v[i] -= (float)(2 * q - 3) * scale;
    }
}

/* Levels are 2 * scale apart. */
ALWAYS_INLINE void choose_by_chance(float *restrict v, size_t n, float scale, struct rounding r,
                                    int8_t *restrict codes)
{
    float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;

    for (size_t i = 0; i < n; i++) {
        float q = (v[i] * inverse + 3.0f) * 0.5f;

        q = round_even(q + noise_of(random_u32(r.key, r.index + (uint32_t)i)));
        q = q > 3.0f ? 3.0f : q;
        q = q < 0.0f ? 0.0f : q;
        codes[i] = (int8_t)(int)q;
        v[i] -= (2.0f * q - 3.0f) * scale;
    }
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
        float scale;

        if (largest >= NONFINITE_BITS) return largest;
        scale = stochastic ? scale_of(largest, TOP)
                           : scale_of_squares(residual_out + at, end - at, bits_float(largest));
        lef32_put(wire + 4 * b, scale);
        if (n - at >= 2 * block) block_prefetch(x + end, residual_in + end, block);
        for (size_t i = at; i < end; i += CODES) {
            size_t count = end - i < CODES ? end - i : CODES;

            if (stochastic)
                choose_by_chance(residual_out + i, count, scale, rounding_of(e, true, i), codes);
            else choose(residual_out + i, count, scale, codes);
            pack(codes, count, packed + i / 4);
        }
    }
    return 0;
}

uint32_t OF_ISA(int2_encode)(const float *x, const float *residual_in, float *residual_out,
                             size_t n, const struct encoding *e, uint8_t *wire)
{
    return e->stochastic ? encode(x, residual_in, residual_out, n, e, true, wire)
                         : encode(x, residual_in, residual_out, n, e, false, wire);
}

bool OF_ISA(int2_decode)(const uint8_t *wire, size_t n, const struct encoding *e, float *out)
{
    return decode_packed(wire, n, e->param, 4, TOP, unpack, false, out);
}

bool OF_ISA(int2_decode_add)(const uint8_t *wire, size_t n, const struct encoding *e, float *out)
{
    return decode_packed(wire, n, e->param, 4, TOP, unpack, true, out);
}
