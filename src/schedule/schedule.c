/* SPDX-License-Identifier: Apache-2.0
 * schedule.c - the table of schedules, and what every exchange has. */
#include "schedule/schedule.h"

#include <string.h>

const struct schedule *const schedule_table[] = {
    &schedule_sra, &schedule_ring, &schedule_hierarchical, &schedule_allgather, &schedule_dense,
    NULL,
};

const struct schedule *schedule_find(const char *name)
{
    for (int i = 0; schedule_table[i] != NULL; i++)
        if (strcmp(schedule_table[i]->name, name) == 0) return schedule_table[i];
    return NULL;
}

strait_status workspace_open(struct workspace *work, const struct exchange *x)
{
    const struct device *device = x->env->device;
    size_t slices = (size_t)x->schedule->slices(x->env->cluster);
    /* the largest slice of any tile up to the capacity */
    size_t bytes = (x->capacity + slices - 1) / slices * sizeof(float);

    work->scratch = device->allocate(bytes);
    work->residual = device->allocate(bytes);
    return work->scratch != NULL && work->residual != NULL ? STRAIT_OK
                                                           : error_memory("a workspace");
}

void workspace_close(struct workspace *work, const struct device *device)
{
    device->release(work->scratch);
    device->release(work->residual);
}

void exchange_begin(struct exchange *x, struct bucket *bucket, uint32_t tile, uint32_t sequence)
{
    x->bucket = bucket;
    x->tile = tile;
    x->sequence = sequence;
    x->begin = bucket->tile * tile;
    x->elements = bucket->elements - x->begin;
    if (x->elements > bucket->tile) x->elements = bucket->tile;
    x->started = x->poisoned = false;
    x->encode_s = x->decode_s = 0;
    memset(x->wire_bytes, 0, sizeof x->wire_bytes);
}

strait_status exchange_run(struct exchange *x, struct workspace *work, bool *moved, bool *done)
{
    strait_status st = STRAIT_OK;

    x->work = work;
    *done = false;
    if (!x->started) {
        x->started = *moved = true;
        st = x->schedule->start(x);
    }
    return st == STRAIT_OK ? x->schedule->progress(x, moved, done) : st;
}

void exchange_end(struct exchange *x)
{
    struct bucket *b = x->bucket;

    b->poisoned |= x->poisoned;
    b->encode_s += x->encode_s;
    b->decode_s += x->decode_s;
    for (int c = 0; c < STRAIT_PEER_CLASSES; c++) b->wire_bytes[c] += x->wire_bytes[c];
    b->tiles_done++;
    x->bucket = NULL;
}
