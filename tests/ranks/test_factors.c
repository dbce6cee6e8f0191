/* SPDX-License-Identifier: Apache-2.0
 * test_factors.c - powersgd over every schedule and transport: the same bits on all ranks,
 * close to the algorithm in double, every byte counted. Run by factors.sh with 1, 2, 3, 4
 * and 7 ranks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/random.h"
#include "codec/reference.h"
#include "engine/factors.h"
#include "lib/ranks.h"
#include "ranks/due_bytes.h"

/* In forward order; comm.bucket_mb puts the last two matrices together, and the vector, and the
 * one that factors would not make smaller, in a bucket of their own. */
enum { TENSORS = 6, STEPS = 4, RANK = 2, SLICE = 128, LARGEST = 18000, SEED = 1 };
static const strait_tensor tensors[TENSORS] = {
    { .name = "wide", .ndim = 2, .shape = { 24, 50 } },
    { .name = "tall", .ndim = 2, .shape = { 600, 30 } }, /* more than is worked on at a time */
    { .name = "vector", .ndim = 1, .shape = { 600 } },
    { .name = "thin", .ndim = 2, .shape = { 2, 300 } },
    { .name = "convolution", .ndim = 4, .shape = { 8, 3, 5, 5 } },
    { .name = "small", .ndim = 2, .shape = { 10, 20 } },
};
enum { BUCKETS = 3, DENSE = 1200 }; /* of matrices; elements beside them */
static const size_t bucket_p[BUCKETS] = { RANK * 24, RANK * 600, RANK * (8 + 10) };
static const size_t bucket_q[BUCKETS] = { RANK * 50, RANK * 30, RANK * (75 + 20) };

static const char *const layouts[] = { [1] = "0", [2] = "0,1", [3] = "0,1,1", [4] = "0,1,0,1",
                                       [7] = "0,1,0,2,1,0,0" };
static const int layout_nodes[][7] = { [1] = { 0 }, [2] = { 0, 1 }, [3] = { 0, 1, 1 },
                                       [4] = { 0, 1, 0, 1 }, [7] = { 0, 1, 0, 2, 1, 0, 0 } };

static size_t rows_of(int t)
{
    return tensors[t].shape[0];
}

static size_t elements_of(int t)
{
    size_t n = 1;

    for (int i = 0; i < tensors[t].ndim; i++) n *= tensors[t].shape[i];
    return n;
}

static bool is_factored(int t)
{
    return RANK * (rows_of(t) + elements_of(t) / rows_of(t)) < elements_of(t);
}

static float gradient(int rank, int t, int step, size_t i)
{
    return (float)(2 * random_unit((uint64_t)rank + 1, (uint64_t)(t * 100 + step), i) - 1);
}

/* ---- a job ---- */
struct job {
    strait_context *ctx;
    float grads[TENSORS][LARGEST];
};

