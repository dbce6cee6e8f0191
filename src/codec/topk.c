/* SPDX-License-Identifier: Apache-2.0
 * topk.c - exactly k elements of a slice, which they are and their values; the parameter is k,
 * the variant how both are said (kernels/topk.h). */
#include <math.h>

#include "codec/codec.h"
#include "kernels/topk.h"

/* k depends on n and the ratio alone: every rank knows every size in advance. */
static void lay_out(const struct codec_settings *settings, struct codec_shape *shape)
{
    double n = (double)shape->elements, k = ceil(settings->topk_ratio * n);
    struct topk_layout l;

    shape->param = (uint32_t)(k < n ? k : n);
    l = topk_layout(shape->elements, shape->param, settings->topk_values);
    shape->variant = (uint8_t)((l.bitmap ? TOPK_BITMAP : 0) | l.values << 1);
    shape->wire_bytes = l.wire_bytes;
}

static void clear_sent(const struct codec_shape *shape, struct codec_draw draw,
                       const uint8_t *wire, float *x)
{
    struct topk_layout l = topk_layout(shape->elements, shape->param,
                                       topk_values_of(shape->variant));
    struct topk_reader in = topk_read(&l, wire);
    size_t index;

    (void)draw;
    for (uint32_t j = 0; j < l.k && topk_next(&in, &index); j++) x[index] = 0.0f;
}

const struct codec codec_topk = {
    .name = "topk", .id = 5, .lossy = true, .kernels = offsetof(struct kernels, topk),
    .lay_out = lay_out, .clear_sent = clear_sent,
};
