/* SPDX-License-Identifier: Apache-2.0
 * int8.c - one byte an element and one fp32 scale a block; the parameter is the block. */
#include "codec/codec.h"

static void lay_out(const struct codec_settings *settings, struct codec_shape *shape)
{
    size_t blocks = (shape->elements + settings->block - 1) / settings->block;

    shape->param = settings->block;
    shape->wire_bytes = 4 * blocks + shape->elements;
}

const struct codec codec_int8 = {
    .name = "int8", .id = 4, .lossy = true, .kernels = offsetof(struct kernels, int8),
    .lay_out = lay_out,
};
