/* SPDX-License-Identifier: Apache-2.0
 * context.c - the public calls: open, register, commit, hand over, wait, close. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/agree.h"
#include "engine/engine.h"
#include "engine/settings.h"

/* ---- open ---- */
static strait_status check_thread_level(const strait_context *ctx,
                                        const struct transport_ops *transport)
{
    const struct schedule *schedule = schedule_find(ctx->config.comm.schedule);
    int level = MPI_THREAD_SINGLE;

    MPI_Query_thread(&level);
    if (level >= MPI_THREAD_MULTIPLE ||
        (!transport->uses_mpi && !schedule->uses_mpi))
        return STRAIT_OK;
    return error_set(STRAIT_ERR_UNSUPPORTED, "comm.transport = \"%s\" with comm.schedule = \"%s\" "
                     "calls MPI from a second thread: start MPI by MPI_Init_thread with "
                     "MPI_THREAD_MULTIPLE, or use ucx and sra", transport->name, schedule->name);
}

static strait_status agree_on_settings(const strait_context *ctx)
{
    struct text settings = { 0 };
    strait_status st;

    plan_describe_settings(&ctx->config, &settings);
    st = agree_on(ctx->cluster, &settings, "the settings");
    text_free(&settings);
    return st;
}

/* What carries bytes to the first peer of each class. */
static void find_paths(strait_context *ctx)
{
    for (int c = 0; c < STRAIT_PEER_CLASSES; c++) {
        struct text words = { 0 };

        for (int peer = 0; peer < ctx->cluster->size && words.length == 0; peer++)
            if (peer != ctx->cluster->rank && (int)cluster_class(ctx->cluster, peer) == c)
                ctx->transport->ops->describe(ctx->transport, peer, &words);
        snprintf(ctx->path[c], sizeof ctx->path[c], "%s%s%.200s",
                 words.length > 0 ? ctx->transport->ops->name : "none",
                 words.length > 0 ? ": " : "", text_string(&words));
        text_free(&words);
    }
}

strait_status engine_open(strait_context **out, const strait_config *config, MPI_Comm comm,
                          const struct transport_ops *transport)
{
    strait_context *ctx = calloc(1, sizeof *ctx);
    strait_status st;

    if (ctx == NULL) return error_memory("a context");
    ctx->config = *config;
    ctx->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ctx->env.comm = MPI_COMM_NULL;
    pthread_mutex_init(&ctx->mutex, NULL);
    pthread_cond_init(&ctx->step_ended, NULL);
    if (ctx->wake_fd < 0) {
        st = error_set(STRAIT_ERR_MEMORY, "no event descriptor is left; raise the limit on open "
                       "files");
        goto done;
    }
    if ((st = cluster_open(&ctx->cluster, comm, config->fault.timeout_s))) goto done;
    if ((st = cluster_agree(ctx->cluster, check_thread_level(ctx, transport), "thread levels")))
        goto done;
    if ((st = agree_on_settings(ctx))) goto done;
    if ((st = cluster_rehearse(ctx->cluster, config->comm.nodes))) goto done;
    if ((st = transport_open(&ctx->transport, transport, ctx->cluster))) goto done;
    find_paths(ctx);
    ctx->env = (struct exchange_env){
        .cluster = ctx->cluster, .transport = ctx->transport, .device = device_host_open(),
        .settings = settings_at(config, 0),
        .seed = (uint64_t)config->comm.seed,
        .slice = (size_t)(config->comm.slice_kb * 1024 / sizeof(float)),
        .error_feedback = config->comm.error_feedback, .checksum = config->comm.checksum,
        .residual_bf16 = strcmp(config->comm.residual, "bf16") == 0,
        .may_skip = strcmp(config->comm.nonfinite, "skip") == 0,
        .comm = MPI_COMM_NULL,
    };
    if (MPI_Comm_dup(ctx->cluster->comm, &ctx->env.comm))
        st = error_set(STRAIT_ERR_MPI, "MPI could not duplicate the communicator");
    if (st == STRAIT_OK) {
        *out = ctx;
        ctx = NULL;
    }
done:
    if (ctx != NULL) {
        ctx->shared.result = st; /* broken: closing waits for nobody */
        strait_close(ctx);
    }
    return st;
}

