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

size_t bench_share(const struct bench_job *job, int rank)
{
    return slice_begin(job->elements, job->cluster->size, rank);
}

void bench_fill(struct bench_job *job)
{
    int rank = job->cluster->rank, ranks = job->cluster->size;
    size_t begin = bench_share(job, rank), end = bench_share(job, rank + 1);

    for (size_t i = 0; i < job->elements; i++) job->source[i] = element(job, rank, i);
    for (size_t i = begin; i < end; i++) {
        double sum = 0;

        for (int r = 0; r < ranks; r++) sum += (double)element(job, r, i);
        job->mean[i - begin] = sum / ranks;
    }
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

    for (int t = 0; t < job->tensors && st == STRAIT_OK; t++) {
        char name[32];
        strait_tensor tensor = { .name = name, .ndim = 1 };
        int id;

        snprintf(name, sizeof name, "tensor%d", t);
        tensor.shape[0] = job->bounds[t + 1] - job->bounds[t];
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
    st = strait_config_create(&config);
    if (st == STRAIT_OK) st = configure(v, job, config);
    st = cluster_agree(job->cluster, st, "configuring a variant");
    if (st == STRAIT_OK) st = strait_open(&v->ctx, config, job->cluster->comm);
    if (st == STRAIT_OK)
        st = cluster_agree(job->cluster, register_tensors(v->ctx, job), "registering tensors");
    if (st == STRAIT_OK) st = strait_commit(v->ctx);
    strait_config_destroy(config);
    return st;
}

/* ---- one exchange ---- */
static strait_status mpi_error(const char *what)
{
    return error_set(STRAIT_ERR_MPI, "MPI failed in %s", what);
}

/* The last tensor first, as a backward pass makes them. */
static strait_status exchange(struct bench_variant *v, const struct bench_job *job)
{
    strait_status st = STRAIT_OK;

    if (v->ctx == NULL)
        return MPI_Allreduce(MPI_IN_PLACE, job->work, (int)job->elements, MPI_FLOAT, MPI_SUM,
                             job->cluster->comm)
                   ? mpi_error("MPI_Allreduce")
                   : STRAIT_OK;
    for (int t = job->tensors - 1; t >= 0 && st == STRAIT_OK; t--)
        st = strait_grad_ready(v->ctx, t, job->work + job->bounds[t]);
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

/* ||average - mean|| / ||mean||: each rank adds its share. */
static strait_status measure_error(struct bench_variant *v, const struct bench_job *job)
{
    const struct cluster *c = job->cluster;
    size_t begin = bench_share(job, c->rank), end = bench_share(job, c->rank + 1);
    double mine[2] = { 0, 0 }, all[2];

    for (size_t i = begin; i < end; i++) {
        double mean = job->mean[i - begin], off = (double)job->work[i] - mean;

        mine[0] += off * off;
        mine[1] += mean * mean;
    }
    if (MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, c->comm))
        return mpi_error("adding errors up");
    v->error = all[0] == 0 ? 0 : sqrt(all[0] / all[1]);
    return STRAIT_OK;
}

strait_status bench_variant_run(struct bench_variant *v, const struct bench_job *job, int round)
{
    MPI_Comm comm = job->cluster->comm;
    double seconds, slowest = 0;
    strait_status st;

    memcpy(job->work, job->source, job->elements * sizeof(float));
    if (round == job->warmup && v->ctx != NULL) strait_stats(v->ctx, &v->begin);
    if (MPI_Barrier(comm)) return mpi_error("a barrier");
    seconds = clock_s();
    st = exchange(v, job);
    seconds = clock_s() - seconds;
    if (st != STRAIT_OK) return st;
    if (MPI_Reduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, comm))
        return mpi_error("collecting times");
    if (round >= job->warmup) v->times[round - job->warmup] = slowest;
    if (v->ctx != NULL) strait_stats(v->ctx, &v->end);
    else /* MPI's sum to the average, outside the measured time */
        for (size_t i = 0; i < job->elements; i++) job->work[i] /= (float)job->cluster->size;
    if ((st = compare_replicas(v, job))) return st;
    return round == 0 ? measure_error(v, job) : STRAIT_OK;
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
