/* SPDX-License-Identifier: Apache-2.0
 * topk.c - exactly k elements of a chunk, 8 bytes each; the parameter is k. */
#include <math.h>

#include "codec/codec.h"

/* k depends on n and the ratio alone: every rank knows every size in advance. */
static void lay_out(const struct codec_settings *settings, struct codec_shape *shape)
{
    double n = (double)shape->elements, k = ceil(settings->topk_ratio * n);

    shape->param = (uint32_t)(k < n ? k : n);
    shape->wire_bytes = 8 * (size_t)shape->param;
}

const struct codec codec_topk = {
    .name = "topk", .id = 5, .lossy = true, .kernels = offsetof(struct kernels, topk),
    .lay_out = lay_out,
};
