/* SPDX-License-Identifier: Apache-2.0
 * dense.c - MPI's own allreduce in fp32: the reference.
 *
 * A lossy codec is applied to this rank's gradient and decoded at once, so that what it
 * loses (and what error feedback gives back) can be studied apart from any schedule; the
 * sum itself crosses the network uncompressed. MPI does not say what it sends: the bytes
 * counted are those of a ring, 2(N-1)/N * 4n. A value that is not finite travels in the
 * data and is found in the sum, which is the same on all ranks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/message.h"

struct dense {
    MPI_Request request;
    float *data;        /* the tile */
    uint8_t *encoded;   /* the tile, as a message */
    struct slice whole; /* the tile */
};

static int dense_slices(const struct cluster *c)
{
    (void)c;
    return 1;
}

static size_t dense_owned(const struct cluster *c, size_t n)
{
    (void)c, (void)n;
    return 0;
}

static strait_status dense_open(struct exchange *x)
{
    struct dense *d = calloc(1, sizeof *d);

    if ((x->state = d) == NULL) return error_memory("an exchange");
    d->request = MPI_REQUEST_NULL;
    d->data = x->env->device->allocate(x->capacity * sizeof(float));
    d->encoded = malloc(message_capacity(x, x->capacity));
    return d->data != NULL && d->encoded != NULL ? STRAIT_OK : error_memory("a tile");
}

/* There and back: data becomes what the codec conveys of the gradient. A gradient that is
 * not finite, or overflows with its residual, tells the others as NaN in the sum. */
static strait_status convey(struct exchange *x, const float *gradient)
{
    struct dense *d = x->state;
    bool poisoned = false;
    size_t bytes;
    strait_status st = message_encode(x, &d->whole, LEG_TO_OWNER, false, gradient, RESIDUAL_OWN,
                                      d->encoded, &bytes);

    if (st == STRAIT_OK)
        st = message_decode(x, &d->whole, LEG_TO_OWNER, x->env->cluster->rank, d->encoded, bytes,
                            DECODE_WRITE, d->data, &poisoned);
    if (poisoned) d->data[0] = NAN;
    return st;
}

static strait_status dense_start(struct exchange *x)
{
    struct dense *d = x->state;
    const struct cluster *c = x->env->cluster;
    const float *gradient;
    strait_status st = STRAIT_OK;

    d->whole = slice_of(x, 1, 0);
    gradient = slice_values(x, &d->whole);
    if (x->bucket->codec->lossy) st = convey(x, gradient);
    else memcpy(d->data, gradient, x->elements * sizeof *gradient);
    if (st != STRAIT_OK) return st;
    x->wire_bytes[c->nodes > 1 ? STRAIT_BETWEEN_NODES : STRAIT_WITHIN_NODE] +=
        8 * x->elements * (uint64_t)(c->size - 1) / (uint64_t)c->size;
    if (MPI_Iallreduce(MPI_IN_PLACE, d->data, (int)x->elements, MPI_FLOAT, MPI_SUM, x->env->comm,
                       &d->request))
        return error_set(STRAIT_ERR_MPI, "MPI_Iallreduce could not start");
    return STRAIT_OK;
}

static strait_status dense_progress(struct exchange *x, bool *moved, bool *done)
{
    struct dense *d = x->state;
    const struct kernels *kernels = x->env->device->kernels;
    float *out = view_target(&x->bucket->view, x->begin, x->elements, x->work->scratch);
    int ended = 0;

    if (MPI_Test(&d->request, &ended, MPI_STATUS_IGNORE))
        return error_set(STRAIT_ERR_MPI, "MPI_Iallreduce failed in step %u, bucket %d",
                         x->bucket->step, x->bucket->index);
    if (!ended) return STRAIT_OK;
    x->poisoned |= kernels->largest(d->data, x->elements) >= NONFINITE_BITS;
    kernels->divide(d->data, x->elements, (float)x->env->cluster->size);
    memcpy(out, d->data, x->elements * sizeof *out);
    view_written(&x->bucket->view, x->begin, x->elements, out);
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

    if (d != NULL && d->request != MPI_REQUEST_NULL) d->data = NULL;
}

static void dense_close(struct exchange *x)
{
    struct dense *d = x->state;

    if (d == NULL) return;
    x->env->device->release(d->data);
    free(d->encoded);
    free(d);
    x->state = NULL;
}

const struct schedule schedule_dense = {
    .name = "dense", .uses_mpi = true, .slices = dense_slices, .owned = dense_owned,
    .open = dense_open, .start = dense_start, .progress = dense_progress,
    .waiting = dense_waiting, .cancel = dense_cancel, .close = dense_close,
};
