/* SPDX-License-Identifier: Apache-2.0
 * fp32.c - the floats as they are: lossless, 4 bytes an element. */
#include "codec/codec.h"

static void lay_out(const struct codec_settings *settings, struct codec_shape *shape)
{
    (void)settings;
    shape->wire_bytes = 4 * shape->elements;
}

const struct codec codec_fp32 = {
    .name = "fp32", .id = 1, .lossy = false, .kernels = offsetof(struct kernels, fp32),
    .lay_out = lay_out,
};
