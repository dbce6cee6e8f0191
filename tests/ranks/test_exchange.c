/* SPDX-License-Identifier: Apache-2.0
 * test_exchange.c - every codec, schedule and transport: the same bits on all ranks, equal
 * to the simulation, every byte counted. Run by exchange.sh with 1, 2, 3, 4 and 7 ranks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/random.h"
#include "cluster/cluster.h"
#include "lib/ranks.h"
#include "ranks/due_bytes.h"
#include "ranks/simulate.h"
#include "schedule/schedule.h"

enum { STEPS = 4, TENSORS = 3, SLICE = 128 };
/* The last is smaller than some rank counts: some ranks own nothing of its bucket. */
static const size_t elements[TENSORS] = { 3001, 1500, 5 };

/* A codec and the settings that it is tested with: `extra` says them to a context. */
struct variant {
    const struct codec *codec;
    const char *label, *extra;
    struct codec_settings settings;
    bool residual_bf16;
};

#define USUAL .block = 64, .topk_ratio = 0.05, .randk_ratio = 0.05
static const struct variant variants[] = {
    { &codec_int8, "int8 by chance", "comm.rounding=stochastic",
      { USUAL, .stochastic = true }, false },
    { &codec_int2, "int2 by chance", "comm.rounding=stochastic",
      { USUAL, .stochastic = true }, false },
    { &codec_int4, "int4, bf16 residual", "comm.residual=bf16", { USUAL }, true },
    { &codec_topk, "topk, bf16 residual", "comm.residual=bf16", { USUAL }, true },
    { &codec_topk, "topk as fp16", "comm.topk_values=fp16",
      { USUAL, .topk_values = TOPK_FP16 }, false },
    { &codec_topk, "topk as int8", "comm.topk_values=int8",
      { USUAL, .topk_values = TOPK_INT8 }, false },
    { &codec_topk, "topk as int2", "comm.topk_values=int2",
      { USUAL, .topk_values = TOPK_INT2 }, false },
};

static struct variant variant_of(const struct codec *codec)
{
    return (struct variant){ codec, codec->name, NULL, { USUAL }, false };
}

static float gradient(int rank, int tensor, int step, size_t i)
{
    return (float)(2 * random_unit((uint64_t)rank + 1, (uint64_t)(tensor * 100 + step), i) - 1);
}

/* hierarchical is tried on uneven nodes whose ranks do not follow each other. */
static const char *const layouts[] = { [1] = "0", [2] = "0,1", [3] = "0,1,1", [4] = "0,1,0,1",
                                       [7] = "0,1,0,2,1,0,0" };
static const int layout_nodes[][7] = { [1] = { 0 }, [2] = { 0, 1 }, [3] = { 0, 1, 1 },
                                       [4] = { 0, 1, 0, 1 }, [7] = { 0, 1, 0, 2, 1, 0, 0 } };

static bool is_hierarchical(const char *schedule)
{
    return strcmp(schedule, "hierarchical") == 0;
}

struct job {
    strait_context *ctx;
    int ids[TENSORS];
    float *grads[TENSORS];
};

