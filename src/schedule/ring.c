/* SPDX-License-Identifier: Apache-2.0
 * ring.c - reduce-scatter and all-gather around a ring of ranks.
 *
 * A tile has a slice per rank. Slice c starts at rank c + 1 and goes round to its owner c;
 * every rank on the way decodes the sum so far, adds its own part and sends the result on.
 * The owner divides, encodes the average once, and that message goes round unchanged; all
 * apply it. Sent per rank: 2(N-1)/N times the encoded tile, always to the next rank, which
 * keeps every link busy in both directions (Patarasuk and Yuan 2009, "Bandwidth optimal
 * all-reduce algorithms for clusters of workstations"). The baseline in fp32. A lossy
 * codec encodes N times on the way; each rank encodes each slice once, so error feedback
 * holds here too, but noise grows with the number of ranks.
 *
 * Poison: a message without a body stays one on its way, so the owner hears of it and
 * tells all. */
#include <stdlib.h>

#include "base/clock.h"
#include "schedule/message.h"

enum { RING_MAX_RANKS = 128 }; /* hops are numbered in 7 bits of the leg */

struct ring {
    int ranks, rank, next, previous;
    size_t capacity;        /* of each message */
    /* Hop k of the reduction sends buffer k and receives to buffer k + 1, in which the sum is
     * encoded for the next hop, and the average in the last. Once it has left, buffer k
     * receives hop k of the gathering. */
    uint8_t **buffers;
    struct transfer *in_arrival, *out_sent, *gathered_arrival, *gathered_sent;
    float *sum;
    int reduced, awaited, applied; /* hops done, of the gathering expected and done */
};

/* ---- set-up ---- */
static int ring_slices(const struct cluster *c)
{
    return c->size;
}

static size_t ring_owned(const struct cluster *c, size_t n)
{
    return slice_begin(n, c->size, c->rank + 1) - slice_begin(n, c->size, c->rank);
}

static uint8_t **allocate_messages(int count, size_t capacity)
{
    uint8_t **messages = calloc((size_t)count + 1, sizeof *messages);

    for (int i = 0; messages != NULL && i < count; i++)
        if ((messages[i] = malloc(capacity)) == NULL) {
            while (i-- > 0) free(messages[i]);
            free(messages);
            return NULL;
        }
    return messages;
}

static void free_messages(uint8_t **messages)
{
    for (int i = 0; messages != NULL && messages[i] != NULL; i++) free(messages[i]);
    free(messages);
}

static strait_status ring_open(struct exchange *x)
{
    struct ring *g = calloc(1, sizeof *g);
    const struct cluster *c = x->env->cluster;
    size_t largest = (x->capacity + (size_t)c->size - 1) / (size_t)c->size, hops;

    if ((x->state = g) == NULL) return error_memory("an exchange");
    if (c->size > RING_MAX_RANKS)
        return error_set(STRAIT_ERR_UNSUPPORTED, "comm.schedule = \"ring\" takes up to %d ranks; "
                         "\"sra\" takes any number", RING_MAX_RANKS);
    g->ranks = c->size;
    g->rank = c->rank;
    g->next = (c->rank + 1) % c->size;
    g->previous = (c->rank + c->size - 1) % c->size;
    g->capacity = message_capacity(x, largest);
    hops = (size_t)c->size; /* one more than there are: never an empty array */
    g->buffers = allocate_messages(g->ranks, g->capacity);
    g->in_arrival = calloc(hops, sizeof *g->in_arrival);
    g->out_sent = calloc(hops, sizeof *g->out_sent);
    g->gathered_arrival = calloc(hops, sizeof *g->gathered_arrival);
    g->gathered_sent = calloc(hops, sizeof *g->gathered_sent);
    g->sum = x->env->device->allocate(largest * sizeof(float));
    if (g->buffers == NULL || g->in_arrival == NULL || g->out_sent == NULL ||
        g->gathered_arrival == NULL || g->gathered_sent == NULL || g->sum == NULL)
        return error_memory("an exchange");
    return STRAIT_OK;
}

static void ring_close(struct exchange *x)
{
    struct ring *g = x->state;

    if (g == NULL) return;
    free_messages(g->buffers);
    free(g->in_arrival);
    free(g->out_sent);
    free(g->gathered_arrival);
    free(g->gathered_sent);
    x->env->device->release(g->sum);
    free(g);
    x->state = NULL;
}

