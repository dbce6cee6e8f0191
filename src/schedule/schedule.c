/* SPDX-License-Identifier: Apache-2.0
 * schedule.c - the table of schedules and the buffers that every exchange has. */
#include "schedule/schedule.h"

#include <string.h>

const struct schedule *const schedule_table[] = { &schedule_sra, &schedule_dense, NULL };

const struct schedule *schedule_find(const char *name)
{
    for (int i = 0; schedule_table[i] != NULL; i++)
        if (strcmp(schedule_table[i]->name, name) == 0) return schedule_table[i];
    return NULL;
}

strait_status exchange_open(struct exchange *x)
{
    const struct device *device = x->env->device;
    size_t owned = x->schedule->owned(x);
    strait_status st = STRAIT_OK;

    x->codec = x->usual_codec;
    x->data = device->allocate(x->elements * sizeof(float));
    if (x->data == NULL) st = error_memory("a bucket");
    for (int i = 0; i < 2 && x->usual_codec->lossy && st == STRAIT_OK; i++) {
        x->residual[i] = device->allocate(x->elements * sizeof(float));
        x->owner_residual[i] = device->allocate(owned * sizeof(float));
        if (x->residual[i] == NULL || x->owner_residual[i] == NULL) st = error_memory("residuals");
    }
    return st == STRAIT_OK ? x->schedule->open(x) : st;
}

void exchange_close(struct exchange *x)
{
    const struct device *device = x->env->device;

    x->schedule->close(x);
    device->release(x->data);
    for (int i = 0; i < 2; i++) {
        device->release(x->residual[i]);
        device->release(x->owner_residual[i]);
    }
}

static void swap(float *pair[2])
{
    float *first = pair[0];

    pair[0] = pair[1];
    pair[1] = first;
}

void exchange_commit(struct exchange *x)
{
    if (!x->codec->lossy) return; /* a warm-up step in fp32 leaves residuals alone */
    swap(x->residual);
    swap(x->owner_residual);
}
