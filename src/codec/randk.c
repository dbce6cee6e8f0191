/* SPDX-License-Identifier: Apache-2.0
 * randk.c - k elements of a slice, drawn alike by all ranks, so that only their values
 * travel; the parameter is k. All ranks send the same elements: the sum of payloads is the
 * payload of the sum (Stich, Cordonnier and Jaggi, arXiv 1809.07599: with error feedback such
 * a choice converges). */
#include <math.h>

#include "codec/codec.h"
#include "kernels/randk.h"

static void lay_out(const struct codec_settings *settings, struct codec_shape *shape)
{
    double n = (double)shape->elements, k = ceil(settings->randk_ratio * n);

    shape->param = (uint32_t)(k < n ? k : n);
    shape->wire_bytes = 4 * (size_t)shape->param;
}

static void clear_sent(const struct codec_shape *shape, struct codec_draw draw,
                       const uint8_t *wire, float *x)
{
    (void)wire;
    for (uint32_t j = 0; j < shape->param; j++)
        x[randk_position(shape->elements, shape->param, j, draw.key, draw.first)] = 0.0f;
}

const struct codec codec_randk = {
    .name = "randk", .id = 11, .lossy = true, .kernels = offsetof(struct kernels, randk),
    .lay_out = lay_out, .clear_sent = clear_sent,
};
