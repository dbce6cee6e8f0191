/* SPDX-License-Identifier: Apache-2.0
 * codec.h - turn n floats into bytes of a size known in advance, and back.
 *
 * A codec is one row: a name, a number for the payload header, and how n elements are
 * laid out. Its loops are the device's kernels. Codecs know nothing of ranks.
 * Formats: docs/wire-format.md. To add one: CONTRIBUTING.md. */
#ifndef STRAIT_CODEC_CODEC_H
#define STRAIT_CODEC_CODEC_H

#include "base/config.h"
#include "base/error.h"
#include "kernels.h"
#include "kernels/topk.h"

/* What the configuration says about codecs. */
struct codec_settings {
    uint32_t block;    /* elements that share a scale; a multiple of 8 */
    double topk_ratio, randk_ratio; /* share of the elements that is sent */
    enum topk_values topk_values;   /* how values of these are coded */
    uint32_t powersgd_rank; /* columns of each factor */
    bool stochastic;   /* fp8, int8, int4, int2: round by chance, right on average */
};

/* From the values of comm.*. */
struct codec_settings codec_settings_of(const struct strait_config *config);

struct codec;

/* One run of elements under one codec: all that sender and receiver know in advance. */
struct codec_shape {
    const struct codec *codec;
    size_t elements;
    uint32_t param;   /* into the payload header */
    uint8_t variant;  /* into the payload header */
    size_t wire_bytes;
    bool stochastic;  /* the sender's choice: receivers need not know */
};

/* Where a run of elements stands in the sequences of the counter-based generator. */
struct codec_draw {
    uint64_t key;   /* of what sender and receiver draw alike */
    uint64_t noise; /* of what the sender alone draws */
    uint64_t first; /* the count at element 0 */
};

struct codec {
    const char *name;
    uint8_t id;        /* in the payload header; never reused */
    bool lossy;        /* an encoding loses something, which a residual keeps */
    bool factored;     /* encodes factors of a gradient, of which the engine keeps residuals */
    size_t kernels;    /* offset of its row in struct kernels */
    /* Fill in param, variant and wire_bytes for shape->elements. */
    void (*lay_out)(const struct codec_settings *settings, struct codec_shape *shape);
    /* Set to 0 those of x's elements that `wire`, which encode just wrote, conveys. NULL: a
     * codec that conveys something of every element. */
    void (*clear_sent)(const struct codec_shape *shape, struct codec_draw draw,
                       const uint8_t *wire, float *x);
};

extern const struct codec codec_fp32, codec_bf16, codec_fp16, codec_int8, codec_topk, codec_fp8,
    codec_int4, codec_int2, codec_onebit, codec_randk, codec_powersgd;

/* All codecs, NULL at the end. */
extern const struct codec *const codec_table[];

/* NULL when there is none of that name. */
const struct codec *codec_find(const char *name);

struct codec_shape codec_shape(const struct codec *codec, const struct codec_settings *settings,
                               size_t elements);

/* Encode x + residual_in to wire (shape->wire_bytes) and leave in residual_out what the
 * decoder will miss. The residuals are n floats each, the same or apart; a lossless
 * codec takes NULL. STRAIT_ERR_NONFINITE: x + residual_in holds a NaN or infinity. */
strait_status codec_encode(const struct codec_shape *shape, const struct kernels *kernels,
                           struct codec_draw draw, const float *x, const float *residual_in,
                           float *residual_out, uint8_t *wire);

enum codec_decode_mode { DECODE_WRITE, DECODE_ADD };

/* Decode to (or add to) out, n floats. STRAIT_ERR_FORMAT: `bytes` is not the size that
 * the shape says, or the content is what no encoder writes. */
strait_status codec_decode(const struct codec_shape *shape, const struct kernels *kernels,
                           struct codec_draw draw, const uint8_t *wire, size_t bytes,
                           enum codec_decode_mode mode, float *out);

#endif
