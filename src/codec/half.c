/* SPDX-License-Identifier: Apache-2.0
 * half.c - bf16 and fp16: 2 bytes an element. */
#include "codec/codec.h"

static uint32_t no_param(const struct codec_settings *settings, size_t n)
{
    (void)settings, (void)n;
    return 0;
}

static size_t two_bytes(size_t n, uint32_t param)
{
    (void)param;
    return 2 * n;
}

const struct codec codec_bf16 = {
    .name = "bf16", .id = 2, .lossy = true, .kernels = offsetof(struct kernels, bf16),
    .param = no_param, .wire_bytes = two_bytes,
};

const struct codec codec_fp16 = {
    .name = "fp16", .id = 3, .lossy = true, .kernels = offsetof(struct kernels, fp16),
    .param = no_param, .wire_bytes = two_bytes,
};
