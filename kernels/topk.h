/* SPDX-License-Identifier: Apache-2.0
 * topk.h - the bytes of a topk payload: which k of n elements, then their values.
 *
 * Which: an index is cut into its l low bits, which stand one behind the other, and its upper
 * part u, which the j-th index says by bit u + j of a row of bits: ones that stand for indices,
 * zeros for steps (P. Elias 1974, "Efficient storage and retrieval by content and address of
 * static files"). With l = log2(n / k) that is little above the least that k of n elements can
 * take, and its size depends on n and k alone. Where a bit for every element is no longer, it is
 * that: l = 0, and the j-th index is bit u. */
#ifndef STRAIT_KERNELS_TOPK_H
#define STRAIT_KERNELS_TOPK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

/* How the values are coded; 3 is more than one bit, so variants hold them above TOPK_BITMAP. */
enum topk_values { TOPK_FP32, TOPK_FP16, TOPK_INT8, TOPK_INT2 };

enum {
    TOPK_BITMAP = 1, /* in a variant: a bit for every element */
    TOPK_BLOCK = 256 /* values that share a scale, or two */
};

static inline enum topk_values topk_values_of(uint32_t variant)
{
    return (enum topk_values)(variant >> 1 & 3);
}

struct topk_layout {
    uint32_t k;
    enum topk_values values;
    bool bitmap;
    unsigned low_bits;
    size_t low_bytes, high_bytes; /* where the values begin: their sum */
    size_t scale_bytes, wire_bytes;
};

static inline struct topk_layout topk_layout(size_t n, uint32_t k, enum topk_values values)
{
    static const size_t bits[] = { 32, 16, 8, 2 }, scale_bytes[] = { 0, 0, 4, 8 };
    unsigned low = k > 0 ? 63 - (unsigned)__builtin_clzll((unsigned long long)(n / k)) : 0;
    struct topk_layout l = { .k = k, .values = values, .low_bits = low };
    size_t blocks = ((size_t)k + TOPK_BLOCK - 1) / TOPK_BLOCK;

    l.low_bytes = ((size_t)k * low + 7) / 8;
    l.high_bytes = k > 0 ? (k + ((n - 1) >> low) + 7) / 8 : 0;
    l.bitmap = (n + 7) / 8 <= l.low_bytes + l.high_bytes;
    if (l.bitmap) {
        l.low_bits = 0;
        l.low_bytes = 0;
        l.high_bytes = (n + 7) / 8;
    }
    l.scale_bytes = scale_bytes[values] * blocks;
    l.wire_bytes = l.low_bytes + l.high_bytes + l.scale_bytes + ((size_t)k * bits[values] + 7) / 8;
    return l;
}

/* The 8 bytes at `from`, or those before `end`. */
static inline uint64_t topk_word(const uint8_t *from, const uint8_t *end)
{
    uint8_t some[8] = { 0 };

    if (end - from >= 8) return le64_get(from);
    memcpy(some, from, (size_t)(end - from));
    return le64_get(some);
}

/* ---- writing ---- */
struct topk_writer {
    uint8_t *low, *high, *end; /* of the high bits */
    bool bitmap;
    unsigned low_bits;
    size_t j; /* indices written */
};

static inline void topk_write(struct topk_writer *w, const struct topk_layout *l, uint8_t *wire)
{
    *w = (struct topk_writer){ .low = wire, .high = wire + l->low_bytes,
                               .end = wire + l->low_bytes + l->high_bytes, .bitmap = l->bitmap,
                               .low_bits = l->low_bits };
    memset(wire, 0, l->low_bytes + l->high_bytes);
}

/* Larger than the last. */
static inline void topk_put(struct topk_writer *w, size_t index)
{
    size_t bit = w->j * w->low_bits, up = (index >> w->low_bits) + (w->bitmap ? 0 : w->j);
    uint8_t *at = w->low + bit / 8;
    uint64_t low = (index & ((1ull << w->low_bits) - 1)) << bit % 8;

    if (w->end - at >= 8) le64_put(at, le64_get(at) | low);
    else for (; low != 0; low >>= 8) *at++ |= (uint8_t)low;
    w->high[up / 8] |= (uint8_t)(1u << up % 8);
    w->j++;
}

/* ---- reading what a peer wrote ---- */
struct topk_reader {
    const uint8_t *low, *high, *at, *end;
    struct topk_layout layout;
    uint64_t word; /* of the high bits before `at`, those not read yet */
    size_t j;      /* indices read */
};

static inline struct topk_reader topk_read(const struct topk_layout *l, const uint8_t *wire)
{
    const uint8_t *high = wire + l->low_bytes;

    return (struct topk_reader){ .low = wire, .high = high, .at = high,
                                 .end = high + l->high_bytes, .layout = *l };
}

/* False: there are no more ones. At most k times. */
static inline bool topk_next(struct topk_reader *r, size_t *index)
{
    unsigned low_bits = r->layout.low_bits;
    size_t bit = r->j * low_bits, up;
    uint64_t low;

    while (r->word == 0) {
        if (r->at >= r->end) return false;
        r->word = topk_word(r->at, r->end);
        r->at += 8;
    }
    up = 8 * (size_t)(r->at - 8 - r->high) + (size_t)__builtin_ctzll(r->word);
    r->word &= r->word - 1;
    low = low_bits > 0 ? topk_word(r->low + bit / 8, r->end) >> bit % 8 : 0;
    if (!r->layout.bitmap) up -= r->j;
    r->j++;
    *index = up << low_bits | (low & ((1ull << low_bits) - 1));
    return true;
}

/* After k indices: nothing else is said. */
static inline bool topk_at_end(const struct topk_reader *r)
{
    size_t bits = r->layout.k * (size_t)r->layout.low_bits;
    bool padded = bits % 8 != 0 && r->low[bits / 8] >> bits % 8 != 0;

    for (const uint8_t *at = r->at; at < r->end; at++) padded |= *at != 0;
    return r->word == 0 && !padded;
}

#endif
