/* SPDX-License-Identifier: Apache-2.0
 * codec.c - the table of codecs and the checks that all of them share. */
#include "codec/codec.h"

#include <string.h>

const struct codec *const codec_table[] = {
    &codec_fp32, &codec_bf16, &codec_fp16, &codec_int8, &codec_topk,
    &codec_fp8, &codec_int4, &codec_int2, &codec_onebit, &codec_randk, &codec_powersgd,
    NULL,
};

const struct codec *codec_find(const char *name)
{
    for (int i = 0; codec_table[i] != NULL; i++)
        if (strcmp(codec_table[i]->name, name) == 0) return codec_table[i];
    return NULL;
}

static enum topk_values topk_values_named(const char *name)
{
    static const char *const names[] = { [TOPK_FP32] = "fp32", [TOPK_FP16] = "fp16",
                                         [TOPK_INT8] = "int8", [TOPK_INT2] = "int2" };
    int i = 0;

    while (strcmp(names[i], name) != 0) i++; /* the option allows no other */
    return (enum topk_values)i;
}

struct codec_settings codec_settings_of(const struct strait_config *config)
{
    return (struct codec_settings){
        .block = (uint32_t)config->comm.block,
        .topk_ratio = config->comm.topk_ratio,
        .topk_values = topk_values_named(config->comm.topk_values),
        .randk_ratio = config->comm.randk_ratio,
        .powersgd_rank = (uint32_t)config->comm.powersgd_rank,
        .stochastic = strcmp(config->comm.rounding, "stochastic") == 0,
    };
}

struct codec_shape codec_shape(const struct codec *codec, const struct codec_settings *settings,
                               size_t elements)
{
    struct codec_shape shape = { .codec = codec, .elements = elements,
                                 .stochastic = settings->stochastic };

    codec->lay_out(settings, &shape);
    return shape;
}

static struct encoding encoding_of(const struct codec_shape *shape, struct codec_draw draw)
{
    return (struct encoding){ .param = shape->param, .variant = shape->variant, .key = draw.key,
                              .first = draw.first, .stochastic = shape->stochastic,
                              .noise = draw.noise };
}

static const struct codec_kernels *row(const struct codec *codec, const struct kernels *kernels)
{
    return (const struct codec_kernels *)((const char *)kernels + codec->kernels);
}

strait_status codec_encode(const struct codec_shape *shape, const struct kernels *kernels,
                           struct codec_draw draw, const float *x, const float *residual_in,
                           float *residual_out, uint8_t *wire)
{
    struct encoding e = encoding_of(shape, draw);
    uint32_t largest = row(shape->codec, kernels)->encode(x, residual_in, residual_out,
                                                          shape->elements, &e, wire);

    if (largest >= NONFINITE_BITS)
        return error_set(STRAIT_ERR_NONFINITE, "%s: a value to encode is not finite",
                         shape->codec->name);
    return STRAIT_OK;
}

strait_status codec_decode(const struct codec_shape *shape, const struct kernels *kernels,
                           struct codec_draw draw, const uint8_t *wire, size_t bytes,
                           enum codec_decode_mode mode, float *out)
{
    struct encoding e = encoding_of(shape, draw);
    const struct codec_kernels *k = row(shape->codec, kernels);
    decode_kernel *decode = mode == DECODE_ADD ? k->decode_add : k->decode;

    if (bytes != shape->wire_bytes)
        return error_set(STRAIT_ERR_FORMAT, "%s: %zu elements take %zu bytes, not %zu",
                         shape->codec->name, shape->elements, shape->wire_bytes, bytes);
    if (!decode(wire, shape->elements, &e, out))
        return error_set(STRAIT_ERR_FORMAT, "%s: the payload holds what no encoder writes",
                         shape->codec->name);
    return STRAIT_OK;
}
