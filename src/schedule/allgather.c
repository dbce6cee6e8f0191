/* SPDX-License-Identifier: Apache-2.0
 * allgather.c - everyone sends its payload to everyone.
 *
 * Each rank encodes the tile once; all decode all payloads, their own too, sum them in
 * rank order and divide. One lossy encoding and one trip, the lowest latency; but
 * N-1 times the encoded tile is sent, so it fits small tensors, very sparse payloads and
 * few ranks.
 *
 * Poison: a message without a body is seen by every rank. */
#include <stdlib.h>
#include <string.h>

#include "schedule/message.h"

struct peer {
    uint8_t *message;
    struct transfer arrival, sent;
};

struct allgather {
    int ranks, rank;
    size_t capacity;      /* of each message */
    struct slice whole;   /* the tile */
    struct peer *peers;   /* by rank; this rank's own message is what all get */
    size_t own_bytes;
    float *sum;
    int next_to_sum;
    bool poisoned, applied;
};

static int allgather_slices(const struct cluster *c)
{
    (void)c;
    return 1;
}

static size_t allgather_owned(const struct cluster *c, size_t n)
{
    (void)c, (void)n;
    return 0;
}

static strait_status allgather_open(struct exchange *x)
{
    struct allgather *a = calloc(1, sizeof *a);

    if ((x->state = a) == NULL) return error_memory("an exchange");
    a->ranks = x->env->cluster->size;
    a->rank = x->env->cluster->rank;
    a->capacity = message_capacity(x, x->capacity);
    a->sum = x->env->device->allocate(x->capacity * sizeof(float));
    a->peers = calloc((size_t)a->ranks, sizeof *a->peers);
    if (a->sum == NULL || a->peers == NULL) return error_memory("an exchange");
    for (int r = 0; r < a->ranks; r++)
        if ((a->peers[r].message = malloc(a->capacity)) == NULL) return error_memory("messages");
    return STRAIT_OK;
}

static void allgather_close(struct exchange *x)
{
    struct allgather *a = x->state;

    if (a == NULL) return;
    for (int r = 0; a->peers != NULL && r < a->ranks; r++) free(a->peers[r].message);
    x->env->device->release(a->sum);
    free(a->peers);
    free(a);
    x->state = NULL;
}

static strait_status allgather_start(struct exchange *x)
{
    struct allgather *a = x->state;
    struct peer *own = &a->peers[a->rank];
    strait_status st;

    a->whole = slice_of(x, 1, 0);
    a->next_to_sum = 0;
    a->poisoned = a->applied = false;
    for (int i = 1; i < a->ranks; i++) {
        int r = (a->rank + i) % a->ranks;

        message_recv(x, r, LEG_TO_OWNER, a->peers[r].message, a->capacity, &a->peers[r].arrival);
    }
    st = message_encode(x, &a->whole, LEG_TO_OWNER, false, slice_values(x, &a->whole),
                        RESIDUAL_OWN, own->message, &a->own_bytes);
    for (int i = 1; i < a->ranks && st == STRAIT_OK; i++) {
        int r = (a->rank + i) % a->ranks;

        message_send(x, r, LEG_TO_OWNER, own->message, a->own_bytes, &a->peers[r].sent);
    }
    return st;
}

/* Add rank r's tile; false: it has not arrived. */
static bool sum_one(struct exchange *x, int r, strait_status *st)
{
    struct allgather *a = x->state;
    bool poisoned = false;
    const struct transfer *arrival = &a->peers[r].arrival;

    if (r != a->rank && !message_ended(x, arrival, "receiving from", st)) return false;
    if (*st == STRAIT_OK)
        *st = message_decode(x, &a->whole, LEG_TO_OWNER, r, a->peers[r].message,
                             r == a->rank ? a->own_bytes : arrival->bytes,
                             r == 0 ? DECODE_WRITE : DECODE_ADD, a->sum, &poisoned);
    a->poisoned |= poisoned;
    return true;
}

/* A sum of finite values may still overflow: the same on all ranks. */
static void apply(struct exchange *x)
{
    struct allgather *a = x->state;
    const struct kernels *kernels = x->env->device->kernels;
    size_t n = x->elements;
    float *out = view_target(&x->bucket->view, x->begin, n, x->work->scratch);

    a->applied = true;
    if (a->poisoned || kernels->largest(a->sum, n) >= NONFINITE_BITS) {
        x->poisoned = true;
        return;
    }
    kernels->divide(a->sum, n, (float)a->ranks);
    memcpy(out, a->sum, n * sizeof *out);
    view_written(&x->bucket->view, x->begin, n, out);
}

static strait_status allgather_progress(struct exchange *x, bool *moved, bool *done)
{
    struct allgather *a = x->state;
    bool sent = true;
    strait_status st = STRAIT_OK;

    while (a->next_to_sum < a->ranks && sum_one(x, a->next_to_sum, &st)) {
        if (st != STRAIT_OK) return st;
        a->next_to_sum++;
        *moved = true;
    }
    if (a->next_to_sum == a->ranks && !a->applied) apply(x);
    for (int r = 0; r < a->ranks && st == STRAIT_OK; r++)
        sent &= message_ended(x, &a->peers[r].sent, "sending to", &st);
    *done = sent && a->applied;
    return st;
}

static void allgather_waiting(const struct exchange *x, struct text *out)
{
    const struct allgather *a = x->state;

    for (int r = 0; r < a->ranks; r++)
        if (a->peers[r].arrival.state == TRANSFER_ACTIVE ||
            a->peers[r].sent.state == TRANSFER_ACTIVE)
            text_add(out, "%srank %d on %s (%s)", out->length > 0 ? ", " : "", r,
                     cluster_host(x->env->cluster, r),
                     a->peers[r].arrival.state == TRANSFER_ACTIVE ? "its payload"
                                                                  : "to take what it was sent");
}

static void allgather_cancel(struct exchange *x)
{
    struct allgather *a = x->state;

    for (int r = 0; a != NULL && r < a->ranks; r++) {
        transport_cancel(x->env->transport, &a->peers[r].arrival);
        transport_cancel(x->env->transport, &a->peers[r].sent);
    }
}

const struct schedule schedule_allgather = {
    .name = "allgather", .uses_mpi = false, .slices = allgather_slices, .owned = allgather_owned,
    .open = allgather_open, .start = allgather_start, .progress = allgather_progress,
    .waiting = allgather_waiting, .cancel = allgather_cancel, .close = allgather_close,
};
