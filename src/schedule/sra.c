/* SPDX-License-Identifier: Apache-2.0
 * sra.c - scatter, reduce, all-gather.
 *
 * A tile has a slice per rank, and rank c owns slice c. Everyone encodes every slice but
 * its own and sends it to its owner. The owner sums in rank order, in fp32, its own part
 * as it is and the others' decoded; divides by the number of ranks; encodes the average
 * once with its own residual; and sends that to everyone. All ranks, the owner too, apply
 * those bytes: that is what keeps replicas identical.
 * Sent per rank: 2(N-1)/N times the encoded tile. Lossy encodings on the way: two, each
 * with error feedback.
 *
 * Poison: who finds a value that is not finite in a slice sends its header without a
 * body; an owner that got one, or whose sum is not finite, tells everyone the same way.
 * Every rank hears from every owner, so all ranks end with the same verdict. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "schedule/message.h"

/* One slice of the tile, by its owner. */
struct part {
    struct slice slice;                /* in this tile */
    uint8_t *to_owner, *from_owner;    /* this rank's message out; the owner's in */
    struct transfer sent, arrival;     /* of these two */
    bool applied;                      /* the average is in the caller's tensors */
};

/* One peer, as a contributor to the slice that this rank owns. */
struct contributor {
    uint8_t *message;
    struct transfer arrival;           /* its message in */
    struct transfer sent_average;      /* the average out to it */
};

struct sra {
    int ranks, rank;
    size_t capacity;                   /* of each message */
    struct part *parts;                /* by owner */
    struct contributor *contributors;  /* by rank; this rank's own is unused */
    float *sum;                        /* of the owned slice */
    uint8_t *average;                  /* its message */
    int next_to_sum;                   /* contributions below it are in `sum` */
    bool reduced;                      /* the average is on its way */
    bool sum_poisoned;
};

static bool is_empty(const struct part *part)
{
    return part->slice.shape.elements == 0;
}

/* ---- set-up ---- */
static int sra_slices(const struct cluster *c)
{
    return c->size;
}

static size_t sra_owned(const struct cluster *c, size_t n)
{
    return slice_begin(n, c->size, c->rank + 1) - slice_begin(n, c->size, c->rank);
}

static strait_status open_peer(struct sra *s, int peer)
{
    struct part *part = &s->parts[peer];

    part->to_owner = malloc(s->capacity);
    part->from_owner = malloc(s->capacity);
    s->contributors[peer].message = malloc(s->capacity);
    return part->to_owner == NULL || part->from_owner == NULL ||
                   s->contributors[peer].message == NULL
               ? error_memory("messages")
               : STRAIT_OK;
}

static strait_status sra_open(struct exchange *x)
{
    struct sra *s = calloc(1, sizeof *s);
    strait_status st = STRAIT_OK;
    size_t largest;

    if ((x->state = s) == NULL) return error_memory("an exchange");
    s->ranks = x->env->cluster->size;
    s->rank = x->env->cluster->rank;
    largest = (x->capacity + (size_t)s->ranks - 1) / (size_t)s->ranks;
    s->capacity = message_capacity(x, largest);
    s->parts = calloc((size_t)s->ranks, sizeof *s->parts);
    s->contributors = calloc((size_t)s->ranks, sizeof *s->contributors);
    s->average = malloc(s->capacity);
    s->sum = x->env->device->allocate(largest * sizeof(float));
    if (s->parts == NULL || s->contributors == NULL || s->average == NULL || s->sum == NULL)
        return error_memory("an exchange");
    for (int r = 0; r < s->ranks && st == STRAIT_OK; r++)
        if (r != s->rank) st = open_peer(s, r);
    return st;
}

static void sra_close(struct exchange *x)
{
    struct sra *s = x->state;

    if (s == NULL) return;
    for (int r = 0; r < s->ranks; r++) {
        if (s->parts != NULL) {
            free(s->parts[r].to_owner);
            free(s->parts[r].from_owner);
        }
        if (s->contributors != NULL) free(s->contributors[r].message);
    }
    x->env->device->release(s->sum);
    free(s->average);
    free(s->parts);
    free(s->contributors);
    free(s);
    x->state = NULL;
}

