/* SPDX-License-Identifier: Apache-2.0
 * group.c - see group.h. */
#include "schedule/group.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static bool is_empty(const struct member *member)
{
    return member->slice.shape.elements == 0;
}

static bool is_idle(const struct transfer *transfer)
{
    return transfer_state(transfer) == TRANSFER_IDLE;
}

/* ---- set-up ---- */
static strait_status open_member(struct group *g, struct member *member)
{
    member->exchanged = malloc(g->capacity);
    member->contribution = malloc(g->capacity);
    return member->exchanged == NULL || member->contribution == NULL ? error_memory("messages")
                                                                     : STRAIT_OK;
}

strait_status group_open(struct exchange *x, struct group *g)
{
    size_t largest = (x->capacity + (size_t)g->slices - 1) / (size_t)g->slices;
    strait_status st = STRAIT_OK;

    g->capacity = g->exact ? message_fp32_capacity(x, largest) : message_capacity(x, largest);
    g->average = malloc(g->capacity);
    g->sum = x->env->device->allocate(largest * sizeof(float));
    if (g->average == NULL || g->sum == NULL) return error_memory("an exchange");
    for (int i = 0; i < g->count && st == STRAIT_OK; i++)
        if (i != g->me) st = open_member(g, &g->members[i]);
    return st;
}

void group_close(struct exchange *x, struct group *g)
{
    for (int i = 0; g->members != NULL && i < g->count; i++) {
        free(g->members[i].exchanged);
        free(g->members[i].contribution);
    }
    x->env->device->release(g->sum);
    free(g->average);
    free(g->members);
}

/* ---- out ---- */
static void await_contributions(struct exchange *x, struct group *g)
{
    for (int i = 1; i < g->count; i++) {
        struct member *m = &g->members[(g->me + i) % g->count];

        message_recv(x, m->rank, (uint8_t)(LEG_TO_OWNER + g->lane), m->contribution, g->capacity,
                     &m->arrival);
    }
}

void group_begin(struct exchange *x, struct group *g)
{
    struct member *own = &g->members[g->me];

    for (int i = 0; i < g->count; i++) {
        struct member *m = &g->members[i];

        m->slice = slice_of(x, g->slices, g->lane * g->count + i);
        m->slice.owner = m->rank;
        if (g->exact) slice_in_fp32(x, &m->slice);
        m->applied = is_empty(m);
        m->sent.state = m->arrival.state = m->average_arrival.state = TRANSFER_IDLE;
    }
    own->slice.owned_before = g->owned_before;
    g->next_to_sum = 0;
    g->own = NULL;
    g->own_given = g->sum_poisoned = false;
    g->reduced = is_empty(own);
    if (g->reduced) return;
    message_clear_residual(x, &own->slice);
    await_contributions(x, g);
}

strait_status group_contribute(struct exchange *x, struct group *g, int member,
                               const float *values, bool poisoned)
{
    struct member *m = &g->members[member];
    uint8_t leg = (uint8_t)(LEG_TO_OWNER + g->lane);
    size_t bytes;
    strait_status st;

    if (member == g->me) {
        g->own = values;
        g->sum_poisoned |= poisoned;
        g->own_given = true;
        return STRAIT_OK;
    }
    if (is_empty(m)) return STRAIT_OK;
    st = message_encode(x, &m->slice, leg, poisoned, values, RESIDUAL_OWN, m->exchanged, &bytes);
    if (st == STRAIT_OK) message_send(x, m->rank, leg, m->exchanged, bytes, &m->sent);
    return st;
}

/* The average has room where the contribution was, once that has left. */
static strait_status await_average(struct exchange *x, struct group *g, struct member *m)
{
    strait_status st = STRAIT_OK;

    if (is_idle(&m->sent) || !is_idle(&m->average_arrival) ||
        !message_ended(x, &m->sent, "sending to", &st))
        return st;
    if (st == STRAIT_OK)
        message_recv(x, m->rank, (uint8_t)(LEG_FROM_OWNER + g->lane), m->exchanged, g->capacity,
                     &m->average_arrival);
    return st;
}

/* ---- in ---- */
static void sum_own(struct exchange *x, struct group *g)
{
    const struct slice *own = &g->members[g->me].slice;
    const float *values = g->own != NULL ? g->own : slice_values(x, own);
    double begin = clock_s();

    if (g->me == 0) memcpy(g->sum, values, own->shape.elements * sizeof(float));
    else x->env->device->kernels->add(g->sum, values, own->shape.elements);
    x->decode_s += clock_s() - begin;
}

/* Add a member's contribution; false: it has not arrived. */
static bool sum_one(struct exchange *x, struct group *g, int member, strait_status *st)
{
    struct member *m = &g->members[member];
    bool poisoned = false;

    if (member == g->me) {
        if (g->own_given && !g->sum_poisoned) sum_own(x, g);
        return g->own_given;
    }
    if (!message_ended(x, &m->arrival, "receiving from", st)) return false;
    if (*st == STRAIT_OK)
        *st = message_decode(x, &g->members[g->me].slice, (uint8_t)(LEG_TO_OWNER + g->lane),
                             m->rank, m->contribution, m->arrival.bytes,
                             member == 0 ? DECODE_WRITE : DECODE_ADD, g->sum, &poisoned);
    g->sum_poisoned |= poisoned;
    return true;
}

