/* SPDX-License-Identifier: Apache-2.0
 * sra.c - scatter, reduce, all-gather among all ranks.
 *
 * A tile has a slice per rank, and rank c owns slice c (group.h says how it goes).
 * Sent per rank: 2(N-1)/N times the encoded tile. Lossy encodings on the way: two, each
 * with error feedback. Every rank hears from every owner, so all end with the same verdict
 * on poison. */
#include <stdlib.h>

#include "schedule/group.h"

static int sra_slices(const struct cluster *c)
{
    return c->size;
}

static size_t sra_owned(const struct cluster *c, size_t n)
{
    return slice_begin(n, c->size, c->rank + 1) - slice_begin(n, c->size, c->rank);
}

static strait_status sra_open(struct exchange *x)
{
    struct group *g = calloc(1, sizeof *g);

    if ((x->state = g) == NULL) return error_memory("an exchange");
    g->count = g->slices = x->env->cluster->size;
    g->me = x->env->cluster->rank;
    g->members = calloc((size_t)g->count, sizeof *g->members);
    if (g->members == NULL) return error_memory("an exchange");
    for (int r = 0; r < g->count; r++) g->members[r].rank = r;
    return group_open(x, g);
}

static void sra_close(struct exchange *x)
{
    if (x->state == NULL) return;
    group_close(x, x->state);
    free(x->state);
    x->state = NULL;
}

static strait_status sra_start(struct exchange *x)
{
    struct group *g = x->state;
    strait_status st = STRAIT_OK;

    group_begin(x, g);
    /* begin with the next rank: at no time do all send to one */
    for (int i = 1; i < g->count && st == STRAIT_OK; i++) {
        int owner = (g->me + i) % g->count;

        st = group_contribute(x, g, owner, slice_values(x, &g->members[owner].slice), false);
    }
    return st == STRAIT_OK ? group_contribute(x, g, g->me, NULL, false) : st;
}

static strait_status sra_progress(struct exchange *x, bool *moved, bool *done)
{
    return group_progress(x, x->state, moved, done);
}

static void sra_waiting(const struct exchange *x, struct text *out)
{
    group_waiting(x, x->state, out);
}

static void sra_cancel(struct exchange *x)
{
    if (x->state != NULL) group_cancel(x, x->state);
}

const struct schedule schedule_sra = {
    .name = "sra", .uses_mpi = false, .slices = sra_slices, .owned = sra_owned, .open = sra_open,
    .start = sra_start, .progress = sra_progress, .waiting = sra_waiting, .cancel = sra_cancel,
    .close = sra_close,
};
