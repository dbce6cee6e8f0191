/* SPDX-License-Identifier: Apache-2.0
 * progress.c - the progress thread: it starts the tiles of whole buckets in plan order,
 * drives those that are under way, and ends the step.
 *
 * It never blocks but in the transport's wait, and gives up when nothing has moved for
 * fault.timeout_s although a step is under way. */
#include <math.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/clip.h"
#include "engine/engine.h"
#include "engine/settings.h"

enum { SPINS = 64, IDLE_WAIT_US = 1000000, ACTIVE_WAIT_US = 20000, MPI_WAIT_US = 50 };

/* Count the buckets that became whole, as the caller's thread left it. */
static void count_whole(strait_context *ctx, bool *stop)
{
    struct progress *p = &ctx->progress;

    pthread_mutex_lock(&ctx->mutex);
    *stop = ctx->shared.stop;
    while (!ctx->shared.step_done && p->whole < ctx->plan.count &&
           ctx->shared.handed[p->whole] == ctx->plan.buckets[p->whole].tensors)
        p->whole++;
    pthread_mutex_unlock(&ctx->mutex);
}

/* Of N ranks' gradients, alike in size and independent, the sum is sqrt(N) times as long as
 * each: Deep Gradient Compression (arXiv 1712.01887, 3.3) so divides the limit for a sum;
 * tensor by tensor, so that none waits for another. */
static void clip_tensor(const strait_context *ctx, float *grad, size_t elements)
{
    double limit = ctx->config.comm.clip_norm;

    if (limit > 0) clip_norm(grad, elements, limit / sqrt(ctx->cluster->size));
}

static void start_bucket(strait_context *ctx, struct bucket *b)
{
    bool warming_up = ctx->progress.step < (uint64_t)ctx->config.comm.warmup_steps;

    b->step = ctx->progress.step;
    b->codec = warming_up ? &codec_fp32 : b->usual_codec;
    b->poisoned = false;
    b->tiles_done = 0;
    for (int id = 0; id < ctx->tensors.count; id++) {
        const struct tensor *tensor = &ctx->tensors.items[id];

        if (tensor->bucket != b->index) continue;
        b->view.parts[tensor->part].at = ctx->shared.grads[id];
        clip_tensor(ctx, ctx->shared.grads[id], tensor->elements);
    }
    if (b->codec->factored) factors_begin(ctx->progress.factors[b->index]);
}

/* The leg whose tiles may be started; NULL: none yet. Legs of factors that this step has none
 * of are passed over, as on all ranks. */
static const struct leg *leg_to_start(strait_context *ctx)
{
    struct progress *p = &ctx->progress;

    for (; p->next_leg < ctx->plan.leg_count; p->next_leg++) {
        const struct leg *leg = &ctx->plan.legs[p->next_leg];
        bool over;

        if (!leg->second) return leg->bucket < p->whole ? leg : NULL;
        if (factors_may_start_second(p->factors[leg->bucket], &over)) return leg;
        if (!over) return NULL;
    }
    return NULL;
}

/* Give free exchanges the next tiles, in the plan's order, as far as buckets are whole. The
 * grads array is the caller's to write only before its bucket is whole and after the step
 * is done, so it is read without the mutex. */
static void start_tiles(strait_context *ctx, bool *moved, bool *stop)
{
    struct progress *p = &ctx->progress;

    count_whole(ctx, stop);
    for (int i = 0; i < p->window_size; i++) {
        const struct leg *leg;
        struct bucket *b;

        if (p->window[i].bucket != NULL) continue;
        if ((leg = leg_to_start(ctx)) == NULL) break;
        b = &p->buckets[leg->bucket];
        if (p->next_tile == 0 && !leg->second) start_bucket(ctx, b);
        exchange_begin(&p->window[i], b, p->next_tile++, p->sequence++);
        p->due[i] = true;
        p->busy++;
        if (p->next_tile == (uint32_t)b->tiles) {
            p->next_leg++;
            p->next_tile = 0;
        }
        *moved = true;
    }
}

/* Run a tile, here or by a worker; false: no result yet. */
static bool run_tile(struct progress *p, int i, struct tile_result *result)
{
    if (p->workers == NULL) {
        result->moved = false;
        result->status = exchange_run(&p->window[i], &p->work, &result->moved, &result->done);
        return true;
    }
    if (workers_take(p->workers, i, result)) {
        if (result->status != STRAIT_OK) error_set(result->status, "%s", result->message);
        p->due[i] |= result->moved;
        return true;
    }
    if (p->due[i] && !workers_have(p->workers, i)) {
        p->due[i] = false;
        workers_give(p->workers, i);
    }
    return false;
}

