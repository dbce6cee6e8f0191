/* SPDX-License-Identifier: Apache-2.0
 * int8.c - one byte an element and one fp32 scale a block; the parameter is the block. */
#include "codec/codec.h"

static uint32_t block_of(const struct codec_settings *settings, size_t n)
{
    (void)n;
    return settings->block;
}

static size_t int8_bytes(size_t n, uint32_t block)
{
    return 4 * ((n + block - 1) / block) + n;
}

const struct codec codec_int8 = {
    .name = "int8", .id = 4, .lossy = true, .kernels = offsetof(struct kernels, int8),
    .param = block_of, .wire_bytes = int8_bytes,
};