strait_status strait_open(strait_context **out, const strait_config *config, MPI_Comm comm)
{
    return engine_open(out, config, comm, transport_find(config->comm.transport));
}

/* ---- register and commit ---- */
strait_status strait_register(strait_context *ctx, const strait_tensor *tensor, int *id)
{
    if (ctx->running)
        return error_set(STRAIT_ERR_USAGE, "tensor '%s' comes after strait_commit()",
                         tensor->name != NULL ? tensor->name : "");
    return tensor_list_add(&ctx->tensors, tensor, id);
}

/* What is under way is bounded by the bucket size, however many ranks a tile has slices for;
 * by two tiles at least, so that one is sent while another is decoded. */
static int window_of(const strait_context *ctx, const struct exchange *x, int64_t tiles)
{
    const struct codec *codec = x->fp32_too ? &codec_fp32 : x->usual_codec;
    size_t bytes = codec_shape(codec, &x->env->settings, x->capacity).wire_bytes;
    double most = fmax(2, 2 * ctx->config.comm.bucket_mb * 1048576 / (double)bytes);

    return (int)fmin(most, fmin((double)ctx->config.comm.window, (double)tiles));
}

/* As many exchanges as the window allows and there are tiles for, each fit for any tile. */
static strait_status open_window(strait_context *ctx)
{
    struct progress *p = &ctx->progress;
    struct exchange each = { .env = &ctx->env, .usual_codec = codec_find(ctx->config.comm.codec),
                             .schedule = p->buckets[0].schedule,
                             .fp32_too = ctx->config.comm.warmup_steps > 0 };
    int64_t tiles = 0;
    strait_status st = STRAIT_OK;

    for (int b = 0; b < ctx->plan.count; b++) {
        const struct bucket *bucket = &p->buckets[b];

        tiles += bucket->tiles;
        each.fp32_too |= bucket->usual_codec == &codec_fp32;
        if (bucket->tile > each.capacity) each.capacity = bucket->tile;
    }
    p->window_size = window_of(ctx, &each, tiles);
    p->window = calloc((size_t)p->window_size, sizeof *p->window);
    if (p->window == NULL) return error_memory("exchanges");
    p->due = calloc((size_t)p->window_size, sizeof *p->due);
    if (p->due == NULL) return error_memory("exchanges");
    for (int i = 0; i < p->window_size && st == STRAIT_OK; i++) {
        p->window[i] = each;
        st = each.schedule->open(&p->window[i]);
    }
    if (st == STRAIT_OK) st = workspace_open(&p->work, &each);
    /* MPI's collectives must start in the same order on all ranks: one thread's work */
    if (st == STRAIT_OK && ctx->config.comm.threads > 1 && !each.schedule->uses_mpi)
        st = workers_open(&p->workers, (int)ctx->config.comm.threads, p->window, p->window_size,
                          ctx->wake_fd);
    return st;
}

static strait_status open_exchanges(strait_context *ctx)
{
    struct progress *p = &ctx->progress;
    size_t count = (size_t)ctx->plan.count;
    strait_status st = STRAIT_OK;

    p->buckets = calloc(count, sizeof *p->buckets);
    p->factors = calloc(count, sizeof *p->factors);
    ctx->shared.handed = calloc(count, sizeof *ctx->shared.handed);
    ctx->shared.grads = calloc((size_t)ctx->tensors.count, sizeof *ctx->shared.grads);
    if (p->buckets == NULL || p->factors == NULL || ctx->shared.handed == NULL ||
        ctx->shared.grads == NULL)
        return error_memory("buckets");
    for (int b = 0; b < ctx->plan.count && st == STRAIT_OK; b++) {
        p->buckets[b] = (struct bucket){
            .index = b, .schedule = schedule_find(ctx->config.comm.schedule),
            .elements = ctx->plan.buckets[b].elements, .usual_codec = ctx->plan.buckets[b].codec,
            .momentum = (float)ctx->config.comm.momentum_correction,
        };
        st = bucket_open(&p->buckets[b], &ctx->env, ctx->plan.buckets[b].tensors);
        if (st == STRAIT_OK && p->buckets[b].usual_codec->factored)
            st = factors_open(&p->factors[b], &p->buckets[b], &ctx->env, &ctx->tensors,
                              (uint32_t)ctx->config.comm.powersgd_rank);
    }
    for (int id = 0; id < ctx->tensors.count && st == STRAIT_OK; id++) {
        const struct tensor *tensor = &ctx->tensors.items[id];

        p->buckets[tensor->bucket].view.parts[tensor->part].begin = tensor->offset;
    }
    if (st == STRAIT_OK) st = open_window(ctx);
    if (st == STRAIT_OK) st = fingerprint_open(&p->fingerprint, &ctx->env, ctx->plan.count);
    return st;
}

