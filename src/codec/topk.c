/* SPDX-License-Identifier: Apache-2.0
 * topk.c - exactly k elements of a slice and which they are; the parameter is k, the
 * variant the shortest way to say which. */
#include <math.h>

#include "base/bytes.h"
#include "codec/codec.h"

/* k depends on n and the ratio alone: every rank knows every size in advance. */
static void lay_out(const struct codec_settings *settings, struct codec_shape *shape)
{
    double n = (double)shape->elements, k = ceil(settings->topk_ratio * n);
    size_t bitmap = (shape->elements + 7) / 8, indices;

    shape->param = (uint32_t)(k < n ? k : n);
    shape->variant = shape->elements <= 65536 ? TOPK_U16 : TOPK_U32;
    indices = (shape->variant == TOPK_U16 ? 2 : 4) * (size_t)shape->param;
    if (bitmap < indices) shape->variant = TOPK_BITMAP;
    shape->wire_bytes = (bitmap < indices ? bitmap : indices) + 4 * (size_t)shape->param;
}

static void clear_sent(const struct codec_shape *shape, struct codec_draw draw,
                       const uint8_t *wire, float *x)
{
    uint32_t k = shape->param;

    (void)draw;
    if (shape->variant == TOPK_BITMAP)
        for (size_t i = 0; i < shape->elements; i++)
            x[i] = wire[i / 8] >> i % 8 & 1 ? 0.0f : x[i];
    else if (shape->variant == TOPK_U16)
        for (size_t j = 0; j < k; j++) x[le16_get(wire + 2 * j)] = 0.0f;
    else
        for (size_t j = 0; j < k; j++) x[le32_get(wire + 4 * j)] = 0.0f;
}

const struct codec codec_topk = {
    .name = "topk", .id = 5, .lossy = true, .kernels = offsetof(struct kernels, topk),
    .lay_out = lay_out, .clear_sent = clear_sent,
};