/* ---- out ---- */
static void post_receives(struct exchange *x)
{
    struct sra *s = x->state;

    for (int i = 1; i < s->ranks; i++) {
        int peer = (s->rank + i) % s->ranks;
        struct part *part = &s->parts[peer];
        struct contributor *from = &s->contributors[peer];

        if (!is_empty(&s->parts[s->rank]))
            message_recv(x, peer, LEG_TO_OWNER, from->message, s->capacity, &from->arrival);
        if (!is_empty(part))
            message_recv(x, peer, LEG_FROM_OWNER, part->from_owner, s->capacity, &part->arrival);
    }
}

static strait_status send_to_owner(struct exchange *x, struct part *part)
{
    size_t bytes;
    strait_status st = message_encode(x, &part->slice, LEG_TO_OWNER, false,
                                      slice_gradient(x, &part->slice), RESIDUAL_OWN,
                                      part->to_owner, &bytes);

    if (st == STRAIT_OK)
        message_send(x, part->slice.owner, LEG_TO_OWNER, part->to_owner, bytes, &part->sent);
    return st;
}

static strait_status sra_start(struct exchange *x)
{
    struct sra *s = x->state;
    strait_status st = STRAIT_OK;

    for (int c = 0; c < s->ranks; c++) {
        s->parts[c].slice = slice_of(x, s->ranks, c);
        s->parts[c].applied = is_empty(&s->parts[c]);
    }
    s->next_to_sum = 0;
    s->sum_poisoned = false;
    s->reduced = is_empty(&s->parts[s->rank]);
    if (!s->reduced) message_clear_residual(x, &s->parts[s->rank].slice);
    post_receives(x);
    /* begin with the next rank: at no time do all send to one */
    for (int i = 1; i < s->ranks && st == STRAIT_OK; i++) {
        struct part *part = &s->parts[(s->rank + i) % s->ranks];

        if (!is_empty(part)) st = send_to_owner(x, part);
    }
    return st;
}

/* ---- in ---- */
static void sum_own(struct exchange *x)
{
    struct sra *s = x->state;
    const struct slice *own = &s->parts[s->rank].slice;
    const float *gradient = slice_gradient(x, own);
    double begin = clock_s();

    if (s->rank == 0) memcpy(s->sum, gradient, own->shape.elements * sizeof(float));
    else x->env->device->kernels->add(s->sum, gradient, own->shape.elements);
    x->bucket->decode_s += clock_s() - begin;
}

/* Add rank r's contribution; false: it has not arrived. */
static bool sum_one(struct exchange *x, int r, strait_status *st)
{
    struct sra *s = x->state;
    struct contributor *from = &s->contributors[r];
    bool poisoned = false;

    if (r == s->rank) {
        sum_own(x);
        return true;
    }
    if (!message_ended(x, &from->arrival, "receiving from", st)) return false;
    if (*st == STRAIT_OK)
        *st = message_decode(x, &s->parts[s->rank].slice, LEG_TO_OWNER, r, from->message,
                             from->arrival.bytes, r == 0 ? DECODE_WRITE : DECODE_ADD, s->sum,
                             &poisoned);
    s->sum_poisoned |= poisoned;
    return true;
}

/* All contributions are in: average, encode once, send to all, and apply what was sent. */
static strait_status send_average(struct exchange *x)
{
    struct sra *s = x->state;
    struct part *own = &s->parts[s->rank];
    size_t bytes;
    strait_status st;

    if (!s->sum_poisoned)
        x->env->device->kernels->divide(s->sum, own->slice.shape.elements, (float)s->ranks);
    st = message_encode(x, &own->slice, LEG_FROM_OWNER, s->sum_poisoned, s->sum, RESIDUAL_OWNER,
                        s->average, &bytes);
    for (int i = 1; i < s->ranks && st == STRAIT_OK; i++) {
        int peer = (s->rank + i) % s->ranks;

        message_send(x, peer, LEG_FROM_OWNER, s->average, bytes,
                     &s->contributors[peer].sent_average);
    }
    if (st == STRAIT_OK)
        st = message_apply(x, &own->slice, LEG_FROM_OWNER, s->rank, s->average, bytes);
    own->applied = s->reduced = true;
    return st;
}

