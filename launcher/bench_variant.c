/* SPDX-License-Identifier: Apache-2.0
 * bench_variant.c - see bench_variant.h. */
#include "bench_variant.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"

/* The element of any rank's gradient. */
static float element(const struct bench_job *job, int rank, size_t index)
{
    if (job->given == NULL) return bench_value(bench_key(rank), index);
    return job->given[((size_t)rank * job->elements + index) % job->given_count];
}

static void fill(const struct bench_job *job)
{
    int rank = job->cluster->rank;

    for (size_t i = 0; i < job->elements; i++) job->work[i] = element(job, rank, i);
}

/* ---- opening ---- */

/* Every element under the codec of the row, and nothing beside the exchange: --set comes
 * last and may say otherwise. */
static const char *const usual_sets[] = { "comm.dense_below=0", "comm.check_every=0" };

static strait_status set_pair(strait_config *config, const char *key, const char *value)
{
    char assignment[128];

    snprintf(assignment, sizeof assignment, "%s=%s", key, value);
    return strait_config_set(config, assignment);
}

static strait_status configure(const struct bench_variant *v, const struct bench_job *job,
                               strait_config *config)
{
    strait_status st = set_pair(config, "comm.transport", job->transport);

    if (st == STRAIT_OK) st = set_pair(config, "comm.codec", v->choice->codec->name);
    if (st == STRAIT_OK) st = set_pair(config, "comm.schedule", v->schedule->name);
    if (st == STRAIT_OK && v->choice->set[0] != '\0')
        st = strait_config_set(config, v->choice->set);
    for (size_t i = 0; i < sizeof usual_sets / sizeof usual_sets[0] && st == STRAIT_OK; i++)
        st = strait_config_set(config, usual_sets[i]);
    for (int i = 0; i < job->sets->count && st == STRAIT_OK; i++)
        st = strait_config_set(config, job->sets->values[i]);
    return st;
}

static strait_status register_tensors(strait_context *ctx, const struct bench_job *job)
{
    strait_status st = STRAIT_OK;

    for (int t = 0; t < job->tensors.count && st == STRAIT_OK; t++) {
        const struct bench_tensor *from = &job->tensors.items[t];
        strait_tensor tensor = { .name = from->name, .ndim = from->ndim };
        int id;

        memcpy(tensor.shape, from->shape, sizeof tensor.shape);
        st = strait_register(ctx, &tensor, &id);
    }
    return st;
}

strait_status bench_variant_open(struct bench_variant *v, const struct bench_job *job)
{
    strait_config *config = NULL;
    strait_status st;

    v->identical = true;
    v->error = NAN;
    if (v->choice == NULL) return STRAIT_OK;
    bench_memory_begin(&v->memory);
    st = strait_config_create(&config);
    if (st == STRAIT_OK) st = configure(v, job, config);
    st = cluster_agree(job->cluster, st, "configuring a variant");
    if (st == STRAIT_OK) st = strait_open(&v->ctx, config, job->cluster->comm);
    if (st == STRAIT_OK)
        st = cluster_agree(job->cluster, register_tensors(v->ctx, job), "registering tensors");
    if (st == STRAIT_OK) st = strait_commit(v->ctx);
    strait_config_destroy(config);
    bench_memory_end(&v->memory);
    return st;
}

/* ---- one exchange ---- */
static strait_status mpi_error(const char *what)
{
    return error_set(STRAIT_ERR_MPI, "MPI failed in %s", what);
}

static double clock_of(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The backward pass: `sum` keeps the compiler from leaving it out. */
struct pass {
    const struct bench_job *job;
    double begin, compute_s;
    volatile uint64_t sum;
};

static double spent(const struct pass *p)
{
    return clock_of(p->job->busy ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC) - p->begin;
}

static struct pass pass_begin(const struct bench_job *job, double compute_s)
{
    struct pass p = { .job = job, .compute_s = compute_s };

    p.begin = spent(&p);
    return p;
}

/* Go on until the gradient from element `done` on is made: it is made from the end. */
static void pass_until(struct pass *p, size_t done)
{
    double share = (double)(p->job->elements - done) / (double)p->job->elements;
    double left;

    while ((left = p->compute_s * share - spent(p)) > 0) {
        if (!p->job->busy) clock_sleep_us((long)(left * 1e6) + 1);
        else for (uint64_t i = 0; i < 20000; i++) p->sum += i * i;
    }
}

/* The last tensor first, as a backward pass makes them. */
static strait_status exchange(struct bench_variant *v, const struct bench_job *job,
                              double compute_s)
{
    struct pass pass = pass_begin(job, compute_s);
    strait_status st = STRAIT_OK;

    if (v->ctx == NULL) {
        pass_until(&pass, 0);
        return MPI_Allreduce(MPI_IN_PLACE, job->work, (int)job->elements, MPI_FLOAT, MPI_SUM,
                             job->cluster->comm)
                   ? mpi_error("MPI_Allreduce")
                   : STRAIT_OK;
    }
    for (int t = job->tensors.count - 1; t >= 0 && st == STRAIT_OK; t--) {
        size_t begin = job->tensors.items[t].begin;

        pass_until(&pass, begin);
        st = strait_grad_ready(v->ctx, t, job->work + begin);
    }
    if (st == STRAIT_OK) st = strait_wait(v->ctx);
    if (st == STRAIT_SKIPPED)
        st = error_set(STRAIT_ERR_NONFINITE, "a gradient is not finite, so nothing was exchanged");
    return st;
}

/* By the hashes' largest and smallest: these are equal when all are. */
static strait_status compare_replicas(struct bench_variant *v, const struct bench_job *job)
{
    uint64_t hash = hash_bytes(job->work, job->elements * sizeof(float), 0);
    uint64_t both[2] = { hash, ~hash }, largest[2];

    if (MPI_Allreduce(both, largest, 2, MPI_UINT64_T, MPI_MAX, job->cluster->comm))
        return mpi_error("comparing replicas");
    if (largest[0] != ~largest[1]) v->identical = false;
    return STRAIT_OK;
}

/* ||average - mean|| / ||mean||: each rank judges its share of the elements. */
static strait_status measure_error(struct bench_variant *v, const struct bench_job *job)
{
    const struct cluster *c = job->cluster;
    size_t begin = slice_begin(job->elements, c->size, c->rank);
    size_t end = slice_begin(job->elements, c->size, c->rank + 1);
    double mine[2] = { 0, 0 }, all[2];

    for (size_t i = begin; i < end; i++) {
        double mean = 0, off;

        for (int r = 0; r < c->size; r++) mean += (double)element(job, r, i);
        mean /= c->size;
        off = (double)job->work[i] - mean;
        mine[0] += off * off;
        mine[1] += mean * mean;
    }
    if (MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, c->comm))
        return mpi_error("adding errors up");
    v->error = all[0] == 0 ? 0 : sqrt(all[0] / all[1]);
    return STRAIT_OK;
}