/* `extra`: further assignments, a space between them; or NULL. */
static void open_job(struct job *job, const char *codec, const char *schedule,
                     const char *transport, const char *extra)
{
    char words[4][64], more[128], *rest = NULL;
    const char *assignments[] = { words[0], words[1], words[2], words[3], "comm.block=64",
                                  "comm.slice_kb=0.5", "comm.window=3",
                                  "comm.topk_ratio=0.05", "comm.randk_ratio=0.05",
                                  "comm.bucket_mb=0.006",
                                  "comm.dense_below=0", "comm.check_every=1",
                                  "fault.timeout_s=30", NULL };
    strait_config *config;

    snprintf(words[0], sizeof words[0], "comm.codec=%s", codec);
    snprintf(words[1], sizeof words[1], "comm.schedule=%s", schedule);
    snprintf(words[2], sizeof words[2], "comm.transport=%s", transport);
    snprintf(words[3], sizeof words[3], "comm.nodes=%s",
             is_hierarchical(schedule) ? layouts[ranks_size] : "");
    config = ranks_config(assignments);
    snprintf(more, sizeof more, "%s", extra != NULL ? extra : "");
    for (char *word = strtok_r(more, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        ranks_must(strait_config_set(config, word), word);
    ranks_must(strait_open(&job->ctx, config, MPI_COMM_WORLD), "open");
    strait_config_destroy(config);
    for (int t = 0; t < TENSORS; t++) {
        char name[32];
        strait_tensor tensor = { .name = name, .ndim = 1, .shape = { elements[t] } };

        snprintf(name, sizeof name, "tensor%d", t);
        ranks_must(strait_register(job->ctx, &tensor, &job->ids[t]), "register");
        job->grads[t] = malloc(elements[t] * sizeof(float));
    }
    ranks_must(strait_commit(job->ctx), "commit");
}

static void close_job(struct job *job)
{
    ranks_must(strait_close(job->ctx), "close");
    for (int t = 0; t < TENSORS; t++) free(job->grads[t]);
}

/* One step with this rank's gradients, handed over in an order that differs by rank. */
static strait_status run_step(struct job *job, int step)
{
    for (int i = 0; i < TENSORS; i++) {
        int t = (i + ranks_rank + step) % TENSORS;

        for (size_t e = 0; e < elements[t]; e++)
            job->grads[t][e] = gradient(ranks_rank, t, step, e);
        ranks_must(strait_grad_ready(job->ctx, job->ids[t], job->grads[t]), "hand over");
    }
    return strait_wait(job->ctx);
}

static uint64_t hash_job(const struct job *job, uint64_t seed)
{
    for (int t = 0; t < TENSORS; t++)
        seed = hash_bytes(job->grads[t], elements[t] * sizeof(float), seed);
    return seed;
}

static bool same_on_all_ranks(uint64_t hash)
{
    uint64_t low, high;

    MPI_Allreduce(&hash, &low, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&hash, &high, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    return low == high;
}

/* ---- the plain reference: each tensor is a bucket of its own at this bucket size, but
 * for the two last, which share the first (1505 elements), the last tensor first ---- */
struct reference {
    struct simulation *large, *shared;
    float **all[2];        /* [bucket][rank] gradients */
    float *average[2];
};

enum { LARGE = 3001, SHARED = 1505 };

static struct reference *new_reference(const struct variant *v)
{
    struct reference *ref = calloc(1, sizeof *ref);

    ref->large = simulation_new(v->codec, &v->settings, LARGE, ranks_size, 1);
    ref->shared = simulation_new(v->codec, &v->settings, SHARED, ranks_size, 0);
    simulation_place(ref->large, layout_nodes[ranks_size]);
    simulation_place(ref->shared, layout_nodes[ranks_size]);
    if (v->residual_bf16) {
        simulation_keep_bf16(ref->large);
        simulation_keep_bf16(ref->shared);
    }
    for (int b = 0; b < 2; b++) {
        ref->all[b] = calloc((size_t)ranks_size, sizeof *ref->all[b]);
        ref->average[b] = malloc(LARGE * sizeof(float));
        for (int r = 0; r < ranks_size; r++) ref->all[b][r] = malloc(LARGE * sizeof(float));
    }
    return ref;
}

static void free_reference(struct reference *ref)
{
    simulation_free(ref->large);
    simulation_free(ref->shared);
    for (int b = 0; b < 2; b++) {
        for (int r = 0; r < ranks_size; r++) free(ref->all[b][r]);
        free(ref->all[b]);
        free(ref->average[b]);
    }
    free(ref);
}

static void simulate_step(struct reference *ref, const char *schedule, int step)
{
    for (int r = 0; r < ranks_size; r++) {
        for (size_t i = 0; i < LARGE; i++) ref->all[0][r][i] = gradient(r, 0, step, i);
        for (size_t i = 0; i < 5; i++) ref->all[1][r][i] = gradient(r, 2, step, i);
        for (size_t i = 0; i < 1500; i++) ref->all[1][r][5 + i] = gradient(r, 1, step, i);
    }
    simulation_step(ref->large, schedule, SLICE, ref->all[0], ref->average[0]);
    simulation_step(ref->shared, schedule, SLICE, ref->all[1], ref->average[1]);
}

static double distance(const float *a, const float *b, size_t n)
{
    double largest = 0;

    for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs((double)a[i] - (double)b[i]));
    return largest;
}

/* How far the job's averages are from the simulation's. */
static double off_by(const struct job *job, const struct reference *ref)
{
    return fmax(distance(job->grads[0], ref->average[0], LARGE),
                fmax(distance(job->grads[2], ref->average[1], 5),
                     distance(job->grads[1], ref->average[1] + 5, 1500)));
}

/* Of both buckets. */
static uint64_t due_in_step(const struct variant *v, const char *schedule)
{
    const struct exchanged what = { v->codec, v->settings, schedule, SLICE,
                                    layout_nodes[ranks_size] };

    return due_bytes(&what, LARGE) + due_bytes(&what, SHARED);
}

static void check_bytes(const struct job *job, const struct variant *v, const char *schedule,
                        const char *name)
{
    strait_statistics s;
    uint64_t due = STEPS * due_in_step(v, schedule);
    uint64_t others, by_bucket = 0;
    bool dense = strcmp(schedule, "dense") == 0;

    ranks_must(strait_stats(job->ctx, &s), "statistics");
    for (int b = 0; b < strait_bucket_count(job->ctx); b++) {
        strait_bucket_info info;

        ranks_must(strait_bucket(job->ctx, b, &info), "bucket");
        by_bucket += info.wire_bytes[0] + info.wire_bytes[1];
    }
    /* beside payloads the transport carries the greeting and a hash per bucket and step */
    others = (uint64_t)(ranks_size - 1) * (8 + STEPS * 2 * 8);
    ranks_check(s.steps == STEPS && s.checks == (ranks_size > 1 ? STEPS : 0) &&
                    by_bucket == s.wire_bytes[0] + s.wire_bytes[1] &&
                    s.raw_bytes == STEPS * 4 * (LARGE + SHARED) &&
                    (dense || (s.wire_bytes[0] + s.wire_bytes[1] == due &&
                               s.transport_bytes[0] + s.transport_bytes[1] == due + others)),
                name, "wire %llu + %llu, due %llu; transport %llu + %llu, others %llu; checks %llu",
                (unsigned long long)s.wire_bytes[0], (unsigned long long)s.wire_bytes[1],
                (unsigned long long)due, (unsigned long long)s.transport_bytes[0],
                (unsigned long long)s.transport_bytes[1], (unsigned long long)others,
                (unsigned long long)s.checks);
}

static uint64_t test_combination(const struct variant *v, const struct schedule *schedule,
                                 const struct transport_ops *transport)
{
    bool dense = strcmp(schedule->name, "dense") == 0, identical = true;
    struct reference *ref = new_reference(v);
    char name[128];
    double worst = 0;
    uint64_t hash = 0;
    struct job job;

    open_job(&job, v->codec->name, schedule->name, transport->name, v->extra);
    for (int step = 0; step < STEPS; step++) {
        ranks_must(run_step(&job, step), "a step");
        simulate_step(ref, schedule->name, step);
        worst = fmax(worst, off_by(&job, ref));
        hash = hash_job(&job, hash);
        identical &= same_on_all_ranks(hash);
    }
    snprintf(name, sizeof name, "%s over %s and %s: replicas are identical", v->label,
             schedule->name, transport->name);
    ranks_check(identical, name, "hash %016llx", (unsigned long long)hash);
    snprintf(name, sizeof name, "%s over %s and %s: averages equal the simulation", v->label,
             schedule->name, transport->name);
    /* the order in which MPI sums is its own: dense is close, sra is equal */
    ranks_check(dense ? worst < 1e-6 : worst == 0, name, "off by %g", worst);
    snprintf(name, sizeof name, "%s over %s and %s: every byte is counted", v->label,
             schedule->name, transport->name);
    check_bytes(&job, v, schedule->name, name);
    close_job(&job);
    free_reference(ref);
    return hash;
}

static void test_variant(const struct variant *v)
{
    for (int s = 0; schedule_table[s] != NULL; s++) {
        uint64_t first = 0;
        bool same = true;
        char name[96];

        for (int t = 0; transport_table[t] != NULL; t++) {
            uint64_t hash = test_combination(v, schedule_table[s], transport_table[t]);

            if (t == 0) first = hash;
            same &= hash == first;
        }
        snprintf(name, sizeof name, "%s over %s: all transports give the same bits", v->label,
                 schedule_table[s]->name);
        ranks_check(same, name, "they differ");
    }
}

static void test_all_combinations(void)
{
    for (int c = 0; codec_table[c] != NULL; c++) {
        struct variant v = variant_of(codec_table[c]);

        test_variant(&v);
    }
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        test_variant(&variants[i]);
}

/* int8 on a large bucket: a rank of sra, or a node of hierarchical, of which there are M,
 * sends within 2 % of 2(M-1)/M * r * n. */
static void test_wire_formula(const char *schedule)
{
    char choice[64], nodes[64];
    const char *const words[] = { "comm.codec=int8", "comm.dense_below=0", choice, nodes, NULL };
    enum { N = 1 << 18 };
    bool by_node = is_hierarchical(schedule);
    int senders = by_node ? layout_of(layout_nodes[ranks_size]).nodes : ranks_size;
    double r = 1.0 + 4.0 / 256, due = 2.0 * (senders - 1) / senders * r * N, sent;
    strait_config *config;
    strait_tensor tensor = { .name = "t", .ndim = 2, .shape = { 512, 512 } };
    float *grad = calloc(N, sizeof *grad);
    strait_statistics s;
    strait_context *ctx;
    MPI_Comm node;
    int id;

    snprintf(choice, sizeof choice, "comm.schedule=%s", schedule);
    snprintf(nodes, sizeof nodes, "comm.nodes=%s", by_node ? layouts[ranks_size] : "");
    config = ranks_config(words);
    ranks_must(strait_open(&ctx, config, MPI_COMM_WORLD), "open");
    ranks_must(strait_register(ctx, &tensor, &id), "register");
    ranks_must(strait_commit(ctx), "commit");
    ranks_must(strait_grad_ready(ctx, id, grad), "hand over");
    ranks_must(strait_wait(ctx), "wait");
    ranks_must(strait_stats(ctx, &s), "statistics");
    sent = (double)(s.wire_bytes[0] + s.wire_bytes[1]);
    if (by_node) {
        sent = (double)s.wire_bytes[STRAIT_BETWEEN_NODES];
        MPI_Comm_split(MPI_COMM_WORLD, layout_of(layout_nodes[ranks_size]).node, 0, &node);
        MPI_Allreduce(MPI_IN_PLACE, &sent, 1, MPI_DOUBLE, MPI_SUM, node);
        MPI_Comm_free(&node);
    }
    snprintf(choice, sizeof choice, "int8 over %s sends 2(M-1)/M * r * n within 2 %%", schedule);
    ranks_check(senders == 1 ? sent == 0 : fabs(sent / due - 1) < 0.02, choice,
                "sent %.0f, formula %.0f", sent, due);
    ranks_must(strait_close(ctx), "close");
    strait_config_destroy(config);
    free(grad);
}

/* A NaN on one rank: all skip, and the steps around give what they give without it. */
static void test_nonfinite(const char *codec, const char *schedule, float bad)
{
    struct job with, without;
    int culprit = ranks_size - 1;
    strait_statistics s;
    char name[96];
    bool same;

    open_job(&with, codec, schedule, "ucx", NULL);
    open_job(&without, codec, schedule, "ucx", NULL);
    ranks_must(run_step(&with, 0), "a step");
    for (int t = 0; t < TENSORS; t++) {
        for (size_t i = 0; i < elements[t]; i++) with.grads[t][i] = 1.0f;
        if (ranks_rank == culprit && t == 1) with.grads[t][1234] = bad;
        ranks_must(strait_grad_ready(with.ctx, with.ids[t], with.grads[t]), "hand over");
    }
    snprintf(name, sizeof name, "%s over %s: %s on one rank skips the step on all", codec, schedule,
             isnan(bad) ? "NaN" : "infinity");
    ranks_check(strait_wait(with.ctx) == STRAIT_SKIPPED, name, "not skipped");
    ranks_must(run_step(&with, 1), "a step");
    ranks_must(run_step(&without, 0), "a step");
    ranks_must(run_step(&without, 1), "a step");
    ranks_must(strait_stats(with.ctx, &s), "statistics");
    /* randk draws by step, so by other numbers here: test_momentum() has its residuals */
    same = hash_job(&with, 0) == hash_job(&without, 0) || strcmp(codec, "randk") == 0;
    snprintf(name, sizeof name, "%s over %s: %s", codec, schedule,
             strcmp(codec, "randk") == 0 ? "the step after a skipped one is done"
                                         : "a skipped step leaves residuals as they were");
    ranks_check(same && s.skipped_steps == 1 && s.steps == 3, name, "the next step differs");
    close_job(&with);
    close_job(&without);
}

static void test_stop_on_nonfinite(void)
{
    struct job job;

    open_job(&job, "int8", "sra", "ucx", "comm.nonfinite=stop");
    for (int t = 0; t < TENSORS; t++) {
        for (size_t i = 0; i < elements[t]; i++) job.grads[t][i] = 0.0f;
        if (ranks_rank == 0) job.grads[t][0] = INFINITY;
        ranks_must(strait_grad_ready(job.ctx, job.ids[t], job.grads[t]), "hand over");
    }
    ranks_check(strait_wait(job.ctx) == STRAIT_ERR_NONFINITE &&
                    strait_wait(job.ctx) == STRAIT_ERR_NONFINITE,
                "with comm.nonfinite = stop all ranks stop, and stay stopped", "%s",
                strait_error_message());
    strait_close(job.ctx);
    for (int t = 0; t < TENSORS; t++) free(job.grads[t]);
}

/* In warm-up the result is that of fp32, and residuals stay empty. */
static void test_warm_up(void)
{
    struct job warm, plain, late;
    bool first, second;

    open_job(&warm, "topk", "sra", "ucx", "comm.warmup_steps=2");
    open_job(&plain, "fp32", "sra", "ucx", NULL);
    open_job(&late, "topk", "sra", "ucx", NULL);
    for (int step = 0; step < 2; step++) {
        ranks_must(run_step(&warm, step), "a step");
        ranks_must(run_step(&plain, step), "a step");
    }
    first = hash_job(&warm, 0) == hash_job(&plain, 0);
    ranks_must(run_step(&warm, 5), "a step");
    ranks_must(run_step(&late, 5), "a step");
    second = hash_job(&warm, 0) == hash_job(&late, 0);
    ranks_check(first && second, "warm-up steps travel as fp32 and leave no residual",
                "equal to fp32: %d, equal to a fresh start after it: %d", first, second);
    close_job(&warm);
    close_job(&plain);
    close_job(&late);
}

/* The share of topk falls by one factor a step from 0.25 to 0.05, and stays there. */
static void test_ratio_warm_up(const char *schedule)
{
    enum { WARM = 3 };
    struct variant v = variant_of(&codec_topk);
    struct reference *ref = new_reference(&v);
    uint64_t due = 0;
    double worst = 0;
    strait_statistics s;
    struct job job;
    char name[96];

    open_job(&job, "topk", schedule, "ucx", "comm.ratio_warmup_steps=3");
    for (int step = 0; step < WARM + 2; step++) {
        v.settings.topk_ratio = step < WARM ? 0.25 * pow(0.05 / 0.25, (double)step / WARM) : 0.05;
        simulation_settings(ref->large, &v.settings);
        simulation_settings(ref->shared, &v.settings);
        ranks_must(run_step(&job, step), "a step");
        simulate_step(ref, schedule, step);
        worst = fmax(worst, off_by(&job, ref));
        due += due_in_step(&v, schedule);
    }
    ranks_must(strait_stats(job.ctx, &s), "statistics");
    snprintf(name, sizeof name, "topk over %s: the ratio warms up as the formula says", schedule);
    ranks_check(worst == 0 && s.wire_bytes[0] + s.wire_bytes[1] == due, name,
                "off by %g; sent %llu, due %llu", worst,
                (unsigned long long)(s.wire_bytes[0] + s.wire_bytes[1]), (unsigned long long)due);
    close_job(&job);
    free_reference(ref);
}

/* A step whose last rank has a NaN: it must leave no trace. */
static strait_status run_bad_step(struct job *job)
{
    for (int t = 0; t < TENSORS; t++) {
        for (size_t i = 0; i < elements[t]; i++) job->grads[t][i] = 1.0f;
        if (ranks_rank == ranks_size - 1 && t == 1) job->grads[t][1234] = NAN;
        ranks_must(strait_grad_ready(job->ctx, job->ids[t], job->grads[t]), "hand over");
    }
    return strait_wait(job->ctx);
}

/* Each rank's own momentum, masked where a sparse codec sent: as the simulation has it, with
 * a skipped step on the way. */
static void test_momentum(const struct codec *codec, const char *schedule)
{
    const struct variant v = variant_of(codec);
    struct reference *ref = new_reference(&v);
    bool dense = strcmp(schedule, "dense") == 0, sparse = codec->clear_sent != NULL;
    bool skipped = false;
    double worst = 0;
    struct job job;
    char name[96];

    simulation_momentum(ref->large, 0.9f, sparse);
    simulation_momentum(ref->shared, 0.9f, sparse);
    open_job(&job, codec->name, schedule, "ucx", "comm.momentum_correction=0.9");
    for (int step = 0; step < STEPS; step++) {
        if (step == 2) {
            skipped = run_bad_step(&job) == STRAIT_SKIPPED;
            simulation_skip(ref->large);
            simulation_skip(ref->shared);
        }
        ranks_must(run_step(&job, step), "a step");
        simulate_step(ref, schedule, step);
        worst = fmax(worst, off_by(&job, ref));
    }
    snprintf(name, sizeof name, "%s over %s: momentum is as in the simulation", codec->name,
             schedule);
    ranks_check(skipped && (dense ? worst < 1e-6 : worst == 0), name, "skipped %d, off by %g",
                skipped, worst);
    close_job(&job);
    free_reference(ref);
}

/* Each rank's gradient, of each tensor by itself, is held down before anything else. */
static void test_clipping(void)
{
    const double limit = 20 / sqrt(ranks_size);
    double off = 0;
    struct job job;

    open_job(&job, "fp32", "sra", "ucx", "comm.clip_norm=20");
    ranks_must(run_step(&job, 0), "a step");
    for (int t = 0; t < TENSORS; t++) {
        double scale[ranks_size];

        for (int r = 0; r < ranks_size; r++) {
            double squares = 0;

            for (size_t i = 0; i < elements[t]; i++) squares += pow(gradient(r, t, 0, i), 2);
            scale[r] = fmin(1, limit / sqrt(squares)); /* of the large tensors below 1 */
        }
        for (size_t i = 0; i < elements[t]; i++) {
            double mean = 0;

            for (int r = 0; r < ranks_size; r++) mean += scale[r] * gradient(r, t, 0, i);
            off = fmax(off, fabs(mean / ranks_size - (double)job.grads[t][i]));
        }
    }
    ranks_check(off < 1e-6, "gradients are clipped, tensor by tensor", "off by %g", off);
    ranks_must(run_bad_step(&job) == STRAIT_SKIPPED ? STRAIT_OK : STRAIT_ERR_USAGE, "a skip");
    close_job(&job);
}

static void test_feedback_off(void)
{
    struct job on, off;
    bool first, second;

    open_job(&on, "topk", "sra", "ucx", NULL);
    open_job(&off, "topk", "sra", "ucx", "comm.error_feedback=false");
    ranks_must(run_step(&on, 0), "a step");
    ranks_must(run_step(&off, 0), "a step");
    first = hash_job(&on, 0) == hash_job(&off, 0);
    ranks_must(run_step(&on, 1), "a step");
    ranks_must(run_step(&off, 1), "a step");
    second = hash_job(&on, 0) != hash_job(&off, 0);
    ranks_check(first && second, "error feedback shows from the second step on, and can be off",
                "first step equal: %d, second different: %d", first, second);
    close_job(&on);
    close_job(&off);
}

/* A setting that changes how the work is done changes no bit of it. */
static void test_same_bits(const char *codec, const char *schedule, const char *transport,
                           const char *setting)
{
    static const char momentum[] = "comm.momentum_correction=0.5";
    struct job usual, other;
    bool same = true;
    char name[128], with[128];

    snprintf(with, sizeof with, "%s %s", momentum, setting);
    open_job(&usual, codec, schedule, transport, momentum);
    open_job(&other, codec, schedule, transport, with);
    for (int step = 0; step < STEPS; step++) {
        ranks_must(run_step(&usual, step), "a step");
        ranks_must(run_step(&other, step), "a step");
        same &= hash_job(&usual, 0) == hash_job(&other, 0);
    }
    snprintf(name, sizeof name, "%s over %s and %s: %s gives the same bits", codec, schedule,
             transport, setting);
    ranks_check(same, name, "they differ");
    close_job(&usual);
    close_job(&other);
}

static void test_ways_of_working(void)
{
    static const char *const rows_in_place = "comm.nonfinite=stop";
    static const char *const threads = "comm.threads=4";
    static const char *const checksum = "comm.checksum=true";

    for (int c = 0; codec_table[c] != NULL; c++) {
        const char *codec = codec_table[c]->name;

        test_same_bits(codec, "sra", "ucx", threads);
        if (!codec_table[c]->lossy) continue;
        test_same_bits(codec, "sra", "ucx", rows_in_place);
        test_same_bits(codec, "ring", "ucx", rows_in_place);
        test_same_bits(codec, "hierarchical", "ucx", rows_in_place);
    }
    for (int s = 0; schedule_table[s] != NULL; s++) {
        if (strcmp(schedule_table[s]->name, "dense") == 0) continue; /* MPI sums as it likes */
        test_same_bits("int8", schedule_table[s]->name, "ucx", threads);
        test_same_bits("int8", schedule_table[s]->name, "mpi", threads);
        test_same_bits("int8", schedule_table[s]->name, "ucx", checksum);
        test_same_bits("int8", schedule_table[s]->name, "ucx", "comm.window=1");
        test_same_bits("int8", schedule_table[s]->name, "ucx", "comm.window=100");
    }
}

int main(void)
{
    ranks_begin();
    test_all_combinations();
    test_wire_formula("sra");
    test_wire_formula("hierarchical");
    for (int c = 0; codec_table[c] != NULL; c++)
        for (int s = 0; schedule_table[s] != NULL; s++)
            test_nonfinite(codec_table[c]->name, schedule_table[s]->name, c % 2 ? INFINITY : NAN);
    test_ways_of_working();
    test_stop_on_nonfinite();
    test_warm_up();
    test_ratio_warm_up("sra");
    test_ratio_warm_up("ring");
    test_ratio_warm_up("allgather");
    for (int s = 0; schedule_table[s] != NULL; s++) {
        test_momentum(&codec_topk, schedule_table[s]->name);
        test_momentum(&codec_randk, schedule_table[s]->name);
        test_momentum(&codec_int8, schedule_table[s]->name);
        test_momentum(&codec_fp32, schedule_table[s]->name);
    }
    test_clipping();
    test_feedback_off();
    return ranks_end();
}