static strait_status apply_average(struct exchange *x, struct part *part, bool *moved)
{
    strait_status st = STRAIT_OK;

    if (part->applied || !message_ended(x, &part->arrival, "receiving from", &st)) return st;
    if (st == STRAIT_OK)
        st = message_apply(x, &part->slice, LEG_FROM_OWNER, part->slice.owner, part->from_owner,
                           part->arrival.bytes);
    part->applied = *moved = true;
    return st;
}

static strait_status check_sends(struct exchange *x, bool *all_sent)
{
    struct sra *s = x->state;
    strait_status st = STRAIT_OK;

    *all_sent = true;
    for (int r = 0; r < s->ranks && st == STRAIT_OK; r++) {
        *all_sent &= message_ended(x, &s->parts[r].sent, "sending to", &st);
        *all_sent &= message_ended(x, &s->contributors[r].sent_average, "sending to", &st);
    }
    return st;
}

static strait_status sra_progress(struct exchange *x, bool *moved, bool *done)
{
    struct sra *s = x->state;
    bool all_sent, all_applied = true;
    strait_status st = STRAIT_OK;

    while (!s->reduced && s->next_to_sum < s->ranks && sum_one(x, s->next_to_sum, &st)) {
        if (st != STRAIT_OK) return st;
        s->next_to_sum++;
        *moved = true;
    }
    if (!s->reduced && s->next_to_sum == s->ranks) {
        if ((st = send_average(x))) return st;
        *moved = true;
    }
    for (int owner = 0; owner < s->ranks; owner++) {
        if (owner == s->rank) continue;
        if ((st = apply_average(x, &s->parts[owner], moved))) return st;
        all_applied &= s->parts[owner].applied;
    }
    st = check_sends(x, &all_sent);
    *done = s->reduced && all_applied && all_sent;
    return st;
}

/* What rank r still owes at this point of the journey; NULL: nothing. */
static const char *owes(const struct sra *s, int r, int point)
{
    if (point == 0 && !s->reduced && s->contributors[r].arrival.state == TRANSFER_ACTIVE)
        return "its part of this rank's slice";
    if (point == 1 && !s->parts[r].applied) return "the average of its slice";
    if (point == 2 && (s->parts[r].sent.state == TRANSFER_ACTIVE ||
                       s->contributors[r].sent_average.state == TRANSFER_ACTIVE))
        return "to take what it was sent";
    return NULL;
}

/* Only the earliest point at which someone owes something: a rank that has not sent its
 * part also keeps others from sending their averages, and they are not to blame. */
static void sra_waiting(const struct exchange *x, struct text *out)
{
    const struct sra *s = x->state;

    for (int point = 0; point < 3 && out->length == 0; point++)
        for (int r = 0; r < s->ranks; r++) {
            const char *what = r != s->rank ? owes(s, r, point) : NULL;

            if (what != NULL)
                text_add(out, "%srank %d on %s (%s)", out->length > 0 ? ", " : "", r,
                         cluster_host(x->env->cluster, r), what);
        }
}

static void sra_cancel(struct exchange *x)
{
    struct sra *s = x->state;
    struct transport *t = x->env->transport;

    for (int r = 0; s != NULL && r < s->ranks; r++) {
        transport_cancel(t, &s->parts[r].sent);
        transport_cancel(t, &s->parts[r].arrival);
        transport_cancel(t, &s->contributors[r].arrival);
        transport_cancel(t, &s->contributors[r].sent_average);
    }
}

const struct schedule schedule_sra = {
    .name = "sra", .uses_mpi = false, .slices = sra_slices, .owned = sra_owned, .open = sra_open,
    .start = sra_start, .progress = sra_progress, .waiting = sra_waiting, .cancel = sra_cancel,
    .close = sra_close,
};
