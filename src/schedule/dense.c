/* SPDX-License-Identifier: Apache-2.0
 * dense.c - MPI's own allreduce in fp32: the reference.
 *
 * A lossy codec is applied to this rank's gradient and decoded at once, so that what it
 * loses (and what error feedback gives back) can be studied apart from any schedule; the
 * sum itself crosses the network uncompressed. MPI does not say what it sends: the bytes
 * counted are those of a ring, 2(N-1)/N * 4n. A value that is not finite travels in the
 * data and is found in the sum, which is the same on all ranks. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "schedule/schedule.h"

struct dense {
    MPI_Request request;
    uint8_t *scratch; /* one encoded bucket */
};

static size_t dense_owned(const struct exchange *x)
{
    (void)x;
    return 0;
}

static strait_status dense_open(struct exchange *x)
{
    struct dense *d = calloc(1, sizeof *d);

    if ((x->state = d) == NULL) return error_memory("an exchange");
    d->request = MPI_REQUEST_NULL;
    if (x->elements > INT_MAX)
        return error_set(STRAIT_ERR_USAGE, "a bucket of %zu elements is too large for MPI",
                         x->elements);
    if (!x->usual_codec->lossy) return STRAIT_OK;
    d->scratch = malloc(codec_shape(x->usual_codec, &x->env->settings, x->elements).wire_bytes);
    return d->scratch != NULL ? STRAIT_OK : error_memory("an encoded bucket");
}

/* There and back: data becomes what the codec conveys of it. */
static strait_status lose_what_the_codec_loses(struct exchange *x)
{
    struct codec_shape shape = codec_shape(x->codec, &x->env->settings, x->elements);
    struct dense *d = x->state;
    const struct kernels *kernels = x->env->device->kernels;
    double begin = clock_s(), middle;
    strait_status st = codec_encode(&shape, kernels, (struct codec_draw){ 0 }, x->data, x->residual[0], x->residual[1],
                                    d->scratch);

    middle = clock_s();
    if (st == STRAIT_ERR_NONFINITE) { /* gradient plus residual overflows: tell the others */
        x->data[0] = NAN;
        return STRAIT_OK;
    }
    if (st == STRAIT_OK)
        st = codec_decode(&shape, kernels, (struct codec_draw){ 0 }, d->scratch, shape.wire_bytes, DECODE_WRITE, x->data);
    x->encode_s += middle - begin;
    x->decode_s += clock_s() - middle;
    return st;
}

static strait_status dense_start(struct exchange *x)
{
    struct dense *d = x->state;
    const struct cluster *c = x->env->cluster;
    strait_status st = STRAIT_OK;

    if (x->codec->lossy && !x->poisoned) st = lose_what_the_codec_loses(x);
    if (st != STRAIT_OK) return st;
    x->wire_bytes[c->nodes > 1 ? STRAIT_BETWEEN_NODES : STRAIT_WITHIN_NODE] +=
        8 * x->elements * (uint64_t)(c->size - 1) / (uint64_t)c->size;
    if (MPI_Iallreduce(MPI_IN_PLACE, x->data, (int)x->elements, MPI_FLOAT, MPI_SUM, x->env->comm,
                       &d->request))
        return error_set(STRAIT_ERR_MPI, "MPI_Iallreduce could not start");
    return STRAIT_OK;
}

static strait_status dense_progress(struct exchange *x, bool *moved, bool *done)
{
    struct dense *d = x->state;
    const struct kernels *kernels = x->env->device->kernels;
    int ended = 0;

    if (MPI_Test(&d->request, &ended, MPI_STATUS_IGNORE))
        return error_set(STRAIT_ERR_MPI, "MPI_Iallreduce failed in step %u, bucket %d", x->step,
                         x->bucket);
    if (!ended) return STRAIT_OK;
    x->poisoned = kernels->largest(x->data, x->elements) >= NONFINITE_BITS;
    kernels->divide(x->data, x->elements, (float)x->env->cluster->size);
    *moved = *done = true;
    return STRAIT_OK;
}

static void dense_waiting(const struct exchange *x, struct text *out)
{
    (void)x;
    text_add(out, "all ranks to take part in MPI_Iallreduce");
}

/* MPI offers no way to take a collective back: the request and the buffer that it may
 * still write to are left to the job's end. */
static void dense_cancel(struct exchange *x)
{
    struct dense *d = x->state;

    if (d != NULL && d->request != MPI_REQUEST_NULL) x->data = NULL;
}

static void dense_close(struct exchange *x)
{
    struct dense *d = x->state;

    if (d == NULL) return;
    free(d->scratch);
    free(d);
    x->state = NULL;
}

const struct schedule schedule_dense = {
    .name = "dense", .uses_mpi = true, .owned = dense_owned, .open = dense_open,
    .start = dense_start, .progress = dense_progress, .waiting = dense_waiting,
    .cancel = dense_cancel, .close = dense_close,
};