/* All contributions are in: average, encode once, send to all, and apply what was sent. */
static strait_status send_average(struct exchange *x, struct group *g)
{
    struct member *own = &g->members[g->me];
    uint8_t leg = (uint8_t)(LEG_FROM_OWNER + g->lane);
    strait_status st;

    if (!g->sum_poisoned)
        x->env->device->kernels->divide(g->sum, own->slice.shape.elements,
                                        (float)x->env->cluster->size);
    st = message_encode(x, &own->slice, leg, g->sum_poisoned, g->sum, RESIDUAL_OWNER, g->average,
                        &g->average_bytes);
    for (int i = 1; i < g->count && st == STRAIT_OK; i++) {
        struct member *m = &g->members[(g->me + i) % g->count];

        message_send(x, m->rank, leg, g->average, g->average_bytes, &m->sent_average);
    }
    if (st == STRAIT_OK)
        st = message_apply(x, &own->slice, leg, own->rank, g->average, g->average_bytes);
    own->applied = g->reduced = true;
    return st;
}

static strait_status apply_average(struct exchange *x, struct group *g, struct member *m,
                                   bool *moved)
{
    strait_status st = await_average(x, g, m);

    if (st != STRAIT_OK || m->applied || is_idle(&m->average_arrival) ||
        !message_ended(x, &m->average_arrival, "receiving from", &st))
        return st;
    if (st == STRAIT_OK)
        st = message_apply(x, &m->slice, (uint8_t)(LEG_FROM_OWNER + g->lane), m->rank,
                           m->exchanged, m->average_arrival.bytes);
    m->applied = *moved = true;
    return st;
}

static strait_status check_sends(struct exchange *x, struct group *g, bool *all_sent)
{
    strait_status st = STRAIT_OK;

    *all_sent = true;
    for (int i = 0; i < g->count && st == STRAIT_OK; i++) {
        *all_sent &= message_ended(x, &g->members[i].sent, "sending to", &st);
        *all_sent &= message_ended(x, &g->members[i].sent_average, "sending to", &st);
    }
    return st;
}

strait_status group_progress(struct exchange *x, struct group *g, bool *moved, bool *done)
{
    bool all_sent, all_applied = true;
    strait_status st = STRAIT_OK;

    while (!g->reduced && g->next_to_sum < g->count && sum_one(x, g, g->next_to_sum, &st)) {
        if (st != STRAIT_OK) return st;
        g->next_to_sum++;
        *moved = true;
    }
    if (!g->reduced && g->next_to_sum == g->count) {
        if ((st = send_average(x, g))) return st;
        *moved = true;
    }
    for (int i = 0; i < g->count; i++) {
        if (i == g->me) continue;
        if ((st = apply_average(x, g, &g->members[i], moved))) return st;
        all_applied &= g->members[i].applied;
    }
    st = check_sends(x, g, &all_sent);
    *done = g->reduced && all_applied && all_sent;
    return st;
}

const uint8_t *group_average(const struct group *g, int member, size_t *bytes)
{
    const struct member *m = &g->members[member];

    if (!m->applied) return NULL;
    *bytes = member == g->me ? g->average_bytes : m->average_arrival.bytes;
    return member == g->me ? g->average : m->exchanged;
}

/* What a member still owes at this point of the journey; NULL: nothing. */
static const char *owes(const struct group *g, const struct member *m, int point)
{
    if (point == 0 && !g->reduced && m->arrival.state == TRANSFER_ACTIVE)
        return "its part of this rank's slice";
    if (point == 1 && !m->applied) return "the average of its slice";
    if (point == 2 &&
        (m->sent.state == TRANSFER_ACTIVE || m->sent_average.state == TRANSFER_ACTIVE))
        return "to take what it was sent";
    return NULL;
}

/* Only the earliest point at which someone owes something: a rank that has not sent its
 * part also keeps others from sending their averages, and they are not to blame. */
void group_waiting(const struct exchange *x, const struct group *g, struct text *out)
{
    for (int point = 0; point < 3 && out->length == 0; point++)
        for (int i = 0; i < g->count; i++) {
            const struct member *m = &g->members[i];
            const char *what = i != g->me ? owes(g, m, point) : NULL;

            if (what != NULL)
                text_add(out, "%srank %d on %s (%s)", out->length > 0 ? ", " : "", m->rank,
                         cluster_host(x->env->cluster, m->rank), what);
        }
}

void group_cancel(struct exchange *x, struct group *g)
{
    struct transport *t = x->env->transport;

    for (int i = 0; g->members != NULL && i < g->count; i++) {
        transport_cancel(t, &g->members[i].sent);
        transport_cancel(t, &g->members[i].average_arrival);
        transport_cancel(t, &g->members[i].arrival);
        transport_cancel(t, &g->members[i].sent_average);
    }
}
