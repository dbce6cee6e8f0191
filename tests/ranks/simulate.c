/* SPDX-License-Identifier: Apache-2.0
 * simulate.c - see simulate.h. */
#include "ranks/simulate.h"

#include <stdlib.h>
#include <string.h>

struct simulation {
    const struct codec *codec;
    struct codec_settings settings;
    size_t n;
    int ranks;
    float **residual;      /* of each rank's gradient */
    float *owner_residual; /* of the average */
    float *scratch;
    uint8_t *wire;
};

struct simulation *simulation_new(const struct codec *codec, const struct codec_settings *settings,
                                  size_t elements, int ranks)
{
    struct simulation *s = calloc(1, sizeof *s);

    *s = (struct simulation){ .codec = codec, .settings = *settings, .n = elements,
                              .ranks = ranks };
    s->residual = calloc((size_t)ranks, sizeof *s->residual);
    for (int r = 0; r < ranks; r++) s->residual[r] = calloc(elements, sizeof(float));
    s->owner_residual = calloc(elements, sizeof(float));
    s->scratch = calloc(elements, sizeof(float));
    s->wire = malloc(8 * elements + 64);
    return s;
}

void simulation_free(struct simulation *s)
{
    for (int r = 0; r < s->ranks; r++) free(s->residual[r]);
    free(s->residual);
    free(s->owner_residual);
    free(s->scratch);
    free(s->wire);
    free(s);
}

/* out = what a decoder makes of x + residual; residual = the rest. */
static void convey(struct simulation *s, const float *x, float *residual, size_t n, float *out)
{
    struct codec_shape shape = codec_shape(s->codec, &s->settings, n);

    codec_encode(&shape, &kernels_host, (struct codec_draw){ 0 }, x, residual, s->scratch, s->wire);
    if (s->codec->lossy) memcpy(residual, s->scratch, n * sizeof *residual);
    codec_decode(&shape, &kernels_host, (struct codec_draw){ 0 }, s->wire, shape.wire_bytes, DECODE_WRITE, out);
}

void simulation_sra(struct simulation *s, float *const *grads, float *average)
{
    float *part = malloc(s->n * sizeof *part + 1), *sum = malloc(s->n * sizeof *sum + 1);

    for (int owner = 0; owner < s->ranks; owner++) {
        size_t begin = s->n * (size_t)owner / (size_t)s->ranks;
        size_t n = s->n * ((size_t)owner + 1) / (size_t)s->ranks - begin;

        for (int r = 0; r < s->ranks; r++) {
            if (r == owner) memcpy(part, grads[r] + begin, n * sizeof *part);
            else convey(s, grads[r] + begin, s->residual[r] + begin, n, part);
            for (size_t i = 0; i < n; i++) sum[i] = r == 0 ? part[i] : sum[i] + part[i];
        }
        for (size_t i = 0; i < n; i++) sum[i] /= (float)s->ranks;
        convey(s, sum, s->owner_residual + begin, n, average + begin);
    }
    free(part);
    free(sum);
}

void simulation_dense(struct simulation *s, float *const *grads, float *average)
{
    double *sum = calloc(s->n + 1, sizeof *sum);
    float *part = malloc(s->n * sizeof *part + 1);

    for (int r = 0; r < s->ranks; r++) {
        convey(s, grads[r], s->residual[r], s->n, part);
        for (size_t i = 0; i < s->n; i++) sum[i] += (double)part[i];
    }
    for (size_t i = 0; i < s->n; i++) average[i] = (float)(sum[i] / s->ranks);
    free(sum);
    free(part);
}
