/* SPDX-License-Identifier: Apache-2.0
 * topk.c - the `param` elements of largest magnitude; of equal ones, the lower index.
 *
 * Wire: k ascending indices (4 bytes each), then their k fp32 values.
 * The k-th largest magnitude is found without sorting: floats of one sign order as
 * their bits do, so three histograms (11, 11 and 9 bits of the 31) narrow it down to
 * one bit pattern. One pass writes v and the first histogram, two passes read it, one
 * picks: 20 bytes read and 4 written an element, the rest per chosen element. */
#include <string.h>

#include "base/bytes.h"
#include "kernels.h"

enum { BINS = 2048 };

/* From the top, walk to the bin that holds the `wanted`-th largest; returns the bin and
 * leaves in *wanted how many of that bin are needed. */
static uint32_t bin_of(const uint32_t *histogram, uint32_t *wanted)
{
    uint32_t bin = BINS - 1;

    while (histogram[bin] < *wanted) *wanted -= histogram[bin--];
    return bin;
}

static void count_matching(const float *v, size_t n, uint32_t prefix, int prefix_shift, int shift,
                           uint32_t mask, uint32_t *histogram)
{
    memset(histogram, 0, BINS * sizeof *histogram);
    for (size_t i = 0; i < n; i++) {
        uint32_t magnitude = float_bits(v[i]) & 0x7fffffffu;

        if (magnitude >> prefix_shift == prefix) histogram[magnitude >> shift & mask]++;
    }
}

/* The magnitude bits of the k-th largest; *ties is how many that equal it are taken. */
static uint32_t threshold_of(const float *v, size_t n, const uint32_t *first, uint32_t k,
                             uint32_t *ties)
{
    uint32_t histogram[BINS], prefix;

    *ties = k;
    prefix = bin_of(first, ties);
    count_matching(v, n, prefix, 20, 9, 0x7ff, histogram);
    prefix = prefix << 11 | bin_of(histogram, ties);
    count_matching(v, n, prefix, 9, 0, 0x1ff, histogram);
    return prefix << 9 | bin_of(histogram, ties);
}

uint32_t OF_ISA(topk_encode)(const float *restrict x, const float *residual_in,
                            float *residual_out, size_t n, const struct encoding *e,
                            uint8_t *restrict wire)
{
    uint32_t k = e->param;
    uint32_t histogram[BINS] = { 0 }, largest = 0, threshold, ties, chosen = 0;

    for (size_t i = 0; i < n; i++) {
        float v = x[i] + residual_in[i];
        uint32_t magnitude = float_bits(v) & 0x7fffffffu;

        largest = magnitude > largest ? magnitude : largest;
        histogram[magnitude >> 20]++;
        residual_out[i] = v;
    }
    if (n == 0 || largest >= NONFINITE_BITS) return largest;
    threshold = threshold_of(residual_out, n, histogram, k, &ties);
    for (size_t i = 0; i < n && chosen < k; i++) {
        uint32_t magnitude = float_bits(residual_out[i]) & 0x7fffffffu;

        if (magnitude < threshold || (magnitude == threshold && ties == 0)) continue;
        ties -= magnitude == threshold;
        le32_put(wire + 4 * chosen, (uint32_t)i);
        lef32_put(wire + 4 * (k + (size_t)chosen), residual_out[i]);
        residual_out[i] = 0.0f;
        chosen++;
    }
    return largest;
}

bool OF_ISA(topk_decode_add)(const uint8_t *wire, size_t n, const struct encoding *e, float *out)
{
    uint32_t k = e->param, next = 0;

    for (uint32_t j = 0; j < k; j++) {
        uint32_t index = le32_get(wire + 4 * (size_t)j);
        float v = lef32_get(wire + 4 * (k + (size_t)j));

        if (index < next || index >= n || (float_bits(v) & 0x7fffffffu) >= NONFINITE_BITS)
            return false;
        out[index] += v;
        next = index + 1;
    }
    return true;
}

bool OF_ISA(topk_decode)(const uint8_t *wire, size_t n, const struct encoding *e, float *out)
{
    memset(out, 0, n * sizeof *out);
    return OF_ISA(topk_decode_add)(wire, n, e, out);
}
