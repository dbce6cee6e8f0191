/* SPDX-License-Identifier: Apache-2.0
 * report.h - what the user sees of a run: first lines, live line, table, metrics.
 *
 * Rank 0 alone reports; it holds all ranks' records by then. */
#ifndef STRAIT_TRAIN_REPORT_H
#define STRAIT_TRAIN_REPORT_H

#include "cluster/cluster.h"
#include "train/record.h"
#include "train/rundir.h"

struct report {
    const struct strait_config *config;
    const struct cluster *cluster;
    struct rundir rundir;
    enum { PROGRESS_OFF, PROGRESS_PLAIN, PROGRESS_LINE } progress;
    size_t total_steps;
    double begun_at, drawn_at; /* clock_s() */
    bool line_open;            /* a live line stands on the terminal */
};

/* Where a moment of the run is. */
struct moment {
    int64_t epoch;        /* from 1 */
    size_t step;          /* of the whole run, from 1 */
    bool epoch_end;
};

strait_status report_open(struct report *r, const struct strait_config *config,
                          const struct cluster *cluster, size_t total_steps);
strait_status report_close(struct report *r);

/* "4 ranks on 1 node ...", the transport's paths, buckets and codec, the data. */
void report_header(const struct report *r, const strait_context *ctx, size_t train, size_t test,
                   size_t parameters);

/* Redraw the live line, not more often than the eye can follow. */
void report_tick(struct report *r, const struct moment *at, double loss, const struct record *own);

/* An interval is over: a plain line (or a kept live one) and a JSON record per rank. */
strait_status report_interval(struct report *r, const struct moment *at,
                              const struct record *records);

/* The run is over: the table of ranks, the slowest one, the verdict on replicas. */
strait_status report_summary(struct report *r, const struct moment *at,
                             const struct record *records, double accuracy, bool identical,
                             uint64_t hash);

/* ---- verdict.c */
/* The rank whose own work (steps less waiting) took longest, and why, in words. */
void verdict_slowest(const struct record *records, const struct cluster *cluster,
                     struct text *out);

#endif
