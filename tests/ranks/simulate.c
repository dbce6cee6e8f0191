/* SPDX-License-Identifier: Apache-2.0
 * simulate.c - see simulate.h. */
#include "ranks/simulate.h"

#include <stdlib.h>
#include <string.h>

#include "schedule/message.h"

struct simulation {
    const struct codec *codec;
    struct codec_settings settings;
    size_t n;
    int ranks, bucket;
    uint32_t step;
    const int *nodes;      /* by rank; NULL: one node */
    float **residual;      /* of each rank's gradient */
    float *owner_residual; /* of the average */
    bool bf16;             /* how residuals are kept */
    float momentum;
    bool sparse;
    float **velocity;      /* of each rank's gradient; NULL: none */
    float *scratch, *part, *sum;
    uint8_t *wire;
};

struct simulation *simulation_new(const struct codec *codec, const struct codec_settings *settings,
                                  size_t elements, int ranks, int bucket)
{
    struct simulation *s = calloc(1, sizeof *s);

    *s = (struct simulation){ .codec = codec, .settings = *settings, .n = elements,
                              .ranks = ranks, .bucket = bucket };
    s->residual = calloc((size_t)ranks, sizeof *s->residual);
    for (int r = 0; r < ranks; r++) s->residual[r] = calloc(elements, sizeof(float));
    s->owner_residual = calloc(elements, sizeof(float));
    s->scratch = calloc(elements, sizeof(float));
    s->part = calloc(elements, sizeof(float));
    s->sum = calloc(elements, sizeof(float));
    s->wire = malloc(8 * elements + 64);
    return s;
}

void simulation_free(struct simulation *s)
{
    for (int r = 0; r < s->ranks; r++) free(s->residual[r]);
    for (int r = 0; s->velocity != NULL && r < s->ranks; r++) free(s->velocity[r]);
    free(s->velocity);
    free(s->residual);
    free(s->owner_residual);
    free(s->scratch);
    free(s->part);
    free(s->sum);
    free(s->wire);
    free(s);
}

void simulation_place(struct simulation *s, const int *nodes)
{
    s->nodes = nodes;
}

void simulation_settings(struct simulation *s, const struct codec_settings *settings)
{
    s->settings = *settings;
}

void simulation_keep_bf16(struct simulation *s)
{
    s->bf16 = true;
}

void simulation_momentum(struct simulation *s, float momentum, bool sparse)
{
    s->momentum = momentum;
    s->sparse = sparse;
    s->velocity = calloc((size_t)s->ranks, sizeof *s->velocity);
    for (int r = 0; r < s->ranks; r++) s->velocity[r] = calloc(s->n, sizeof(float));
}

/* What rank r sent of the elements from `from` on. */
static void mask(struct simulation *s, int r, size_t from, size_t n, const float *sent)
{
    for (size_t i = 0; s->velocity != NULL && s->sparse && i < n; i++)
        if (sent[i] != 0) s->velocity[r][from + i] = 0;
}

/* Overwrites the wire and the scratch. */
static void round_to_bf16(struct simulation *s, float *x, size_t n)
{
    struct codec_shape shape = codec_shape(&codec_bf16, &s->settings, n);
    const struct codec_draw none = { 0 };

    memset(s->scratch, 0, n * sizeof *s->scratch);
    codec_encode(&shape, kernels_host(), none, x, s->scratch, s->scratch, s->wire);
    codec_decode(&shape, kernels_host(), none, s->wire, shape.wire_bytes, DECODE_WRITE, x);
}

/* out = what a decoder makes of x + residual as rank r encodes it, at `first` of the bucket;
 * residual = the rest. */
static void convey(struct simulation *s, int r, size_t first, const float *x, float *residual,
                   size_t n, float *out)
{
    struct codec_shape shape = codec_shape(s->codec, &s->settings, n);
    struct codec_draw draw = message_draw(SIMULATION_SEED, s->step, s->bucket, r, first);

    codec_encode(&shape, kernels_host(), draw, x, residual, s->scratch, s->wire);
    codec_decode(&shape, kernels_host(), draw, s->wire, shape.wire_bytes, DECODE_WRITE, out);
    if (s->codec->lossy) memcpy(residual, s->scratch, n * sizeof *residual);
    if (s->codec->lossy && s->bf16) round_to_bf16(s, residual, n);
}

