/* SPDX-License-Identifier: Apache-2.0
 * topk.c - the `param` elements of largest magnitude; of equal ones, the lower index.
 *
 * Wire: which they are (topk.h), then their values (topk_values.h), by ascending index.
 *
 * The k-th largest magnitude is found without sorting: floats of one sign order as their
 * bits do. The first pass writes v and counts the largest of every 16 elements in bins
 * of the top 11 of the 31 bits: the k-th of those is a bound that at least k elements
 * reach, and that, for a small k, few more do. The second pass, 16 compared at once, counts
 * the elements that reach it; where they are few, the threshold's other 11 and 9 bits come
 * from those alone. The last pass picks. */
#include "kernels/topk_values.h"

#ifdef __SSE2__
#include <immintrin.h>
#endif

enum { BINS = 2048, GROUPS = 16, SPAN = GROUPS * LANES, FEW = 4096 };

static inline uint32_t magnitude_of(float v)
{
    return float_bits(v) & 0x7fffffffu;
}

/* Bit j: the magnitude of v[j] is at least `from`, for 16 elements. */
ALWAYS_INLINE uint32_t reach(const float *v, uint32_t from)
{
#if defined(__AVX512F__)
    __m512i m = _mm512_and_si512(_mm512_loadu_si512(v), _mm512_set1_epi32(0x7fffffff));

    return _mm512_cmpge_epu32_mask(m, _mm512_set1_epi32((int)from));
#elif defined(__AVX2__)
    __m256i off = _mm256_set1_epi32(0x7fffffff), below = _mm256_set1_epi32((int)from - 1);
    __m256i a = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(const void *)v), off);
    __m256i b = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(const void *)(v + 8)), off);

    a = _mm256_cmpgt_epi32(a, below);
    b = _mm256_cmpgt_epi32(b, below);
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(a)) |
           (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(b)) << 8;
#elif defined(__SSE2__)
    __m128i off = _mm_set1_epi32(0x7fffffff), below = _mm_set1_epi32((int)from - 1);
    uint32_t mask = 0;

    for (int j = 0; j < LANES; j += 4) {
        __m128i m = _mm_loadu_si128((const __m128i *)(const void *)(v + j));

        m = _mm_cmpgt_epi32(_mm_and_si128(m, off), below);
        mask |= (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(m)) << j;
    }
    return mask;
#else
    uint32_t mask = 0;

    for (int j = 0; j < LANES; j++) mask |= (uint32_t)(magnitude_of(v[j]) >= from) << j;
    return mask;
#endif
}

/* The same for up to 16 elements, the end of an array. */
ALWAYS_INLINE uint32_t reach_some(const float *v, size_t n, uint32_t from)
{
    uint32_t mask = 0;

    if (n >= LANES) return reach(v, from);
    for (size_t j = 0; j < n; j++) mask |= (uint32_t)(magnitude_of(v[j]) >= from) << j;
    return mask;
}

/* v = x + residual_in; counts lane maxima of every SPAN elements; largest magnitude. */
static uint32_t sum_and_bound(const float *restrict x, const float *residual_in, float *v,
                              size_t n, uint32_t *histogram)
{
    uint32_t largest = 0;

    for (size_t at = 0; at < n; at += SPAN) {
        size_t count = n - at < SPAN ? n - at : SPAN;
        int32_t lane[LANES] = { 0 };

        for (size_t g = 0; g + LANES <= count; g += LANES) {
            INDEPENDENT
            for (size_t j = 0; j < LANES; j++) {
                float sum = x[at + g + j] + residual_in[at + g + j];
                int32_t magnitude = (int32_t)magnitude_of(sum);

                v[at + g + j] = sum;
                lane[j] = magnitude > lane[j] ? magnitude : lane[j];
            }
        }
        for (size_t i = at + count / LANES * LANES; i < at + count; i++) {
            v[i] = x[i] + residual_in[i];
            largest = magnitude_of(v[i]) > largest ? magnitude_of(v[i]) : largest;
        }
        for (size_t j = 0; j < LANES; j++) {
            largest = (uint32_t)lane[j] > largest ? (uint32_t)lane[j] : largest;
            histogram[lane[j] >> 20]++;
        }
    }
    return largest;
}

/* From the top, walk to the bin that holds the `wanted`-th largest, or to bin 0; leaves in
 * *wanted how many of that bin are needed. */
static uint32_t bin_of(const uint32_t *histogram, uint32_t *wanted)
{
    uint32_t bin = BINS - 1;

    while (bin > 0 && histogram[bin] < *wanted) *wanted -= histogram[bin--];
    return bin;
}

/* Count the top 11 bits of the magnitudes from `from` on, and keep the first FEW of them.
 * Returns how many there are. */
static size_t count_first(const float *v, size_t n, uint32_t from, uint32_t *histogram,
                          uint32_t *few)
{
    size_t found = 0;

    memset(histogram, 0, BINS * sizeof *histogram);
    for (size_t i = 0; i < n; i += LANES)
        for (uint32_t mask = reach_some(v + i, n - i, from); mask != 0; mask &= mask - 1) {
            uint32_t magnitude = magnitude_of(v[i + (size_t)__builtin_ctz(mask)]);

            if (found < FEW) few[found] = magnitude;
            found++;
            histogram[magnitude >> 20]++;
        }
    return found;
}

