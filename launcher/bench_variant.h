/* SPDX-License-Identifier: Apache-2.0
 * bench_variant.h - one way to average over the ranks: a codec and a schedule in a context
 * of their own, or MPI_Allreduce. */
#ifndef STRAIT_LAUNCHER_BENCH_VARIANT_H
#define STRAIT_LAUNCHER_BENCH_VARIANT_H

#include "bench.h"
#include "schedule/schedule.h"

enum { BENCH_REPEATS_MAX = 1000 };

/* What all variants of one size share. */
struct bench_job {
    const struct cluster *cluster;
    const char *transport;
    const struct bench_sets *sets;
    struct bench_tensors tensors;
    size_t elements;
    int repeats, warmup;
    const float *given; /* gradients read from a file, or NULL */
    size_t given_count;
    float *work;        /* this rank's gradient: what an exchange is given */
    /* A backward pass that makes the tensors one after the other, each in proportion to its
     * elements. */
    enum { COMPUTE_NONE, COMPUTE_FIXED, COMPUTE_SAME } compute; /* same: as the exchange takes */
    double compute_s;
    bool busy;          /* it takes processor time; otherwise it sleeps */
};

/* Memory of this process on account of a variant, in bytes; NaN: the kernel does not tell. */
struct bench_memory {
    double held, peak; /* now; at most so far */
    double before;
};

/* Around all that is done for the variant. */
void bench_memory_begin(struct bench_memory *m);
void bench_memory_end(struct bench_memory *m);

/* One repeat after the other. */
struct bench_times {
    double wall_s[BENCH_REPEATS_MAX]; /* of the slowest rank */
    double cpu_s[BENCH_REPEATS_MAX];  /* processor time of the rank that used most */
};

struct bench_variant {
    const struct bench_codec_choice *choice; /* NULL: MPI_Allreduce */
    const struct schedule *schedule;
    strait_context *ctx;
    struct bench_times alone, step;  /* the exchange; with the backward pass before it */
    double compute_s[BENCH_REPEATS_MAX]; /* of the pass */
    double error;                    /* of the first exchange */
    bool identical;                  /* the same bits on all ranks, every time */
    strait_statistics begin, end;    /* around one measured exchange */
    struct bench_memory memory;
};

/* Collective; all ranks get the same status. */
strait_status bench_variant_open(struct bench_variant *v, const struct bench_job *job);

/* Exchange number `round`, the warm-up first, and judge what came of it. Collective; an
 * error may be this rank's alone. */
strait_status bench_variant_run(struct bench_variant *v, const struct bench_job *job, int round);

/* The largest error that generated gradients may have. */
double bench_variant_bound(const struct bench_variant *v, const struct bench_job *job);

#endif