static strait_status start_thread(strait_context *ctx)
{
    if (pthread_create(&ctx->thread, NULL, progress_main, ctx) != 0)
        return error_set(STRAIT_ERR_MEMORY, "the progress thread could not be started");
    ctx->running = true;
    return STRAIT_OK;
}

strait_status strait_commit(strait_context *ctx)
{
    struct text tensors = { 0 };
    strait_status st;

    if (ctx->running) return error_set(STRAIT_ERR_USAGE, "strait_commit() was called before");
    st = cluster_agree(ctx->cluster, plan_build(&ctx->plan, &ctx->tensors, &ctx->config),
                       "making the plan");
    if (st == STRAIT_OK) {
        plan_describe_tensors(&ctx->plan, &ctx->tensors, &tensors);
        st = agree_on(ctx->cluster, &tensors, "the registered tensors");
        text_free(&tensors);
    }
    if (st == STRAIT_OK)
        st = cluster_agree(ctx->cluster, open_exchanges(ctx), "allocating buckets");
    if (st == STRAIT_OK)
        st = cluster_agree(ctx->cluster, start_thread(ctx), "starting progress threads");
    if (st != STRAIT_OK) ctx->shared.result = st;
    return st;
}

/* ---- steps ---- */
static strait_status not_ready(const strait_context *ctx)
{
    return ctx->running ? STRAIT_OK
                        : error_set(STRAIT_ERR_USAGE, "strait_commit() has not succeeded yet");
}

strait_status strait_grad_ready(strait_context *ctx, int id, float *grad)
{
    struct shared *s = &ctx->shared;
    uint64_t one = 1;
    bool whole;
    int bucket;

    if (not_ready(ctx)) return STRAIT_ERR_USAGE;
    if (id < 0 || id >= ctx->tensors.count || grad == NULL)
        return error_set(STRAIT_ERR_USAGE, "no tensor has the id %d, or its gradient is NULL", id);
    bucket = ctx->tensors.items[id].bucket;
    pthread_mutex_lock(&ctx->mutex);
    if (s->grads[id] != NULL) {
        pthread_mutex_unlock(&ctx->mutex);
        return error_set(STRAIT_ERR_USAGE, "tensor '%s' was handed over already in this step",
                         ctx->tensors.items[id].name);
    }
    s->grads[id] = grad;
    whole = ++s->handed[bucket] == ctx->plan.buckets[bucket].tensors;
    pthread_mutex_unlock(&ctx->mutex);
    /* the counter cannot overflow, so the write cannot fail */
    if (whole && write(ctx->wake_fd, &one, sizeof one) < 0) return STRAIT_OK;
    return STRAIT_OK;
}

/* With the mutex held: is something missing that would make waiting pointless? */
static strait_status find_missing(const strait_context *ctx)
{
    for (int id = 0; id < ctx->tensors.count; id++)
        if (ctx->shared.grads[id] == NULL)
            return error_set(STRAIT_ERR_USAGE, "tensor '%s' was not handed over in this step",
                             ctx->tensors.items[id].name);
    return STRAIT_OK;
}

/* With the mutex held: the step is done. An error stays for every later call. */
static strait_status take_result(strait_context *ctx)
{
    struct shared *s = &ctx->shared;

    if (s->result > STRAIT_SKIPPED) return error_set(s->result, "%s", s->message);
    memset(s->grads, 0, (size_t)ctx->tensors.count * sizeof *s->grads);
    memset(s->handed, 0, (size_t)ctx->plan.count * sizeof *s->handed);
    s->step_done = false;
    return s->result;
}