/* Where the magnitudes are that the later counts go through: the few, or all of v. */
struct candidates {
    const float *v;
    const uint32_t *few;
    size_t n, found;
};

/* Of the magnitudes whose bits above `prefix_shift` are `prefix`, count those from `shift`
 * on. */
static void count_next(const struct candidates *c, uint32_t prefix, int prefix_shift, int shift,
                       uint32_t *histogram)
{
    uint32_t from = prefix << prefix_shift, low = (1u << (prefix_shift - shift)) - 1;

    memset(histogram, 0, BINS * sizeof *histogram);
    if (c->found <= FEW) {
        for (size_t i = 0; i < c->found; i++)
            if (c->few[i] >> prefix_shift == prefix) histogram[c->few[i] >> shift & low]++;
        return;
    }
    for (size_t i = 0; i < c->n; i += LANES)
        for (uint32_t mask = reach_some(c->v + i, c->n - i, from); mask != 0; mask &= mask - 1) {
            uint32_t magnitude = magnitude_of(c->v[i + (size_t)__builtin_ctz(mask)]);

            if (magnitude >> prefix_shift == prefix) histogram[magnitude >> shift & low]++;
        }
}

/* The magnitude bits of the k-th largest; *ties is how many that equal it are taken. */
static uint32_t threshold_of(const float *v, size_t n, uint32_t *histogram, uint32_t k,
                             uint32_t *ties)
{
    uint32_t few[FEW], wanted = k, prefix, from = bin_of(histogram, &wanted) << 20;
    struct candidates c = { .v = v, .few = few, .n = n };

    *ties = k;
    c.found = count_first(v, n, from, histogram, few);
    prefix = bin_of(histogram, ties);
    count_next(&c, prefix, 20, 9, histogram);
    prefix = prefix << 11 | bin_of(histogram, ties);
    count_next(&c, prefix, 9, 0, histogram);
    return prefix << 9 | bin_of(histogram, ties);
}

/* Chosen elements whose values are not on the wire yet. */
struct chosen {
    float value[TOPK_BLOCK];
    size_t index[TOPK_BLOCK], count, block;
};

/* Put them there; what that loses is left in v. */
static void flush(struct chosen *c, const struct topk_layout *l, float *v, uint8_t *wire)
{
    topk_values_put(l, c->block++, c->value, c->count, wire);
    for (size_t j = 0; j < c->count; j++) v[c->index[j]] = c->value[j];
    c->count = 0;
}

static void pick(float *v, size_t n, const struct topk_layout *l, uint32_t threshold,
                 uint32_t ties, uint8_t *wire)
{
    struct chosen c = { .count = 0 };
    struct topk_writer out = topk_write(l, wire);

    for (size_t i = 0; i < n && out.j < l->k; i += LANES)
        for (uint32_t mask = reach_some(v + i, n - i, threshold); mask != 0; mask &= mask - 1) {
            size_t index = i + (size_t)__builtin_ctz(mask);
            bool tie = magnitude_of(v[index]) == threshold;

            if (tie && ties == 0) continue;
            ties -= tie;
            topk_put(&out, index);
            c.index[c.count] = index;
            c.value[c.count++] = v[index];
            if (c.count == TOPK_BLOCK) flush(&c, l, v, wire);
        }
    if (c.count > 0) flush(&c, l, v, wire);
}

uint32_t OF_ISA(topk_encode)(const float *x, const float *residual_in, float *residual_out,
                             size_t n, const struct encoding *e, uint8_t *wire)
{
    struct topk_layout l = topk_layout(n, e->param, topk_values_of(e->variant));
    uint32_t histogram[BINS] = { 0 }, largest, threshold, ties;

    largest = sum_and_bound(x, residual_in, residual_out, n, histogram);
    if (n == 0 || largest >= NONFINITE_BITS) return largest;
    threshold = threshold_of(residual_out, n, histogram, l.k, &ties);
    pick(residual_out, n, &l, threshold, ties, wire);
    return largest;
}

bool OF_ISA(topk_decode_add)(const uint8_t *wire, size_t n, const struct encoding *e, float *out)
{
    struct topk_layout l = topk_layout(n, e->param, topk_values_of(e->variant));
    struct topk_reader in = topk_read(&l, wire);
    size_t next = 0;

    for (size_t block = 0; block * TOPK_BLOCK < l.k; block++) {
        size_t left = l.k - block * TOPK_BLOCK, count = left < TOPK_BLOCK ? left : TOPK_BLOCK;
        float value[TOPK_BLOCK];

        if (!topk_values_get(&l, block, wire, count, value)) return false;
        for (size_t j = 0; j < count; j++) {
            size_t index;

            if (!topk_next(&in, &index) || index < next || index >= n) return false;
            out[index] += value[j];
            next = index + 1;
        }
    }
    return topk_at_end(&in);
}

bool OF_ISA(topk_decode)(const uint8_t *wire, size_t n, const struct encoding *e, float *out)
{
    memset(out, 0, n * sizeof *out);
    return OF_ISA(topk_decode_add)(wire, n, e, out);
}
