/* SPDX-License-Identifier: Apache-2.0
 * topk.c - exactly k elements of a chunk, 8 bytes each; the parameter is k. */
#include <math.h>

#include "codec/codec.h"

/* k depends on n and the ratio alone: every rank knows every size in advance. */
static uint32_t k_of(const struct codec_settings *settings, size_t n)
{
    double k = ceil(settings->topk_ratio * (double)n);

    return k > (double)n ? (uint32_t)n : (uint32_t)k;
}

static size_t topk_bytes(size_t n, uint32_t k)
{
    (void)n;
    return 8 * (size_t)k;
}

const struct codec codec_topk = {
    .name = "topk", .id = 5, .lossy = true, .kernels = offsetof(struct kernels, topk),
    .param = k_of, .wire_bytes = topk_bytes,
};