/* All of the bucket's tiles are done. */
static void end_leg(struct progress *p, struct bucket *b)
{
    bool goes_on = b->codec->factored && factors_go_on(p->factors[b->index]);

    p->finished += !goes_on;
}

static strait_status drive_tiles(strait_context *ctx, bool *moved)
{
    struct progress *p = &ctx->progress;

    for (int i = 0; i < p->window_size; i++) {
        struct bucket *b = p->window[i].bucket;
        struct tile_result result;

        if (b == NULL || !run_tile(p, i, &result)) continue;
        if (result.status != STRAIT_OK) return result.status;
        *moved |= result.moved;
        if (!result.done) continue;
        exchange_end(&p->window[i]);
        if (b->tiles_done == b->tiles) end_leg(p, b);
        p->busy--;
        *moved = true;
    }
    return STRAIT_OK;
}

/* All ranks have every bucket's verdict, so they agree here without a word. */
static bool step_is_poisoned(const strait_context *ctx)
{
    for (int b = 0; b < ctx->plan.count; b++)
        if (ctx->progress.buckets[b].poisoned) return true;
    return false;
}

static void publish_statistics(strait_context *ctx)
{
    struct progress *p = &ctx->progress;
    strait_statistics *s = &ctx->shared.statistics;
    strait_statistics old = *s;

    *s = (strait_statistics){ .steps = p->step, .skipped_steps = p->skipped, .checks = p->checks };
    s->raw_bytes = old.raw_bytes;
    s->dense_bytes = old.dense_bytes;
    for (int b = 0; b < ctx->plan.count; b++) {
        const struct bucket *x = &p->buckets[b];
        size_t n = x->elements;
        int ranks = ctx->cluster->size, rank = ctx->cluster->rank;
        size_t own = slice_begin(n, ranks, rank + 1) - slice_begin(n, ranks, rank);

        s->raw_bytes += 4 * n;
        s->dense_bytes += 4 * (n - own + own * (size_t)(ranks - 1));
        s->encode_s += x->encode_s;
        s->decode_s += x->decode_s;
        s->residual_bytes += x->residual_bytes;
        for (int c = 0; c < STRAIT_PEER_CLASSES; c++) s->wire_bytes[c] += x->wire_bytes[c];
    }
    for (int c = 0; c < STRAIT_PEER_CLASSES; c++) {
        s->transport_bytes[c] = ctx->transport->sent_bytes[c];
        s->transport_messages[c] = ctx->transport->sent_messages[c];
    }
}

static strait_status skip_or_stop(strait_context *ctx)
{
    if (strcmp(ctx->config.comm.nonfinite, "stop") == 0)
        return error_set(STRAIT_ERR_NONFINITE, "step %u: a gradient is not finite on some rank; "
                         "comm.nonfinite = \"skip\" would go on without this step",
                         ctx->progress.step);
    ctx->progress.skipped++;
    return STRAIT_SKIPPED;
}

static void commit_bucket(struct progress *p, int b)
{
    bucket_commit(&p->buckets[b]);
    if (p->factors[b] != NULL) factors_commit(p->factors[b]);
}

static strait_status end_step(strait_context *ctx)
{
    struct progress *p = &ctx->progress;
    strait_status st = step_is_poisoned(ctx) ? skip_or_stop(ctx) : STRAIT_OK;

    if (st > STRAIT_SKIPPED) return st;
    if (st == STRAIT_OK)
        for (int b = 0; b < ctx->plan.count; b++) commit_bucket(p, b);
    p->step++;
    ctx->env.settings = settings_at(&ctx->config, p->step); /* no tile is under way */
    p->next_leg = p->whole = p->finished = 0;
    p->checking = false;
    pthread_mutex_lock(&ctx->mutex);
    publish_statistics(ctx);
    ctx->shared.result = st;
    ctx->shared.step_done = true;
    pthread_cond_signal(&ctx->step_ended);
    pthread_mutex_unlock(&ctx->mutex);
    return STRAIT_OK;
}

static bool check_is_due(const strait_context *ctx)
{
    int64_t every = ctx->config.comm.check_every;

    return every > 0 && ((int64_t)ctx->progress.step + 1) % every == 0 &&
           ctx->cluster->size > 1 && !step_is_poisoned(ctx);
}

/* Every bucket is done: check the fingerprint if it is time, then end the step. */
static strait_status finish_step(strait_context *ctx, bool *moved)
{
    struct progress *p = &ctx->progress;
    bool compared = false;
    strait_status st;

    if (!p->checking && check_is_due(ctx)) {
        fingerprint_start(p->fingerprint, p->buckets, p->step);
        p->checking = true;
    }
    if (p->checking) {
        if ((st = fingerprint_progress(p->fingerprint, moved, &compared))) return st;
        if (!compared) return STRAIT_OK;
        p->checks++;
    }
    *moved = true;
    return end_step(ctx);
}