/* ---- the reduction: hop k receives the slice that is k + 2 ranks back, sends the one
 * that is k + 1 ranks back ---- */
static struct slice slice_back(const struct exchange *x, int back)
{
    const struct ring *g = x->state;

    return slice_of(x, g->ranks, (g->rank + 2 * g->ranks - back) % g->ranks);
}

static strait_status send_partial(struct exchange *x, int hop, bool poisoned, const float *values)
{
    struct ring *g = x->state;
    struct slice slice = slice_back(x, hop + 1);
    size_t bytes;
    strait_status st;

    if (slice.shape.elements == 0) return STRAIT_OK;
    st = message_encode(x, &slice, (uint8_t)(LEG_TO_OWNER + hop), poisoned, values, RESIDUAL_OWN,
                        g->buffers[hop], &bytes);
    if (st == STRAIT_OK)
        message_send(x, g->next, (uint8_t)(LEG_TO_OWNER + hop), g->buffers[hop], bytes,
                     &g->out_sent[hop]);
    return st;
}

static strait_status ring_start(struct exchange *x)
{
    struct ring *g = x->state;
    struct slice own = slice_back(x, 0), first = slice_back(x, 1);

    g->reduced = g->awaited = g->applied = 0;
    for (int hop = 0; hop < g->ranks - 1; hop++) {
        g->out_sent[hop].state = g->gathered_sent[hop].state = TRANSFER_IDLE;
        g->gathered_arrival[hop].state = TRANSFER_IDLE;
        if (slice_back(x, hop + 2).shape.elements > 0)
            message_recv(x, g->previous, (uint8_t)(LEG_TO_OWNER + hop), g->buffers[hop + 1],
                         g->capacity, &g->in_arrival[hop]);
    }
    g->gathered_sent[g->ranks - 1].state = TRANSFER_IDLE;
    if (own.shape.elements > 0) message_clear_residual(x, &own);
    if (g->ranks == 1 || first.shape.elements == 0) return STRAIT_OK;
    return send_partial(x, 0, false, slice_values(x, &first));
}

static strait_status send_average(struct exchange *x, const struct slice *own, bool poisoned)
{
    struct ring *g = x->state;
    uint8_t *average = g->buffers[g->ranks - 1];
    size_t bytes;
    strait_status st;

    if (!poisoned) x->env->device->kernels->divide(g->sum, own->shape.elements, (float)g->ranks);
    /* its leg is that of every hop: the message goes round as it is */
    st = message_encode(x, own, LEG_FROM_OWNER, poisoned, g->sum, RESIDUAL_OWNER, average,
                        &bytes);
    if (st == STRAIT_OK && g->ranks > 1)
        message_send(x, g->next, LEG_FROM_OWNER, average, bytes,
                     &g->gathered_sent[g->ranks - 1]);
    if (st == STRAIT_OK)
        st = message_apply(x, own, LEG_FROM_OWNER, g->rank, average, bytes);
    return st;
}

/* Decode what came at `hop` and add this rank's part. */
static strait_status add_own(struct exchange *x, const struct slice *slice, int hop,
                             bool *poisoned)
{
    struct ring *g = x->state;
    strait_status st = message_decode(x, slice, (uint8_t)(LEG_TO_OWNER + hop), g->previous,
                                      g->buffers[hop + 1], g->in_arrival[hop].bytes, DECODE_WRITE,
                                      g->sum, poisoned);

    if (st == STRAIT_OK && !*poisoned)
        x->env->device->kernels->add(g->sum, slice_values(x, slice), slice->shape.elements);
    return st;
}

static strait_status reduce(struct exchange *x, bool *moved)
{
    struct ring *g = x->state;
    strait_status st = STRAIT_OK;

    while (g->reduced < g->ranks - 1 && st == STRAIT_OK) {
        int hop = g->reduced;
        struct slice slice = slice_back(x, hop + 2);
        bool poisoned = false;

        if (slice.shape.elements > 0) {
            if (!message_ended(x, &g->in_arrival[hop], "receiving from", &st)) return st;
            if (st == STRAIT_OK) st = add_own(x, &slice, hop, &poisoned);
            if (st == STRAIT_OK)
                st = hop < g->ranks - 2 ? send_partial(x, hop + 1, poisoned, g->sum)
                                        : send_average(x, &slice, poisoned);
        }
        g->reduced++;
        *moved = true;
    }
    return st;
}

