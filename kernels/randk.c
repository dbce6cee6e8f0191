/* SPDX-License-Identifier: Apache-2.0
 * randk.c - k elements drawn by a generator that sender and receiver share, as floats.
 *
 * One of each of k runs, so that they are spread evenly and come in ascending order. Encode
 * reads 8 and writes 4 bytes an element in one pass, and then touches k of them. */
#include "kernels/randk.h"

#include <string.h>

#include "base/bytes.h"
#include "kernels.h"

uint32_t OF_ISA(randk_encode)(const float *x, const float *residual_in, float *residual_out,
                              size_t n, const struct encoding *e, uint8_t *wire)
{
    int32_t largest = 0;

    INDEPENDENT
    for (size_t i = 0; i < n; i++) {
        float v = x[i] + residual_in[i];
        int32_t magnitude = (int32_t)(float_bits(v) & 0x7fffffffu);

        largest = magnitude > largest ? magnitude : largest;
        residual_out[i] = v;
    }
    for (uint32_t j = 0; j < e->param; j++) {
        size_t at = randk_position(n, e->param, j, e->key, e->first);

        lef32_put(wire + 4 * (size_t)j, residual_out[at]);
        residual_out[at] = 0;
    }
    return (uint32_t)largest;
}

bool OF_ISA(randk_decode_add)(const uint8_t *wire, size_t n, const struct encoding *e, float *out)
{
    bool good = true;

    for (uint32_t j = 0; j < e->param; j++) {
        float v = lef32_get(wire + 4 * (size_t)j);

        out[randk_position(n, e->param, j, e->key, e->first)] += v;
        good &= (float_bits(v) & 0x7fffffffu) < NONFINITE_BITS;
    }
    return good;
}

bool OF_ISA(randk_decode)(const uint8_t *wire, size_t n, const struct encoding *e, float *out)
{
    memset(out, 0, n * sizeof *out);
    return OF_ISA(randk_decode_add)(wire, n, e, out);
}
