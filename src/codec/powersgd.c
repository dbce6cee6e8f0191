/* SPDX-License-Identifier: Apache-2.0
 * powersgd.c - the elements of low-rank factors as they are; the parameter is the rank.
 *
 * Factors must be summed before they can be used, so they travel as fp32, and it is the engine
 * that makes them of gradients and gradients of them (engine/factors.h). */
#include "codec/codec.h"

static void lay_out(const struct codec_settings *settings, struct codec_shape *shape)
{
    shape->param = settings->powersgd_rank;
    shape->wire_bytes = 4 * shape->elements;
}

const struct codec codec_powersgd = {
    .name = "powersgd", .id = 12, .lossy = false, .factored = true,
    .kernels = offsetof(struct kernels, fp32), .lay_out = lay_out,
};