/* One exchange behind a pass of `compute_s`; worst: the largest wall and processor times. */
static strait_status timed(struct bench_variant *v, const struct bench_job *job, double compute_s,
                           double worst[2])
{
    MPI_Comm comm = job->cluster->comm;
    double mine[2];
    strait_status st;

    fill(job);
    bench_memory_begin(&v->memory);
    if (MPI_Barrier(comm)) return mpi_error("a barrier");
    mine[0] = clock_s();
    mine[1] = clock_of(CLOCK_PROCESS_CPUTIME_ID);
    st = exchange(v, job, compute_s);
    mine[0] = clock_s() - mine[0];
    mine[1] = clock_of(CLOCK_PROCESS_CPUTIME_ID) - mine[1];
    bench_memory_end(&v->memory);
    if (st != STRAIT_OK) return st;
    if (MPI_Allreduce(mine, worst, 2, MPI_DOUBLE, MPI_MAX, comm))
        return mpi_error("collecting times");
    if (v->ctx == NULL) /* MPI's sum to the average, outside the measured time */
        for (size_t i = 0; i < job->elements; i++) job->work[i] /= (float)job->cluster->size;
    return compare_replicas(v, job);
}

/* The pass of this round: as long as the exchange alone has been so far. */
static double compute_of(const struct bench_variant *v, const struct bench_job *job, int round)
{
    double sorted[BENCH_REPEATS_MAX];
    int count = round < job->warmup ? 0 : round - job->warmup + 1;

    if (job->compute == COMPUTE_FIXED || count == 0) return job->compute_s;
    memcpy(sorted, v->alone.wall_s, (size_t)count * sizeof *sorted);
    return bench_median(sorted, count);
}

static void keep(struct bench_times *times, int repeat, const double worst[2])
{
    if (repeat < 0) return; /* it warmed up */
    times->wall_s[repeat] = worst[0];
    times->cpu_s[repeat] = worst[1];
}

strait_status bench_variant_run(struct bench_variant *v, const struct bench_job *job, int round)
{
    int repeat = round - job->warmup;
    double worst[2], compute_s;
    strait_status st;

    if (v->ctx != NULL) strait_stats(v->ctx, &v->begin);
    if ((st = timed(v, job, 0, worst))) return st;
    if (v->ctx != NULL) strait_stats(v->ctx, &v->end);
    keep(&v->alone, repeat, worst);
    if (round == 0 && (st = measure_error(v, job))) return st;
    if (job->compute == COMPUTE_NONE) return STRAIT_OK;
    compute_s = compute_of(v, job, round);
    if ((st = timed(v, job, compute_s, worst))) return st;
    keep(&v->step, repeat, worst);
    if (repeat >= 0) v->compute_s[repeat] = compute_s;
    return STRAIT_OK;
}

/* ---- judgement ---- */
double bench_variant_bound(const struct bench_variant *v, const struct bench_job *job)
{
    static const struct { const char *codec; double bound; } bounds[] = {
        { "fp32", 1e-6 }, { "fp16", 2e-3 }, { "bf16", 1e-2 }, { "fp8", 0.1 },
        { "int8", 2e-2 }, { "int4", 0.3 },
    };
    const char *name = v->choice != NULL ? v->choice->codec->name : "fp32";
    bool exact = strcmp(name, "fp32") == 0;
    double bound = 1;

    /* what a file holds may be hard for a codec: only a lossless one has to be near */
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0] && (exact || job->given == NULL); i++)
        if (strcmp(bounds[i].codec, name) == 0) bound = bounds[i].bound;
    /* a ring encodes sums anew at every rank, and each adds noise of its own */
    return v->schedule == &schedule_ring ? bound * sqrt(job->cluster->size) : bound;
}
