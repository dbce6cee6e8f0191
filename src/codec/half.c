/* SPDX-License-Identifier: Apache-2.0
 * half.c - bf16 and fp16: 2 bytes an element. */
#include "codec/codec.h"

static void lay_out(const struct codec_settings *settings, struct codec_shape *shape)
{
    (void)settings;
    shape->wire_bytes = 2 * shape->elements;
}

const struct codec codec_bf16 = {
    .name = "bf16", .id = 2, .lossy = true, .kernels = offsetof(struct kernels, bf16),
    .lay_out = lay_out,
};

const struct codec codec_fp16 = {
    .name = "fp16", .id = 3, .lossy = true, .kernels = offsetof(struct kernels, fp16),
    .lay_out = lay_out,
};
