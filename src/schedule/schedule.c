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

strait_status exchange_open(struct exchange *x)
{
    const struct device *device = x->env->device;
    int slices = x->schedule->slices(x->env->cluster);
    /* the largest slice of any tile up to the capacity */
    size_t bytes = ((x->capacity + (size_t)slices - 1) / (size_t)slices) * sizeof(float);

    x->scratch = device->allocate(bytes);
    if (x->scratch == NULL) return error_memory("an exchange");
    if (x->env->error_feedback) return x->schedule->open(x);
    x->zeros = device->allocate(bytes);
    x->sink = device->allocate(bytes);
    if (x->zeros == NULL || x->sink == NULL) return error_memory("an exchange");
    return x->schedule->open(x);
}

void exchange_close(struct exchange *x)
{
    const struct device *device = x->env->device;

    x->schedule->close(x);
    device->release(x->scratch);
    device->release(x->zeros);
    device->release(x->sink);
}

strait_status exchange_start(struct exchange *x, struct bucket *bucket, uint32_t tile,
                             uint32_t sequence)
{
    x->bucket = bucket;
    x->tile = tile;
    x->sequence = sequence;
    x->begin = bucket->tile * tile;
    x->elements = bucket->elements - x->begin;
    if (x->elements > bucket->tile) x->elements = bucket->tile;
    return x->schedule->start(x);
}