/* The tile [begin, begin + n) by sra. */
static void sra_tile(struct simulation *s, size_t begin, size_t n, float *const *grads,
                     float *average)
{
    float *part = s->part, *sum = s->sum;

    for (int owner = 0; owner < s->ranks; owner++) {
        size_t from = begin + n * (size_t)owner / (size_t)s->ranks;
        size_t count = begin + n * ((size_t)owner + 1) / (size_t)s->ranks - from;

        for (int r = 0; r < s->ranks; r++) {
            if (r == owner) memcpy(part, grads[r] + from, count * sizeof *part);
            else convey(s, r, from, grads[r] + from, s->residual[r] + from, count, part);
            if (r != owner) mask(s, r, from, count, part);
            for (size_t i = 0; i < count; i++) sum[i] = r == 0 ? part[i] : sum[i] + part[i];
        }
        for (size_t i = 0; i < count; i++) sum[i] /= (float)s->ranks;
        convey(s, owner, from, sum, s->owner_residual + from, count, average + from);
        mask(s, owner, from, count, average + from);
    }
}

/* A slice sets out from the rank after its owner and gathers sums on its way round. */
static void ring_tile(struct simulation *s, size_t begin, size_t n, float *const *grads,
                      float *average)
{
    float *part = s->part, *sum = s->sum;

    for (int owner = 0; owner < s->ranks; owner++) {
        size_t from = begin + n * (size_t)owner / (size_t)s->ranks;
        size_t count = begin + n * ((size_t)owner + 1) / (size_t)s->ranks - from;

        for (int hop = 1; hop <= s->ranks; hop++) {
            int r = (owner + hop) % s->ranks;

            for (size_t i = 0; i < count; i++)
                sum[i] = hop == 1 ? grads[r][from + i] : part[i] + grads[r][from + i];
            if (r == owner) continue;
            convey(s, r, from, sum, s->residual[r] + from, count, part);
            mask(s, r, from, count, part);
        }
        for (size_t i = 0; i < count; i++) sum[i] /= (float)s->ranks;
        convey(s, owner, from, sum, s->owner_residual + from, count, average + from);
        mask(s, owner, from, count, average + from);
    }
}

static int node_of(const struct simulation *s, int rank)
{
    return s->nodes != NULL ? s->nodes[rank] : 0;
}

static int ranks_on(const struct simulation *s, int node)
{
    int count = 0;

    for (int r = 0; r < s->ranks; r++) count += node_of(s, r) == node;
    return count;
}

/* The exact sum of a node's gradients is what its driver of the lane conveys. */
static void node_sum(const struct simulation *s, int node, int lane, float *const *grads,
                     size_t from, size_t count, float *sum, int *driver)
{
    int local = 0;

    for (int r = 0; r < s->ranks; r++) {
        if (node_of(s, r) != node) continue;
        if (local == lane % ranks_on(s, node)) *driver = r;
        for (size_t i = 0; i < count; i++)
            sum[i] = local == 0 ? grads[r][from + i] : sum[i] + grads[r][from + i];
        local++;
    }
}

