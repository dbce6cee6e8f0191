/* SPDX-License-Identifier: Apache-2.0
 * block.c - fp8, int8, int4, int2 and onebit: fp32 scales for each block, then a few bits
 * an element; the parameter is the block. */
#include "codec/codec.h"

static void lay_out(const struct codec_settings *settings, struct codec_shape *shape, size_t bits,
                    size_t scales)
{
    size_t blocks = (shape->elements + settings->block - 1) / settings->block;

    shape->param = settings->block;
    shape->wire_bytes = 4 * scales * blocks + (bits * shape->elements + 7) / 8;
}

#define BLOCK_CODEC(title, number, bits, scales)                                              \
    static void title##_lay_out(const struct codec_settings *settings,                        \
                                struct codec_shape *shape)                                    \
    {                                                                                         \
        lay_out(settings, shape, bits, scales);                                               \
    }                                                                                         \
    const struct codec codec_##title = {                                                      \
        .name = #title, .id = number, .lossy = true,                                          \
        .kernels = offsetof(struct kernels, title), .lay_out = title##_lay_out,               \
    };

BLOCK_CODEC(int8, 4, 8, 1)
BLOCK_CODEC(fp8, 6, 8, 1)
BLOCK_CODEC(int4, 7, 4, 1)
BLOCK_CODEC(int2, 8, 2, 1)
BLOCK_CODEC(onebit, 9, 1, 2)