static struct job *open_job(const char *codec, const char *schedule, const char *transport,
                            const char *extra)
{
    char words[4][64], more[128], *rest = NULL;
    const char *assignments[] = { words[0], words[1], words[2], words[3], "comm.slice_kb=0.5",
                                  "comm.window=3", "comm.powersgd_rank=2", "comm.bucket_mb=0.005",
                                  "comm.dense_below=0", "comm.check_every=1",
                                  "fault.timeout_s=30", NULL };
    struct job *job = calloc(1, sizeof *job);
    strait_config *config;

    snprintf(words[0], sizeof words[0], "comm.codec=%s", codec);
    snprintf(words[1], sizeof words[1], "comm.schedule=%s", schedule);
    snprintf(words[2], sizeof words[2], "comm.transport=%s", transport);
    snprintf(words[3], sizeof words[3], "comm.nodes=%s",
             strcmp(schedule, "hierarchical") == 0 ? layouts[ranks_size] : "");
    config = ranks_config(assignments);
    snprintf(more, sizeof more, "%s", extra);
    for (char *word = strtok_r(more, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        ranks_must(strait_config_set(config, word), word);
    ranks_must(strait_open(&job->ctx, config, MPI_COMM_WORLD), "open");
    strait_config_destroy(config);
    for (int t = 0; t < TENSORS; t++) {
        int id;

        ranks_must(strait_register(job->ctx, &tensors[t], &id), "register");
    }
    ranks_must(strait_commit(job->ctx), "commit");
    return job;
}

static void close_job(struct job *job)
{
    ranks_must(strait_close(job->ctx), "close");
    free(job);
}

/* The gradients are in place. */
static strait_status exchange(struct job *job)
{
    for (int i = 0; i < TENSORS; i++) {
        int t = (i + ranks_rank) % TENSORS;

        ranks_must(strait_grad_ready(job->ctx, t, job->grads[t]), "hand over");
    }
    return strait_wait(job->ctx);
}

static strait_status run_step(struct job *job, int step)
{
    for (int t = 0; t < TENSORS; t++)
        for (size_t i = 0; i < elements_of(t); i++)
            job->grads[t][i] = gradient(ranks_rank, t, step, i);
    return exchange(job);
}

static uint64_t hash_job(const struct job *job)
{
    return hash_bytes(job->grads, sizeof job->grads, 0);
}

static bool same_on_all_ranks(uint64_t hash)
{
    uint64_t low, high;

    MPI_Allreduce(&hash, &low, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&hash, &high, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    return low == high;
}

/* ---- the algorithm in double, all ranks on one ---- */
struct reference {
    double residual[7][TENSORS][LARGEST], velocity[7][TENSORS][LARGEST];
    double q[TENSORS][RANK][LARGEST], average[TENSORS][LARGEST];
    double momentum;
    bool bf16, forgets;
};

static struct reference *new_reference(void)
{
    struct reference *ref = calloc(1, sizeof *ref);
    static float drawn[LARGEST];

    for (int t = 0; t < TENSORS; t++)
        for (uint32_t k = 0; k < RANK && is_factored(t); k++) {
            size_t columns = elements_of(t) / rows_of(t);

            factors_draw(SEED, 0, t, k, drawn, columns);
            for (size_t j = 0; j < columns; j++) ref->q[t][k][j] = drawn[j];
        }
    return ref;
}

static void make_orthonormal(double p[RANK][LARGEST], size_t n)
{
    for (int k = 0; k < RANK; k++) {
        double squares = 0;

        for (int other = 0; other < k; other++) {
            double share = 0;

            for (size_t i = 0; i < n; i++) share += p[k][i] * p[other][i];
            for (size_t i = 0; i < n; i++) p[k][i] -= share * p[other][i];
        }
        for (size_t i = 0; i < n; i++) squares += p[k][i] * p[k][i];
        for (size_t i = 0; i < n; i++) p[k][i] /= sqrt(squares);
    }
}

/* m[rank] are the matrices; they become what each rank is left with. */
static void power_step(struct reference *ref, int t, double m[][LARGEST])
{
    static double p[RANK][LARGEST];
    size_t rows = rows_of(t), n = elements_of(t), columns = n / rows;

    memset(p, 0, sizeof p);
    for (int r = 0; r < ranks_size; r++)
        for (int k = 0; k < RANK; k++)
            for (size_t i = 0; i < n; i++)
                p[k][i / columns] += m[r][i] * ref->q[t][k][i % columns] / ranks_size;
    make_orthonormal(p, rows);
    memset(ref->q[t], 0, sizeof ref->q[t]);
    for (int r = 0; r < ranks_size; r++)
        for (int k = 0; k < RANK; k++)
            for (size_t i = 0; i < n; i++)
                ref->q[t][k][i % columns] += m[r][i] * p[k][i / columns] / ranks_size;
    for (size_t i = 0; i < n; i++) {
        ref->average[t][i] = 0;
        for (int k = 0; k < RANK; k++)
            ref->average[t][i] += p[k][i / columns] * ref->q[t][k][i % columns];
        for (int r = 0; r < ranks_size; r++) m[r][i] -= ref->average[t][i];
    }
}

static void simulate_tensor(struct reference *ref, int t, int step)
{
    static double m[7][LARGEST];
    size_t n = elements_of(t);

    for (int r = 0; r < ranks_size; r++)
        for (size_t i = 0; i < n; i++) {
            double *velocity = &ref->velocity[r][t][i];

            *velocity = ref->momentum * *velocity + (double)gradient(r, t, step, i);
            m[r][i] = *velocity + ref->residual[r][t][i];
        }
    if (is_factored(t)) power_step(ref, t, m);
    for (size_t i = 0; i < n && !is_factored(t); i++) {
        ref->average[t][i] = 0;
        for (int r = 0; r < ranks_size; r++) {
            ref->average[t][i] += m[r][i] / ranks_size;
            m[r][i] = 0;
        }
    }
    for (int r = 0; r < ranks_size; r++)
        for (size_t i = 0; i < n; i++) {
            double left = ref->forgets ? 0 : m[r][i];

            ref->residual[r][t][i] = ref->bf16 ? reference_round(left, 8, -133, 0x1.fep127) : left;
        }
}

static double off_by(const struct job *job, const struct reference *ref)
{
    double largest = 0;

    for (int t = 0; t < TENSORS; t++)
        for (size_t i = 0; i < elements_of(t); i++)
            largest = fmax(largest, fabs((double)job->grads[t][i] - ref->average[t][i]));
    return largest;
}

/* ---- tests ---- */
static void check_bytes(const struct job *job, const char *schedule, const char *name)
{
    const struct exchanged what = { &codec_fp32, { .block = 8 }, schedule, SLICE,
                                    layout_nodes[ranks_size] };
    uint64_t due = due_bytes(&what, DENSE);
    strait_statistics s;

    for (int b = 0; b < BUCKETS; b++)
        due += due_bytes(&what, bucket_p[b]) + due_bytes(&what, bucket_q[b]);
    ranks_must(strait_stats(job->ctx, &s), "statistics");
    ranks_check(strait_bucket_count(job->ctx) == BUCKETS + 1 &&
                    (s.checks > 0) == (ranks_size > 1) &&
                    (strcmp(schedule, "dense") == 0 ||
                     s.wire_bytes[0] + s.wire_bytes[1] == STEPS * due),
                name, "%d buckets; sent %llu, due %llu", strait_bucket_count(job->ctx),
                (unsigned long long)(s.wire_bytes[0] + s.wire_bytes[1]),
                (unsigned long long)(STEPS * due));
}

/* With further settings that `ref` knows of. */
static void test_against(struct reference *ref, const char *schedule, const char *transport,
                         const char *extra, double bound)
{
    struct job *job = open_job("powersgd", schedule, transport, extra);
    bool identical = true;
    double worst = 0;
    char name[160];

    for (int step = 0; step < STEPS; step++) {
        ranks_must(run_step(job, step), "a step");
        for (int t = 0; t < TENSORS; t++) simulate_tensor(ref, t, step);
        worst = fmax(worst, off_by(job, ref));
        identical &= same_on_all_ranks(hash_job(job));
    }
    snprintf(name, sizeof name, "powersgd over %s and %s %s: replicas are identical", schedule,
             transport, extra);
    ranks_check(identical, name, "they differ");
    snprintf(name, sizeof name, "powersgd over %s and %s %s: averages are the algorithm's",
             schedule, transport, extra);
    ranks_check(worst < bound, name, "off by %g", worst);
    snprintf(name, sizeof name, "powersgd over %s and %s %s: every byte is counted", schedule,
             transport, extra);
    check_bytes(job, schedule, name);
    close_job(job);
    free(ref);
}

static void test_variants(void)
{
    struct reference *ref;

    ref = new_reference();
    ref->momentum = 0.9;
    test_against(ref, "sra", "ucx", "comm.momentum_correction=0.9", 1e-4);
    ref = new_reference();
    ref->bf16 = true;
    /* a rounding that falls the other way moves an element by 2^-8 of it */
    test_against(ref, "ring", "ucx", "comm.residual=bf16", 1e-2);
    ref = new_reference();
    ref->forgets = true;
    test_against(ref, "sra", "ucx", "comm.error_feedback=false", 1e-5);
}

/* A setting that changes how the work is done changes no bit of it. */
static void test_same_bits(const char *schedule, const char *setting)
{
    struct job *usual = open_job("powersgd", schedule, "ucx", "");
    struct job *other = open_job("powersgd", schedule, "ucx", setting);
    bool same = true;
    char name[128];

    for (int step = 0; step < STEPS; step++) {
        ranks_must(run_step(usual, step), "a step");
        ranks_must(run_step(other, step), "a step");
        same &= hash_job(usual) == hash_job(other);
    }
    snprintf(name, sizeof name, "powersgd over %s: %s gives the same bits", schedule, setting);
    ranks_check(same, name, "they differ");
    close_job(usual);
    close_job(other);
}

/* One element of one rank's tensor: all ranks skip, and the step leaves no trace. */
static void test_skip(const char *schedule, int tensor, float bad)
{
    struct job *with = open_job("powersgd", schedule, "ucx", "comm.momentum_correction=0.5");
    struct job *without = open_job("powersgd", schedule, "ucx", "comm.momentum_correction=0.5");
    bool skipped = false, same = true;
    char name[128];

    for (int step = 0; step < STEPS; step++) {
        if (step == 2) {
            for (int t = 0; t < TENSORS; t++)
                for (size_t i = 0; i < elements_of(t); i++) with->grads[t][i] = 1.0f;
            if (ranks_rank == ranks_size - 1) with->grads[tensor][17] = bad;
            skipped = exchange(with) == STRAIT_SKIPPED;
        }
        ranks_must(run_step(with, step), "a step");
        ranks_must(run_step(without, step), "a step");
        same &= hash_job(with) == hash_job(without);
    }
    snprintf(name, sizeof name, "powersgd over %s: a %g in '%s' is skipped without a trace",
             schedule, (double)bad, tensors[tensor].name);
    ranks_check(skipped && same, name, "skipped %d, same %d", skipped, same);
    close_job(with);
    close_job(without);
}

/* A gradient that is finite where a factor of it is not. */
static void test_overflow(const char *schedule)
{
    struct job *with = open_job("powersgd", schedule, "ucx", "");
    struct job *without = open_job("powersgd", schedule, "ucx", "");
    bool skipped, same = true;
    float first_column[75];
    char name[128];

    factors_draw(SEED, 0, 4, 0, first_column, 75);
    for (size_t i = 0; i < elements_of(4); i++)
        with->grads[4][i] = copysignf(3e38f, first_column[i % 75]);
    skipped = exchange(with) == STRAIT_SKIPPED;
    for (int step = 0; step < 2; step++) {
        ranks_must(run_step(with, step), "a step");
        ranks_must(run_step(without, step), "a step");
        same &= hash_job(with) == hash_job(without);
    }
    snprintf(name, sizeof name, "powersgd over %s: a factor that overflows is skipped", schedule);
    ranks_check(skipped && same, name, "skipped %d, same %d", skipped, same);
    close_job(with);
    close_job(without);
}

/* Factors that are 0 for want of a gradient do not stay so; and what has the rank of the
 * factors comes out whole, at once. */
static void test_low_rank(void)
{
    struct job *job = open_job("powersgd", "sra", "ucx", "");
    double off = 0;
    bool zero = true;

    memset(job->grads, 0, sizeof job->grads);
    ranks_must(exchange(job), "a step");
    for (int t = 0; t < TENSORS; t++)
        for (size_t i = 0; i < elements_of(t); i++) zero &= job->grads[t][i] == 0;
    for (int t = 0; t < TENSORS; t++)
        for (size_t i = 0, columns = elements_of(t) / rows_of(t); i < elements_of(t); i++)
            job->grads[t][i] = gradient(ranks_rank, t, 1, i / columns) *
                               gradient(0, t, 2, i % columns);
    ranks_must(exchange(job), "a step");
    for (int t = 0; t < TENSORS; t++)
        for (size_t i = 0, columns = elements_of(t) / rows_of(t); i < elements_of(t); i++) {
            double mean = 0;

            for (int r = 0; r < ranks_size; r++)
                mean += (double)gradient(r, t, 1, i / columns) / ranks_size;
            off = fmax(off, fabs(mean * (double)gradient(0, t, 2, i % columns) -
                                 (double)job->grads[t][i]));
        }
    ranks_check(zero && off < 1e-5, "powersgd: a gradient of low rank comes out whole, even after "
                "one of zeros", "zeros stay zeros: %d, off by %g", zero, off);
    close_job(job);
}

/* In warm-up the result is that of fp32, and nothing is kept of it. */
static void test_warm_up(void)
{
    struct job *warm = open_job("powersgd", "sra", "ucx", "comm.warmup_steps=3");
    struct job *plain = open_job("fp32", "sra", "ucx", "comm.warmup_steps=0");
    struct job *late = open_job("powersgd", "sra", "ucx", "");
    bool first = true, second;

    for (int step = 0; step < 3; step++) {
        ranks_must(run_step(warm, step), "a step");
        ranks_must(run_step(plain, step), "a step");
        first &= hash_job(warm) == hash_job(plain);
    }
    ranks_must(run_step(warm, 5), "a step");
    ranks_must(run_step(late, 5), "a step");
    second = hash_job(warm) == hash_job(late);
    ranks_check(first && second, "powersgd: warm-up steps travel as fp32 and leave no residual",
                "equal to fp32: %d, equal to a fresh start after it: %d", first, second);
    close_job(warm);
    close_job(plain);
    close_job(late);
}

/* Two rows where a step may be taken back, one where not. */
static void test_residual_bytes(void)
{
    static const struct { const char *setting; uint64_t bytes; } kept[] = {
        { "comm.residual=fp32", 8 }, { "comm.residual=bf16", 4 },
        { "comm.residual=bf16 comm.nonfinite=stop", 2 }, { "comm.error_feedback=false", 0 },
    };

    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        struct job *job = open_job("powersgd", "sra", "ucx", kept[i].setting);
        strait_statistics s;
        uint64_t due = 0;
        char name[128];

        for (int t = 0; t < TENSORS; t++)
            due += is_factored(t) ? kept[i].bytes * elements_of(t) : 0;
        ranks_must(run_step(job, 0), "a step");
        ranks_must(strait_stats(job->ctx, &s), "statistics");
        snprintf(name, sizeof name, "powersgd with %s keeps %llu bytes an element",
                 kept[i].setting, (unsigned long long)kept[i].bytes);
        ranks_check(s.residual_bytes == due, name, "%llu, due %llu",
                    (unsigned long long)s.residual_bytes, (unsigned long long)due);
        close_job(job);
    }
}

int main(void)
{
    ranks_begin();
    for (int s = 0; schedule_table[s] != NULL; s++) {
        for (int t = 0; transport_table[t] != NULL; t++)
            test_against(new_reference(), schedule_table[s]->name, transport_table[t]->name, "",
                         1e-5);
        if (strcmp(schedule_table[s]->name, "dense") == 0) continue; /* MPI sums as it likes */
        test_same_bits(schedule_table[s]->name, "comm.threads=4");
        test_same_bits(schedule_table[s]->name, "comm.window=1");
        test_same_bits(schedule_table[s]->name, "comm.nonfinite=stop");
        test_skip(schedule_table[s]->name, 0, NAN);
        test_skip(schedule_table[s]->name, 2, INFINITY); /* of a bucket in fp32 */
        test_overflow(schedule_table[s]->name);
    }
    test_variants();
    test_low_rank();
    test_warm_up();
    test_residual_bytes();
    return ranks_end();
}
