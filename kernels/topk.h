/* SPDX-License-Identifier: Apache-2.0
 * topk.h - the bytes of a topk payload: which k of n elements, then their values.
 *
 * Which: an index is cut into its l low bits, which stand one behind the other, and its upper
 * part u. Behind the low bits of all follows a row of bits in which the j-th index sets bit
 * u + j: ones stand for indices, zeros for steps (P. Elias 1974, "Efficient storage and retrieval
 * by content and address of static files"). With l = log2(n / k) that is little above the least
 * that k of n elements can take, and its size depends on n and k alone; neither a smaller n nor a
 * smaller k takes more. Where a bit for every element is no longer, it is that: l = 0, and the
 * j-th index is bit u. */
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
    size_t index_bytes; /* the values begin behind them */
    size_t scale_bytes, wire_bytes;
};

static inline struct topk_layout topk_layout(size_t n, uint32_t k, enum topk_values values)
{
    static const size_t bits[] = { 32, 16, 8, 2 }, scale_bytes[] = { 0, 0, 4, 8 };
    unsigned low = k > 0 ? 63 - (unsigned)__builtin_clzll((unsigned long long)(n / k)) : 0;
    size_t index_bits = k > 0 ? (size_t)k * (low + 1) + ((n - 1) >> low) : 0;
    size_t blocks = ((size_t)k + TOPK_BLOCK - 1) / TOPK_BLOCK;
    struct topk_layout l = { .k = k, .values = values, .bitmap = n <= index_bits };

    l.low_bits = l.bitmap ? 0 : low;
    l.index_bytes = ((l.bitmap ? n : index_bits) + 7) / 8;
    l.scale_bytes = scale_bytes[values] * blocks;
    l.wire_bytes = l.index_bytes + l.scale_bytes + ((size_t)k * bits[values] + 7) / 8;
    return l;
}

/* Where the row of bits begins that comes after the low bits. */
static inline size_t topk_row(const struct topk_layout *l)
{
    return (size_t)l->k * l->low_bits;
}

/* The 8 bytes from `at` on, or those before `end`. */
static inline uint64_t topk_word(const uint8_t *bytes, size_t at, size_t end)
{
    uint8_t some[8] = { 0 };

    if (end - at >= 8) return le64_get(bytes + at);
    memcpy(some, bytes + at, end - at);
    return le64_get(some);
}

/* ---- writing ---- */
struct topk_writer {
    struct topk_layout layout;
    uint8_t *wire;
    size_t j; /* indices written */
};

static inline struct topk_writer topk_write(const struct topk_layout *l, uint8_t *wire)
{
    memset(wire, 0, l->index_bytes);
    return (struct topk_writer){ .layout = *l, .wire = wire };
}

/* Larger than the last. */
static inline void topk_put(struct topk_writer *w, size_t index)
{
    unsigned low_bits = w->layout.low_bits;
    size_t bit = w->j * low_bits, at = bit / 8;
    size_t up = topk_row(&w->layout) + (index >> low_bits) + (w->layout.bitmap ? 0 : w->j);
    uint64_t low = (index & ((1ull << low_bits) - 1)) << bit % 8;

    if (w->layout.index_bytes - at >= 8) le64_put(w->wire + at, le64_get(w->wire + at) | low);
    else for (; low != 0; low >>= 8) w->wire[at++] |= (uint8_t)low;
    w->wire[up / 8] |= (uint8_t)(1u << up % 8);
    w->j++;
}

/* ---- reading what a peer wrote ---- */
struct topk_reader {
    struct topk_layout layout;
    const uint8_t *wire;
    size_t at;     /* the byte behind those that went into `word` */
    uint64_t word; /* of the row, the bits that are not read yet */
    size_t j;      /* indices read */
};

static inline struct topk_reader topk_read(const struct topk_layout *l, const uint8_t *wire)
{
    size_t row = topk_row(l);
    struct topk_reader r = { .layout = *l, .wire = wire, .at = row / 8 + 8 };

    if (l->k > 0)
        r.word = topk_word(wire, row / 8, l->index_bytes) >> row % 8 << row % 8;
    return r;
}

/* False: there are no more ones. At most k times. */
static inline bool topk_next(struct topk_reader *r, size_t *index)
{
    const struct topk_layout *l = &r->layout;
    size_t bit = r->j * l->low_bits, up;
    uint64_t low;

    for (; r->word == 0; r->at += 8) {
        if (r->at >= l->index_bytes) return false;
        r->word = topk_word(r->wire, r->at, l->index_bytes);
    }
    up = 8 * (r->at - 8) + (size_t)__builtin_ctzll(r->word) - topk_row(l);
    r->word &= r->word - 1;
    low = topk_word(r->wire, bit / 8, l->index_bytes) >> bit % 8;
    if (!l->bitmap) up -= r->j;
    r->j++;
    *index = up << l->low_bits | (low & ((1ull << l->low_bits) - 1));
    return true;
}

/* After k indices: nothing else is said. */
static inline bool topk_at_end(const struct topk_reader *r)
{
    bool more = r->word != 0;

    for (size_t at = r->at; at < r->layout.index_bytes; at++) more |= r->wire[at] != 0;
    return !more;
}

#endif
