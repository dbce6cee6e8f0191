/* SPDX-License-Identifier: Apache-2.0
 * topk_values.h - the values of chosen elements: fp32, fp16, int8 with a scale for every
 * TOPK_BLOCK of them, or 2 bits.
 *
 * The latter are a sign and one of two magnitudes of the block: the mean of those up to the mean
 * of all, and of those above. What was chosen for being large has none near 0, which the evenly
 * spaced codes of int2 would be spent on. */
#ifndef STRAIT_KERNELS_TOPK_VALUES_H
#define STRAIT_KERNELS_TOPK_VALUES_H

#include "block.h"
#include "kernels/half.h"
#include "kernels/topk.h"

/* ---- int8 ---- */
static inline void topk_put_int8(float *v, size_t n, uint8_t *scale_at, uint8_t *wire)
{
    int8_t codes[TOPK_BLOCK];
    uint32_t largest = 0;
    float scale;

    for (size_t i = 0; i < n; i++) {
        uint32_t magnitude = float_bits(v[i]) & 0x7fffffffu;

        largest = magnitude > largest ? magnitude : largest;
    }
    scale = scale_of(largest, 127.0f);
    quantise(v, n, scale, 127.0f, (struct rounding){ false, 0, 0 }, codes);
    lef32_put(scale_at, scale);
    memcpy(wire, codes, n);
}

static inline bool topk_get_int8(const uint8_t *scale_at, const uint8_t *wire, size_t n, float *v)
{
    float scale = lef32_get(scale_at);
    bool bad = bad_scale(scale, 127.0f);

    for (size_t i = 0; i < n; i++) {
        int8_t code = (int8_t)wire[i];

        bad |= code == -128;
        v[i] = (float)code * scale;
    }
    return !bad;
}

/* ---- 2 bits ---- */
static inline float topk_level(double sum, size_t n)
{
    float level = n > 0 ? (float)(sum / (double)n) : 0.0f;

    return level < FLT_MIN ? 0.0f : level;
}

/* In double: the order of the sums is plain, and 256 floats cannot overflow. */
static inline void topk_levels(const float *v, size_t n, float level[2])
{
    double sum = 0, part[2] = { 0, 0 }, mean;
    size_t count[2] = { 0, 0 };

    for (size_t i = 0; i < n; i++) sum += (double)fabsf(v[i]);
    mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
        bool upper = (double)fabsf(v[i]) > mean;

        part[upper] += (double)fabsf(v[i]);
        count[upper]++;
    }
    level[0] = topk_level(part[0], count[0]);
    level[1] = count[1] > 0 ? topk_level(part[1], count[1]) : level[0];
}

static inline void topk_put_int2(float *v, size_t n, uint8_t *levels_at, uint8_t *wire)
{
    float level[2], middle;

    topk_levels(v, n, level);
    middle = 0.5f * level[0] + 0.5f * level[1];
    lef32_put(levels_at, level[0]);
    lef32_put(levels_at + 4, level[1]);
    memset(wire, 0, (n + 3) / 4);
    for (size_t i = 0; i < n; i++) {
        bool negative = v[i] < 0, upper = fabsf(v[i]) > middle;

        wire[i / 4] |= (uint8_t)((negative | upper << 1) << 2 * (i % 4));
        v[i] -= negative ? -level[upper] : level[upper];
    }
}

static inline bool topk_get_int2(const uint8_t *levels_at, const uint8_t *wire, size_t n, float *v)
{
    float level[2] = { lef32_get(levels_at), lef32_get(levels_at + 4) };
    bool bad = bad_scale(level[0], 1.0f) || bad_scale(level[1], 1.0f) || level[0] > level[1];

    for (size_t i = 0; i < n; i++) {
        uint8_t code = wire[i / 4] >> 2 * (i % 4) & 3;

        v[i] = code & 1 ? -level[code >> 1] : level[code >> 1];
    }
    return !bad && (n % 4 == 0 || wire[n / 4] >> 2 * (n % 4) == 0);
}

/* ---- all ---- */

/* Values [block * TOPK_BLOCK, + n) to their place on the wire; v keeps what that loses. */
static inline void topk_values_put(const struct topk_layout *l, size_t block, float *v, size_t n,
                                   uint8_t *wire)
{
    uint8_t *scales = wire + l->index_bytes, *codes = scales + l->scale_bytes;
    size_t first = block * TOPK_BLOCK;

    switch (l->values) {
    case TOPK_FP32:
        for (size_t i = 0; i < n; i++) lef32_put(codes + 4 * (first + i), v[i]);
        memset(v, 0, n * sizeof *v);
        break;
    case TOPK_FP16:
        for (size_t i = 0; i < n; i++) {
            uint16_t h = fp16_from(v[i]);

            le16_put(codes + 2 * (first + i), h);
            v[i] -= fp16_to(h);
        }
        break;
    case TOPK_INT8: topk_put_int8(v, n, scales + 4 * block, codes + first); break;
    case TOPK_INT2: topk_put_int2(v, n, scales + 8 * block, codes + first / 4); break;
    }
}

/* False: no encoder writes that. */
static inline bool topk_values_get(const struct topk_layout *l, size_t block, const uint8_t *wire,
                                   size_t n, float *v)
{
    const uint8_t *scales = wire + l->index_bytes, *codes = scales + l->scale_bytes;
    size_t first = block * TOPK_BLOCK;
    bool bad = false;

    switch (l->values) {
    case TOPK_FP32:
        for (size_t i = 0; i < n; i++) {
            v[i] = lef32_get(codes + 4 * (first + i));
            bad |= (float_bits(v[i]) & 0x7fffffffu) >= NONFINITE_BITS;
        }
        break;
    case TOPK_FP16:
        for (size_t i = 0; i < n; i++) {
            uint16_t h = le16_get(codes + 2 * (first + i));

            bad |= fp16_bad(h);
            v[i] = fp16_to(h);
        }
        break;
    case TOPK_INT8: return topk_get_int8(scales + 4 * block, codes + first, n, v);
    case TOPK_INT2: return topk_get_int2(scales + 8 * block, codes + first / 4, n, v);
    }
    return !bad;
}

#endif