/* A lone rank's average is its gradient as the codec conveys it. */
static strait_status reduce_alone(struct exchange *x)
{
    struct ring *g = x->state;
    struct slice own = slice_back(x, 0);
    const float *gradient = slice_values(x, &own);

    for (size_t i = 0; i < own.shape.elements; i++) g->sum[i] = gradient[i];
    return send_average(x, &own, false);
}

/* ---- the gathering: hop k brings the average of the rank k + 1 back ---- */
static strait_status await_averages(struct exchange *x)
{
    struct ring *g = x->state;
    strait_status st = STRAIT_OK;

    for (; g->awaited < g->ranks - 1 && g->awaited <= g->reduced; g->awaited++) {
        int hop = g->awaited;

        if (slice_back(x, hop + 1).shape.elements == 0) continue;
        if (!message_ended(x, &g->out_sent[hop], "sending to", &st) || st != STRAIT_OK) break;
        message_recv(x, g->previous, (uint8_t)(LEG_FROM_OWNER + hop), g->buffers[hop],
                     g->capacity, &g->gathered_arrival[hop]);
    }
    return st;
}

static strait_status gather(struct exchange *x, bool *moved)
{
    struct ring *g = x->state;
    strait_status st = await_averages(x);

    while (g->applied < g->awaited && st == STRAIT_OK) {
        int hop = g->applied;
        struct slice slice = slice_back(x, hop + 1);
        struct transfer *arrival = &g->gathered_arrival[hop];

        if (slice.shape.elements > 0) {
            if (!message_ended(x, arrival, "receiving from", &st)) return st;
            if (st == STRAIT_OK && hop < g->ranks - 2)
                message_send(x, g->next, (uint8_t)(LEG_FROM_OWNER + hop + 1), g->buffers[hop],
                             arrival->bytes, &g->gathered_sent[hop]);
            if (st == STRAIT_OK)
                st = message_apply(x, &slice, LEG_FROM_OWNER, slice.owner, g->buffers[hop],
                                   arrival->bytes);
        }
        g->applied++;
        *moved = true;
    }
    return st;
}

static strait_status ring_progress(struct exchange *x, bool *moved, bool *done)
{
    struct ring *g = x->state;
    bool sent = true;
    strait_status st = STRAIT_OK;

    if (g->ranks == 1) {
        *moved = *done = true;
        return reduce_alone(x);
    }
    if ((st = reduce(x, moved)) || (st = gather(x, moved))) return st;
    for (int i = 0; i < g->ranks && st == STRAIT_OK; i++) {
        if (i < g->ranks - 1) sent &= message_ended(x, &g->out_sent[i], "sending to", &st);
        sent &= message_ended(x, &g->gathered_sent[i], "sending to", &st);
    }
    *done = sent && g->reduced == g->ranks - 1 && g->applied == g->ranks - 1;
    return st;
}

static void ring_waiting(const struct exchange *x, struct text *out)
{
    const struct ring *g = x->state;
    bool receiving = g->reduced < g->ranks - 1 || g->applied < g->ranks - 1;
    int peer = receiving ? g->previous : g->next;

    text_add(out, "rank %d on %s (%s)", peer, cluster_host(x->env->cluster, peer),
             receiving ? "what it or a rank before it in the ring should have sent on"
                       : "to take what it was sent");
}

static void ring_cancel(struct exchange *x)
{
    struct ring *g = x->state;

    for (int i = 0; g != NULL && i < g->ranks; i++) {
        transport_cancel(x->env->transport, &g->in_arrival[i]);
        transport_cancel(x->env->transport, &g->out_sent[i]);
        transport_cancel(x->env->transport, &g->gathered_arrival[i]);
        transport_cancel(x->env->transport, &g->gathered_sent[i]);
    }
}

const struct schedule schedule_ring = {
    .name = "ring", .uses_mpi = false, .slices = ring_slices, .owned = ring_owned,
    .open = ring_open, .start = ring_start, .progress = ring_progress, .waiting = ring_waiting,
    .cancel = ring_cancel, .close = ring_close,
};
