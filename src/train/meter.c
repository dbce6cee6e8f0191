/* SPDX-License-Identifier: Apache-2.0
 * meter.c - see meter.h. Medians and percentiles are exact: every step's time is kept. */
#include "train/meter.h"

#include <stdlib.h>
#include <string.h>

struct meter {
    size_t capacity, count, cut_at;
    double *step_s;
    double *sorted;                /* scratch */
    struct record total, at_cut;   /* what meter_step() adds up */
    strait_statistics then;        /* the context's totals at the last cut */
};

struct meter *meter_open(size_t steps)
{
    struct meter *m = calloc(1, sizeof *m);

    if (m == NULL) return NULL;
    m->capacity = steps;
    m->step_s = calloc(steps + 1, sizeof *m->step_s);
    m->sorted = calloc(steps + 1, sizeof *m->sorted);
    if (m->step_s != NULL && m->sorted != NULL) return m;
    meter_close(m);
    return NULL;
}

void meter_close(struct meter *m)
{
    if (m == NULL) return;
    free(m->step_s);
    free(m->sorted);
    free(m);
}

void meter_step(struct meter *m, double step_s, double exposed_s, size_t samples, double loss_sum)
{
    if (m->count < m->capacity) m->step_s[m->count++] = step_s;
    m->total.steps++;
    m->total.step_s += step_s;
    m->total.exposed_s += exposed_s;
    m->total.samples += samples;
    m->total.loss_sum += loss_sum;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void fill_percentiles(const struct meter *m, size_t from, struct record *r)
{
    size_t n = m->count - from;

    if (n == 0) return;
    memcpy(m->sorted, m->step_s + from, n * sizeof *m->sorted);
    qsort(m->sorted, n, sizeof *m->sorted, ascending);
    r->step_median_s = (m->sorted[(n - 1) / 2] + m->sorted[n / 2]) / 2;
    r->step_p95_s = m->sorted[(n * 95 + 99) / 100 - 1];
}

static void fill_statistics(struct record *r, const strait_statistics *now,
                            const strait_statistics *then)
{
    r->skipped = now->skipped_steps - then->skipped_steps;
    r->encode_decode_s = now->encode_s + now->decode_s - then->encode_s - then->decode_s;
    r->raw_bytes = now->raw_bytes - then->raw_bytes;
    r->dense_bytes = now->dense_bytes - then->dense_bytes;
    for (int c = 0; c < STRAIT_PEER_CLASSES; c++)
        r->wire_bytes[c] = now->wire_bytes[c] - then->wire_bytes[c];
}

struct record meter_since_cut(const struct meter *m, const strait_statistics *now)
{
    struct record r = { .steps = m->total.steps - m->at_cut.steps,
                        .samples = m->total.samples - m->at_cut.samples,
                        .loss_sum = m->total.loss_sum - m->at_cut.loss_sum,
                        .step_s = m->total.step_s - m->at_cut.step_s,
                        .exposed_s = m->total.exposed_s - m->at_cut.exposed_s };

    fill_percentiles(m, m->cut_at, &r);
    fill_statistics(&r, now, &m->then);
    return r;
}

struct record meter_cut(struct meter *m, const strait_statistics *now)
{
    struct record r = meter_since_cut(m, now);

    m->at_cut = m->total;
    m->cut_at = m->count;
    m->then = *now;
    return r;
}

struct record meter_total(const struct meter *m, const strait_statistics *now)
{
    struct record r = m->total;
    strait_statistics start = { 0 };

    fill_percentiles(m, 0, &r);
    fill_statistics(&r, now, &start);
    return r;
}
