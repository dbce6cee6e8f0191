/* SPDX-License-Identifier: Apache-2.0
 * kernels.h - the inner loops, as one table per device.
 *
 * Each codec has three: encode, decode, and decode-and-add. They move the encoded
 * bytes of docs/wire-format.md and nothing else: no ranks, no headers, no allocation.
 * A kernel never contracts a product and a sum into one rounding, so that every
 * device and compiler gives the same bits. */
#ifndef STRAIT_KERNELS_H
#define STRAIT_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Magnitude bits of a float from here on are infinity or NaN. */
#define NONFINITE_BITS 0x7f800000u

/* How to encode: everything beside the values that the bytes depend on. Encoder and
 * decoder must be given the same of the first four. */
struct encoding {
    uint32_t param;   /* the codec's number of the payload header: a block, or k */
    uint32_t variant; /* the codec's variant of the payload header */
    uint64_t key;     /* of the counter-based generator (base/random.h) */
    uint64_t first;   /* the count at element 0 */

    /* the encoder's alone */
    bool stochastic;  /* round by chance, right on average */
    uint64_t noise;   /* the key of that chance */
};

/* Encode v = x + residual_in (both n floats) to `wire`; residual_out = v - decoded(v).
 * residual_out is residual_in itself or does not overlap it. Lossless codecs touch no
 * residual. Returns the largest magnitude bits of v: from NONFINITE_BITS on, the output
 * means nothing. */
typedef uint32_t encode_kernel(const float *x, const float *residual_in, float *residual_out,
                               size_t n, const struct encoding *e, uint8_t *wire);

/* Decode n elements: `out = decoded` or `out += decoded`. False: `wire` holds what no
 * encoder writes; `out` means nothing then. */
typedef bool decode_kernel(const uint8_t *wire, size_t n, const struct encoding *e, float *out);

struct codec_kernels {
    encode_kernel *encode;
    decode_kernel *decode, *decode_add;
};

/* A matrix M of rows x columns, row after row, and thin factors, column after column: P is
 * `rank` columns of `rows` elements, Q `rank` columns of `columns` elements. Where P's columns
 * are `stride` apart, M may be some rows of a larger matrix. Nothing overlaps.
 * A value that is not finite makes the products that depend on it not finite. */
struct factor_kernels {
    /* P = M Q */
    void (*times)(const float *m, size_t rows, size_t columns, const float *q, size_t rank,
                  float *p, size_t stride);
    /* Q = M' P */
    void (*transposed_times)(const float *m, size_t rows, size_t columns, const float *p,
                             size_t rank, float *q);
    /* residual = M - P Q', or the nearest float (NULL: not wanted), then M = P Q'; returns the
     * largest magnitude bits of that */
    uint32_t (*rebuild)(float *m, size_t rows, size_t columns, const float *p, size_t stride,
                        const float *q, size_t rank, float *residual);
    /* P's columns to length 1, at right angles; one that depends on those before it, to 0 */
    void (*orthonormalise)(float *p, size_t rows, size_t rank);
};

struct kernels {
    const char *name; /* of the instruction set */
    uint32_t (*largest)(const float *x, size_t n);          /* magnitude bits */
    void (*add)(float *sum, const float *x, size_t n);      /* sum += x */
    void (*divide)(float *x, size_t n, float by);           /* x /= by */
    /* out = keep * old + x; out is old itself or does not overlap it */
    void (*decay_add)(const float *old, float keep, const float *x, size_t n, float *out);
    void (*to_bf16)(const float *x, size_t n, uint8_t *out); /* as bf16 payloads hold them */
    struct factor_kernels factors;
    struct codec_kernels fp32, bf16, fp16, int8, topk, fp8, int4, int2, onebit, randk;
};

/* The host's tables: the same loops compiled for several instruction sets. All give the
 * same bits. STRAIT_KERNELS chooses one by name (device/host.c). */
const struct kernels *kernels_host(void);                    /* the best that runs here */
const struct kernels *kernels_by_name(const char *name);     /* NULL: none that runs here */
const struct kernels *const *kernels_tables(void);           /* those that run here, NULL at the
                                                                end; the best comes last */
extern const struct kernels kernels_baseline, kernels_avx2, kernels_avx512;

/* What follows is for the loops themselves, compiled once per KERNELS_ISA: names end in
 * it. A loop marked INDEPENDENT may touch one array as input and output, but each
 * element by itself: the compiler need not prove it. */
#ifdef KERNELS_ISA
#define ISA_JOIN_EXPANDED(name, isa) name##_##isa
#define ISA_JOIN(name, isa) ISA_JOIN_EXPANDED(name, isa)
#define OF_ISA(name) ISA_JOIN(name, KERNELS_ISA)

#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define DECLARE_CODEC(codec)               \
    encode_kernel OF_ISA(codec##_encode);  \
    decode_kernel OF_ISA(codec##_decode), OF_ISA(codec##_decode_add)

void OF_ISA(half_to_bf16)(const float *x, size_t n, uint8_t *out);

/* The files of the same names; bf16 and fp16 are in half.c. */
DECLARE_CODEC(fp32);
DECLARE_CODEC(bf16);
DECLARE_CODEC(fp16);
DECLARE_CODEC(int8);
DECLARE_CODEC(topk);
DECLARE_CODEC(fp8);
DECLARE_CODEC(int4);
DECLARE_CODEC(int2);
DECLARE_CODEC(onebit);
DECLARE_CODEC(randk);

/* factors.c */
void OF_ISA(factors_times)(const float *m, size_t rows, size_t columns, const float *q,
                           size_t rank, float *p, size_t stride);
void OF_ISA(factors_transposed_times)(const float *m, size_t rows, size_t columns, const float *p,
                                      size_t rank, float *q);
uint32_t OF_ISA(factors_rebuild)(float *m, size_t rows, size_t columns, const float *p,
                                 size_t stride, const float *q, size_t rank, float *residual);
void OF_ISA(factors_orthonormalise)(float *p, size_t rows, size_t rank);
#endif

#endif
