/* SPDX-License-Identifier: Apache-2.0
 * bucket.c - what a bucket keeps from step to step: its view, residuals and velocity. */
#include <stdlib.h>

#include "schedule/schedule.h"

static size_t owned(const struct bucket *b, const struct exchange_env *env, size_t n)
{
    return b->schedule->owned(env->cluster, n);
}

size_t bucket_owned_before(const struct bucket *b, const struct exchange_env *env, uint32_t tile)
{
    return owned(b, env, b->tile) * tile;
}

static strait_status allocate_residuals(struct bucket *b, const struct exchange_env *env)
{
    size_t last = b->elements - b->tile * (size_t)(b->tiles - 1);
    size_t mine = bucket_owned_before(b, env, (uint32_t)b->tiles - 1) + owned(b, env, last);

    b->residual_size = env->residual_bf16 ? 2 : sizeof(float);
    for (int row = 0; row < (env->may_skip ? 2 : 1); row++) {
        b->residual[row] = env->device->allocate(b->elements * b->residual_size);
        b->owner_residual[row] = env->device->allocate(mine * b->residual_size);
        if (b->residual[row] == NULL || b->owner_residual[row] == NULL)
            return error_memory("residuals");
        b->residual_bytes += (b->elements + mine) * b->residual_size;
    }
    if (env->may_skip) return STRAIT_OK;
    b->residual[1] = b->residual[0];
    b->owner_residual[1] = b->owner_residual[0];
    return STRAIT_OK;
}

static strait_status allocate_velocity(struct bucket *b, const struct exchange_env *env)
{
    for (int row = 0; row < (env->may_skip ? 2 : 1); row++) {
        b->velocity[row] = env->device->allocate(b->elements * sizeof(float));
        if (b->velocity[row] == NULL) return error_memory("velocities");
        b->residual_bytes += b->elements * sizeof(float);
    }
    if (!env->may_skip) b->velocity[1] = b->velocity[0];
    return STRAIT_OK;
}

strait_status bucket_open(struct bucket *b, const struct exchange_env *env, int parts)
{
    size_t tile = env->slice * (size_t)b->schedule->slices(env->cluster);
    strait_status st;

    b->tile = tile < b->elements ? tile : b->elements;
    b->tiles = (int)((b->elements + b->tile - 1) / b->tile);
    b->codec = b->usual_codec;
    b->view.count = parts;
    b->view.parts = calloc((size_t)parts + 1, sizeof *b->view.parts);
    if (b->view.parts == NULL) return error_memory("a bucket");
    b->view.parts[parts].begin = b->elements;
    if (b->momentum > 0 && (st = allocate_velocity(b, env))) return st;
    return b->usual_codec->lossy && env->error_feedback ? allocate_residuals(b, env) : STRAIT_OK;
}

void bucket_close(struct bucket *b, const struct exchange_env *env)
{
    for (int row = 0; row < (env->may_skip ? 2 : 1); row++) {
        env->device->release(b->residual[row]);
        env->device->release(b->owner_residual[row]);
        env->device->release(b->velocity[row]);
    }
    free(b->view.parts);
}

/* Momentum correction (Deep Gradient Compression, arXiv 1712.01887, 3.2): momentum is applied
 * before elements are held back, so what is sent late has it too. */
const float *bucket_momentum(struct bucket *b, const struct exchange_env *env, size_t begin,
                             size_t n, const float *gradient)
{
    if (b->velocity[0] == NULL) return gradient;
    env->device->kernels->decay_add(b->velocity[0] + begin, b->momentum, gradient, n,
                                    b->velocity[1] + begin);
    return b->velocity[1] + begin;
}

#define SWAP(pair)                   \
    do {                             \
        void *first_ = (pair)[0];    \
                                     \
        (pair)[0] = (pair)[1];       \
        (pair)[1] = first_;          \
    } while (0)

void bucket_commit(struct bucket *b)
{
    SWAP(b->velocity);
    if (!b->codec->lossy) return; /* a warm-up step in fp32 leaves residuals alone */
    SWAP(b->residual);
    SWAP(b->owner_residual);
}