strait_status strait_wait(strait_context *ctx)
{
    double begin = clock_s();
    strait_status st;

    if (not_ready(ctx)) return STRAIT_ERR_USAGE;
    pthread_mutex_lock(&ctx->mutex);
    st = ctx->shared.step_done ? STRAIT_OK : find_missing(ctx);
    if (st == STRAIT_OK) {
        /* the progress thread bounds this wait: it ends the step or gives up */
        while (!ctx->shared.step_done) pthread_cond_wait(&ctx->step_ended, &ctx->mutex);
        st = take_result(ctx);
    }
    pthread_mutex_unlock(&ctx->mutex);
    ctx->exposed_s += clock_s() - begin;
    return st;
}

/* ---- close ---- */
static void stop_thread(strait_context *ctx)
{
    uint64_t one = 1;

    if (!ctx->running) return;
    pthread_mutex_lock(&ctx->mutex);
    ctx->shared.stop = true;
    pthread_mutex_unlock(&ctx->mutex);
    if (write(ctx->wake_fd, &one, sizeof one) < 0) { /* it is awake already */ }
    pthread_join(ctx->thread, NULL);
}

static void free_exchanges(strait_context *ctx)
{
    struct progress *p = &ctx->progress;

    workers_close(p->workers);
    for (int i = 0; p->window != NULL && i < p->window_size; i++)
        if (p->window[i].env != NULL) p->window[i].schedule->close(&p->window[i]);
    for (int b = 0; p->factors != NULL && b < ctx->plan.count; b++) factors_close(p->factors[b]);
    for (int b = 0; p->buckets != NULL && b < ctx->plan.count; b++)
        bucket_close(&p->buckets[b], &ctx->env);
    if (p->window != NULL) workspace_close(&p->work, ctx->env.device);
    fingerprint_close(p->fingerprint);
    free(p->window);
    free(p->due);
    free(p->factors);
    free(p->buckets);
}

strait_status strait_close(strait_context *ctx)
{
    strait_status st = STRAIT_OK;
    bool broken;

    if (ctx == NULL) return STRAIT_OK;
    stop_thread(ctx);
    broken = ctx->shared.result > STRAIT_SKIPPED;
    free_exchanges(ctx);
    if (ctx->transport != NULL) st = transport_close(ctx->transport, broken);
    if (ctx->env.comm != MPI_COMM_NULL && !broken) MPI_Comm_free(&ctx->env.comm);
    if (broken && ctx->cluster != NULL) ctx->cluster->comm = MPI_COMM_NULL; /* freeing waits */
    cluster_close(ctx->cluster);
    tensor_list_free(&ctx->tensors);
    plan_free(&ctx->plan);
    free(ctx->shared.grads);
    free(ctx->shared.handed);
    if (ctx->wake_fd >= 0) close(ctx->wake_fd);
    pthread_cond_destroy(&ctx->step_ended);
    pthread_mutex_destroy(&ctx->mutex);
    free(ctx);
    return st;
}

/* ---- statistics ---- */
strait_status strait_stats(const strait_context *ctx, strait_statistics *out)
{
    strait_context *mutable = (strait_context *)ctx; /* only the mutex changes */

    pthread_mutex_lock(&mutable->mutex);
    *out = ctx->shared.statistics;
    pthread_mutex_unlock(&mutable->mutex);
    out->exposed_s = ctx->exposed_s;
    return STRAIT_OK;
}

int strait_bucket_count(const strait_context *ctx)
{
    return ctx->running ? ctx->plan.count : 0;
}

strait_status strait_bucket(const strait_context *ctx, int bucket, strait_bucket_info *out)
{
    const struct bucket_plan *plan;

    if (bucket < 0 || bucket >= strait_bucket_count(ctx))
        return error_set(STRAIT_ERR_USAGE, "there is no bucket %d", bucket);
    plan = &ctx->plan.buckets[bucket];
    *out = (strait_bucket_info){ .elements = plan->elements, .tensors = plan->tensors,
                                 .codec = plan->codec->name,
                                 .schedule = ctx->progress.buckets[bucket].schedule->name };
    memcpy(out->wire_bytes, ctx->progress.buckets[bucket].wire_bytes, sizeof out->wire_bytes);
    return STRAIT_OK;
}

const char *strait_transport_path(const strait_context *ctx, strait_peer_class peers)
{
    return (int)peers >= 0 && (int)peers < STRAIT_PEER_CLASSES ? ctx->path[peers] : "none";
}
