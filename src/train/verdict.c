/* SPDX-License-Identifier: Apache-2.0
 * verdict.c - which rank is slowest, and why.
 *
 * In synchronous training every rank's step takes equally long; what differs is how much
 * of it is waiting. The rank that waits least keeps the others waiting. */
#include <stdlib.h>
#include <string.h>

#include "train/report.h"

/* Differences below this share of a step are noise. */
static const double noticeable = 0.1;
/* Fewer steps than this are dominated by start-up and chance. */
static const uint64_t enough = 100;

static double own_s(const struct record *r)
{
    return r->step_s - r->exposed_s;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median over the ranks of `value`. */
static double median(const struct record *records, int ranks,
                     double (*value)(const struct record *))
{
    double *sorted = malloc((size_t)ranks * sizeof *sorted), middle = 0;

    if (sorted == NULL) return 0;
    for (int r = 0; r < ranks; r++) sorted[r] = value(&records[r]);
    qsort(sorted, (size_t)ranks, sizeof *sorted, ascending);
    middle = (sorted[(ranks - 1) / 2] + sorted[ranks / 2]) / 2;
    free(sorted);
    return middle;
}

static double codec_s(const struct record *r)
{
    return r->encode_decode_s;
}

void verdict_slowest(const struct record *records, const struct cluster *cluster, struct text *out)
{
    int slowest = 0;
    double usual = median(records, cluster->size, own_s), excess, codec_excess;
    const struct record *r;

    for (int i = 1; i < cluster->size; i++)
        if (own_s(&records[i]) > own_s(&records[slowest])) slowest = i;
    r = &records[slowest];
    excess = own_s(r) - usual;
    codec_excess = codec_s(r) - median(records, cluster->size, codec_s);
    text_add(out, "slowest: rank %d on %s, %.2f ms of its own work a step against a median of "
                  "%.2f ms: ",
             slowest, cluster_host(cluster, slowest), record_ms(r, own_s(r)), record_ms(r, usual));
    if (cluster->size == 1) text_add(out, "it is the only rank");
    else if (r->steps < enough) text_add(out, "too few steps to tell");
    else if (excess < noticeable * r->step_s) text_add(out, "no rank is markedly slower");
    else if (codec_excess > excess / 2)
        text_add(out, "its encoding and decoding take longer and compete with its compute");
    else text_add(out, "its compute takes longer (a slower or busier processor)");
    text_add(out, "\n");
}