static void hierarchical_tile(struct simulation *s, size_t begin, size_t n, float *const *grads,
                              float *average, int nodes, int lanes)
{
    const struct codec *codec = s->codec;

    if (nodes == 1) s->codec = &codec_fp32;
    for (int c = 0; c < nodes * lanes; c++) {
        size_t slices = (size_t)(nodes * lanes), from = begin + n * (size_t)c / slices;
        size_t count = begin + n * ((size_t)c + 1) / slices - from;
        float *local = calloc(count + 1, sizeof *local);
        int owner = 0;

        for (int node = 0; node < nodes; node++) {
            int driver = 0;

            node_sum(s, node, c / nodes, grads, from, count, local, &driver);
            for (size_t i = 0; s->velocity != NULL && i < count; i++) {
                float *velocity = &s->velocity[driver][from + i];

                local[i] = *velocity = s->momentum * *velocity + local[i];
            }
            if (node == c % nodes) {
                memcpy(s->part, local, count * sizeof *local);
                owner = driver;
            } else {
                convey(s, driver, from, local, s->residual[driver] + from, count, s->part);
                mask(s, driver, from, count, s->part);
            }
            for (size_t i = 0; i < count; i++)
                s->sum[i] = node == 0 ? s->part[i] : s->sum[i] + s->part[i];
        }
        for (size_t i = 0; i < count; i++) s->sum[i] /= (float)s->ranks;
        convey(s, owner, from, s->sum, s->owner_residual + from, count, average + from);
        if (nodes > 1) mask(s, owner, from, count, average + from);
        free(local);
    }
    s->codec = codec;
}

static void allgather_tile(struct simulation *s, size_t begin, size_t n, float *const *grads,
                           float *average)
{
    float *part = s->part, *sum = s->sum;

    for (int r = 0; r < s->ranks; r++) {
        convey(s, r, begin, grads[r] + begin, s->residual[r] + begin, n, part);
        mask(s, r, begin, n, part);
        for (size_t i = 0; i < n; i++) sum[i] = r == 0 ? part[i] : sum[i] + part[i];
    }
    for (size_t i = 0; i < n; i++) average[begin + i] = sum[i] / (float)s->ranks;
}

static void dense_tile(struct simulation *s, size_t begin, size_t n, float *const *grads,
                       float *average)
{
    double *sum = calloc(n + 1, sizeof *sum);

    for (int r = 0; r < s->ranks; r++) {
        convey(s, r, begin, grads[r] + begin, s->residual[r] + begin, n, s->part);
        mask(s, r, begin, n, s->part);
        for (size_t i = 0; i < n; i++) sum[i] += (double)s->part[i];
    }
    for (size_t i = 0; i < n; i++) average[begin + i] = (float)(sum[i] / s->ranks);
    free(sum);
}

void simulation_skip(struct simulation *s)
{
    s->step++; /* what is drawn goes on */
}

void simulation_step(struct simulation *s, const char *schedule, size_t slice,
                     float *const *grads, float *average)
{
    float *given[s->ranks];
    bool by_rank = strcmp(schedule, "sra") == 0 || strcmp(schedule, "ring") == 0;
    bool by_node = strcmp(schedule, "hierarchical") == 0;
    int nodes = 1, lanes = 1;
    size_t tile;

    /* masking comes behind the step's use of an element, so velocities stand in for gradients;
     * hierarchical has momentum of the node's sums */
    for (int r = 0; r < s->ranks; r++) {
        given[r] = s->velocity != NULL && !by_node ? s->velocity[r] : grads[r];
        for (size_t i = 0; given[r] != grads[r] && i < s->n; i++)
            given[r][i] = s->momentum * given[r][i] + grads[r][i];
        if (node_of(s, r) >= nodes) nodes = node_of(s, r) + 1;
        if (ranks_on(s, node_of(s, r)) > lanes) lanes = ranks_on(s, node_of(s, r));
    }
    tile = slice * (size_t)(by_rank ? s->ranks : by_node ? nodes * lanes : 1);
    for (size_t begin = 0; begin < s->n; begin += tile) {
        size_t n = s->n - begin < tile ? s->n - begin : tile;

        if (strcmp(schedule, "sra") == 0) sra_tile(s, begin, n, given, average);
        else if (strcmp(schedule, "ring") == 0) ring_tile(s, begin, n, given, average);
        else if (by_node) hierarchical_tile(s, begin, n, given, average, nodes, lanes);
        else if (strcmp(schedule, "allgather") == 0) allgather_tile(s, begin, n, given, average);
        else dense_tile(s, begin, n, given, average);
    }
    s->step++;
}
