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
    size_t elements;
    size_t *bounds; /* between the tensors: bench_cut() */
    int tensors, repeats, warmup;
    const float *given; /* gradients read from a file, or NULL */
    size_t given_count;
    double *mean; /* exact, of the elements that this rank judges: bench_share() */
    float *source, *work; /* this rank's gradient, and what an exchange is given */
};

struct bench_variant {
    const struct bench_codec_choice *choice; /* NULL: MPI_Allreduce */
    const struct schedule *schedule;
    strait_context *ctx;
    double times[BENCH_REPEATS_MAX]; /* of the slowest rank */
    double error;                    /* of the first exchange */
    bool identical;                  /* the same bits on all ranks, every time */
    strait_statistics begin, end;    /* around the measured exchanges */
};

/* Each rank judges a share of the elements: from here on, up to that of rank + 1. */
size_t bench_share(const struct bench_job *job, int rank);

/* Fill in source and mean. */
void bench_fill(struct bench_job *job);

/* Collective; all ranks get the same status. */
strait_status bench_variant_open(struct bench_variant *v, const struct bench_job *job);

/* Exchange number `round`, the warm-up first, and judge what came of it. Collective; an
 * error may be this rank's alone. */
strait_status bench_variant_run(struct bench_variant *v, const struct bench_job *job, int round);

/* The largest error that generated gradients may have. */
double bench_variant_bound(const struct bench_variant *v, const struct bench_job *job);

#endif
