/* SPDX-License-Identifier: Apache-2.0
 * dense.c - copies, sums and fp32 payloads, and the table of one instruction set.
 *
 * Bound by memory: encode reads 4 and writes 4 bytes an element, add and
 * decode_add read 8 and write 4. Plain loops that compilers vectorise. */
#include "base/bytes.h"
#include "kernels.h"

static inline uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t dense_largest(const float *x, size_t n)
{
    uint32_t largest = 0;

    for (size_t i = 0; i < n; i++) largest = larger(largest, float_bits(x[i]) & 0x7fffffffu);
    return largest;
}

static void dense_add(float *restrict sum, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++) sum[i] += x[i];
}

/* A true division: the average of N equal values is that value. */
static void dense_divide(float *x, size_t n, float by)
{
    for (size_t i = 0; i < n; i++) x[i] /= by;
}

static void dense_decay_add(const float *old, float keep, const float *x, size_t n, float *out)
{
    INDEPENDENT
    for (size_t i = 0; i < n; i++) out[i] = keep * old[i] + x[i];
}

uint32_t OF_ISA(fp32_encode)(const float *restrict x, const float *residual_in,
                             float *residual_out, size_t n, const struct encoding *e,
                             uint8_t *restrict wire)
{
    uint32_t largest = 0;

    (void)residual_in, (void)residual_out, (void)e;
    for (size_t i = 0; i < n; i++) {
        largest = larger(largest, float_bits(x[i]) & 0x7fffffffu);
        lef32_put(wire + 4 * i, x[i]);
    }
    return largest;
}

bool OF_ISA(fp32_decode)(const uint8_t *restrict wire, size_t n, const struct encoding *e,
                         float *restrict out)
{
    uint32_t largest = 0;

    (void)e;
    for (size_t i = 0; i < n; i++) {
        out[i] = lef32_get(wire + 4 * i);
        largest = larger(largest, float_bits(out[i]) & 0x7fffffffu);
    }
    return largest < NONFINITE_BITS;
}

bool OF_ISA(fp32_decode_add)(const uint8_t *restrict wire, size_t n, const struct encoding *e,
                             float *restrict out)
{
    uint32_t largest = 0;

    (void)e;
    for (size_t i = 0; i < n; i++) {
        float v = lef32_get(wire + 4 * i);

        largest = larger(largest, float_bits(v) & 0x7fffffffu);
        out[i] += v;
    }
    return largest < NONFINITE_BITS;
}

#define NAME_TEXT(isa) #isa
#define NAME_OF(isa) NAME_TEXT(isa)
#define ROW(codec) { OF_ISA(codec##_encode), OF_ISA(codec##_decode), OF_ISA(codec##_decode_add) }

const struct kernels OF_ISA(kernels) = {
    .name = NAME_OF(KERNELS_ISA),
    .largest = dense_largest,
    .add = dense_add,
    .divide = dense_divide,
    .decay_add = dense_decay_add,
    .to_bf16 = OF_ISA(half_to_bf16),
    .factors = { OF_ISA(factors_times), OF_ISA(factors_transposed_times), OF_ISA(factors_rebuild),
                 OF_ISA(factors_orthonormalise) },
    .fp32 = ROW(fp32),
    .bf16 = ROW(bf16),
    .fp16 = ROW(fp16),
    .int8 = ROW(int8),
    .topk = ROW(topk),
    .fp8 = ROW(fp8),
    .int4 = ROW(int4),
    .int2 = ROW(int2),
    .onebit = ROW(onebit),
    .randk = ROW(randk),
};