/* NULL: none is under way. */
static const struct exchange *oldest_tile(const struct progress *p)
{
    const struct exchange *oldest = NULL;

    for (int i = 0; i < p->window_size; i++) {
        const struct exchange *x = &p->window[i];

        if (x->bucket == NULL) continue;
        if (oldest == NULL || (int32_t)(x->sequence - oldest->sequence) < 0) oldest = x;
    }
    return oldest;
}

static strait_status stalled(const strait_context *ctx)
{
    const struct progress *p = &ctx->progress;
    const struct exchange *oldest = oldest_tile(p);
    struct text what = { 0 }, who = { 0 };
    strait_status st;

    if (oldest == NULL) {
        text_add(&what, "the fingerprint check");
        fingerprint_waiting(p->fingerprint, &who);
    } else {
        text_add(&what, "bucket %d", oldest->bucket->index);
        oldest->schedule->waiting(oldest, &who);
    }
    st = error_set(STRAIT_ERR_TIMEOUT, "step %u, %s: nothing came for %.1f s; waiting for %s; look "
                   "at the logs of those ranks, or raise fault.timeout_s", p->step,
                   text_string(&what), clock_s() - p->moved_at, text_string(&who));
    text_free(&what);
    text_free(&who);
    return st;
}

/* A step is under way here and waits for peers, not for this rank's own caller. */
static bool waits_for_peers(const strait_context *ctx)
{
    const struct progress *p = &ctx->progress;

    return p->busy > 0 || p->checking;
}

static strait_status turn(strait_context *ctx, bool *moved, bool *stop)
{
    struct progress *p = &ctx->progress;
    strait_status st = STRAIT_OK;

    start_tiles(ctx, moved, stop);
    if (p->busy > 0) st = drive_tiles(ctx, moved);
    if (st == STRAIT_OK && p->finished == ctx->plan.count)
        st = finish_step(ctx, moved);
    if (transport_progress(ctx->transport)) {
        for (int i = 0; i < p->window_size; i++) p->due[i] = true;
        *moved = true;
    }
    if (*moved || !waits_for_peers(ctx)) p->moved_at = clock_s();
    else if (st == STRAIT_OK && clock_s() - p->moved_at > ctx->config.fault.timeout_s)
        st = stalled(ctx);
    return st;
}

static void sleep_until_needed(strait_context *ctx)
{
    bool uses_mpi = ctx->progress.window[0].schedule->uses_mpi;
    long timeout_us = uses_mpi ? MPI_WAIT_US : ACTIVE_WAIT_US;
    uint64_t wakes;

    ctx->transport->ops->wait(ctx->transport, ctx->wake_fd,
                              waits_for_peers(ctx) ? timeout_us : IDLE_WAIT_US);
    if (read(ctx->wake_fd, &wakes, sizeof wakes) < 0) return; /* nobody woke us: fine */
}

static void give_up(strait_context *ctx, strait_status st)
{
    workers_close(ctx->progress.workers); /* what is cancelled must be left alone */
    ctx->progress.workers = NULL;
    for (int i = 0; i < ctx->progress.window_size; i++)
        if (ctx->progress.window[i].bucket != NULL)
            ctx->progress.window[i].schedule->cancel(&ctx->progress.window[i]);
    fingerprint_cancel(ctx->progress.fingerprint);
    pthread_mutex_lock(&ctx->mutex);
    ctx->shared.result = st;
    ctx->shared.step_done = true;
    pthread_cond_signal(&ctx->step_ended);
    pthread_mutex_unlock(&ctx->mutex);
}

void *progress_main(void *context)
{
    strait_context *ctx = context;
    bool stop = false;
    int idle = 0;

    ctx->progress.moved_at = clock_s();
    while (!stop) {
        bool moved = false;
        strait_status st = turn(ctx, &moved, &stop);

        if (st != STRAIT_OK) {
            pthread_mutex_lock(&ctx->mutex);
            memcpy(ctx->shared.message, strait_error_message(), sizeof ctx->shared.message);
            pthread_mutex_unlock(&ctx->mutex);
            give_up(ctx, st);
            return NULL;
        }
        idle = moved ? 0 : idle + 1;
        if (!moved) sched_yield(); /* with more ranks than cores: to the one that is waited for */
        if (idle > SPINS && !stop) sleep_until_needed(ctx);
    }
    if (waits_for_peers(ctx)) give_up(ctx, error_set(STRAIT_ERR_USAGE, "closed within a step"));
    return NULL;
}
