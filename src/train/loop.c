/* SPDX-License-Identifier: Apache-2.0
 * loop.c - the training loop: a step is forward, backward (handing each gradient over as
 * soon as it is final), wait, update. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "build.h"
#include "train/dataset.h"
#include "train/meter.h"
#include "train/optimizer.h"
#include "train/report.h"
#include "train/sampler.h"
#include "train/train.h"

#if HAVE_OPENBLAS_SET_NUM_THREADS
void openblas_set_num_threads(int threads);
#elif HAVE_BLI_THREAD_SET_NUM_THREADS
void bli_thread_set_num_threads(long threads);
#endif

enum { SKIPS_BEFORE_GIVING_UP = 100 };

struct trainer {
    const struct strait_config *config;
    const struct cluster *cluster;
    strait_context *ctx;
    struct data data;
    struct mlp *model;
    int *ids;                /* the context's tensor of each parameter */
    struct optimizer *optimizer;
    uint32_t *order;         /* of the epoch's samples */
    float *batch_x;          /* the step's samples */
    int32_t *batch_labels;
    struct meter *meter;
    struct report report;    /* rank 0's */
    bool reporting;          /* report is open */
    struct record *records;  /* of all ranks */
    size_t steps_per_epoch;
    struct moment now;
    double accuracy;         /* after the last epoch; NaN: no held-out samples */
    int skipped_in_a_row;
    bool agreed;
};

/* ---- set-up ---- */
static void set_blas_threads(int threads)
{
#if HAVE_OPENBLAS_SET_NUM_THREADS
    openblas_set_num_threads(threads);
#elif HAVE_BLI_THREAD_SET_NUM_THREADS
    bli_thread_set_num_threads(threads);
#else
    (void)threads;
#endif
}

/* All ranks go on, or none does; the failure is then known to all. */
static strait_status agree(struct trainer *t, strait_status st, const char *what)
{
    t->agreed = true;
    return cluster_agree(t->cluster, st, what);
}

static strait_status load(struct trainer *t)
{
    strait_status st = data_load(&t->data, t->config);

    if (st == STRAIT_OK && t->data.train.count < (size_t)t->cluster->size)
        st = error_set(STRAIT_ERR_DATA, "%zu training samples are fewer than %d ranks",
                       t->data.train.count, t->cluster->size);
    return st;
}

static size_t largest_batch(const struct trainer *t)
{
    return (size_t)t->config->train.batch + 1; /* shares may differ by one */
}

static strait_status build(struct trainer *t)
{
    const struct strait_config *c = t->config;
    size_t batch = largest_batch(t), steps;
    strait_status st;

    set_blas_threads((int)c->train.threads);
    t->steps_per_epoch =
        sampler_steps(t->data.train.count, (size_t)c->train.batch, t->cluster->size);
    steps = t->steps_per_epoch * (size_t)c->train.epochs;
    if ((st = mlp_open(&t->model, t->data.train.features, &c->model.hidden, t->data.train.classes,
                       batch, (uint64_t)c->run.seed)))
        return st;
    if ((st = optimizer_open(&t->optimizer, c, t->model))) return st;
    t->ids = calloc((size_t)mlp_parameter_count(t->model), sizeof *t->ids);
    t->order = calloc(t->data.train.count, sizeof *t->order);
    t->batch_x = calloc(batch * t->data.train.features, sizeof *t->batch_x);
    t->batch_labels = calloc(batch, sizeof *t->batch_labels);
    t->records = calloc((size_t)t->cluster->size, sizeof *t->records);
    t->meter = meter_open(steps);
    if (t->ids == NULL || t->order == NULL || t->batch_x == NULL || t->batch_labels == NULL ||
        t->records == NULL || t->meter == NULL)
        return error_memory("training");
    return STRAIT_OK;
}

static strait_status register_parameters(struct trainer *t)
{
    strait_status st = STRAIT_OK;

    for (int id = 0; id < mlp_parameter_count(t->model) && st == STRAIT_OK; id++) {
        const struct parameter *p = mlp_parameter(t->model, id);
        strait_tensor tensor = { .name = p->name, .ndim = p->rows > 1 ? 2 : 1 };

        tensor.shape[0] = p->rows > 1 ? p->rows : p->columns;
        tensor.shape[1] = p->columns;
        st = strait_register(t->ctx, &tensor, &t->ids[id]);
    }
    return st;
}

static strait_status open_report(struct trainer *t)
{
    strait_status st = STRAIT_OK;

    if (t->cluster->rank == 0) {
        st = report_open(&t->report, t->config, t->cluster,
                         t->steps_per_epoch * (size_t)t->config->train.epochs);
        t->reporting = true;
    }
    return st;
}

static size_t parameter_total(struct trainer *t)
{
    size_t total = 0;

    for (int id = 0; id < mlp_parameter_count(t->model); id++)
        total += mlp_parameter(t->model, id)->rows * mlp_parameter(t->model, id)->columns;
    return total;
}

static strait_status set_up(struct trainer *t)
{
    strait_status st;

    if ((st = agree(t, load(t), "loading the data"))) return st;
    if ((st = agree(t, build(t), "building the model"))) return st;
    if ((st = strait_open(&t->ctx, t->config, t->cluster->comm))) return st;
    if ((st = agree(t, register_parameters(t), "registering tensors"))) return st;
    if ((st = strait_commit(t->ctx))) return st;
    if ((st = agree(t, open_report(t), "making the run folder"))) return st;
    if (t->cluster->rank == 0)
        report_header(&t->report, t->ctx, t->data.train.count, t->data.test.count,
                      parameter_total(t));
    return STRAIT_OK;
}

/* ---- a step ---- */
static void gather_batch(struct trainer *t, const struct share *share)
{
    const struct dataset *set = &t->data.train;

    for (size_t i = 0; i < share->count; i++) {
        size_t sample = t->order[share->begin + i];

        memcpy(t->batch_x + i * set->features, set->x + sample * set->features,
               set->features * sizeof *set->x);
        t->batch_labels[i] = set->labels[sample];
    }
}

static strait_status hand_over(void *arg, int id)
{
    struct trainer *t = arg;

    return strait_grad_ready(t->ctx, t->ids[id], mlp_parameter(t->model, id)->grad);
}

/* These failures are seen by all ranks in the same step. */
static bool is_common(strait_status st)
{
    return st == STRAIT_ERR_NONFINITE || st == STRAIT_ERR_DIVERGED;
}

static strait_status step(struct trainer *t, size_t in_epoch)
{
    struct share share = sampler_share(t->data.train.count, (size_t)t->config->train.batch,
                                       t->cluster->size, t->cluster->rank, in_epoch);
    /* the average over ranks of these is the average over samples, however uneven */
    float scale = (float)t->cluster->size / (float)share.global_count;
    double begin = clock_s(), waited, loss;
    size_t correct;
    strait_status st;

    gather_batch(t, &share);
    mlp_forward(t->model, t->batch_x, share.count);
    loss = mlp_loss(t->model, t->batch_labels, share.count, &correct);
    st = mlp_backward(t->model, t->batch_x, t->batch_labels, share.count, scale, hand_over, t);
    waited = clock_s();
    if (st == STRAIT_OK) st = strait_wait(t->ctx);
    waited = clock_s() - waited;
    t->agreed = is_common(st);
    if (st > STRAIT_SKIPPED) return st;
    if (st == STRAIT_OK) optimizer_apply(t->optimizer);
    t->skipped_in_a_row = st == STRAIT_SKIPPED ? t->skipped_in_a_row + 1 : 0;
    if (t->skipped_in_a_row == SKIPS_BEFORE_GIVING_UP) {
        t->agreed = true;
        return error_set(STRAIT_ERR_NONFINITE, "the last %d steps were all skipped, for gradients "
                         "that were not finite: the training has diverged; lower train.lr",
                         SKIPS_BEFORE_GIVING_UP);
    }
    meter_step(t->meter, clock_s() - begin, waited, share.count, loss);
    return STRAIT_OK;
}

/* ---- an interval ---- */
static void evaluate(struct trainer *t, struct record *record)
{
    const struct dataset *set = &t->data.test;
    size_t ranks = (size_t)t->cluster->size, rank = (size_t)t->cluster->rank;
    size_t end = set->count * (rank + 1) / ranks, batch = largest_batch(t), n, correct;

    for (size_t i = set->count * rank / ranks; i < end; i += n) {
        n = end - i < batch ? end - i : batch;
        mlp_forward(t->model, set->x + i * set->features, n);
        mlp_loss(t->model, set->labels + i, n, &correct);
        record->held_out += n;
        record->held_out_correct += correct;
    }
}

static strait_status gather(struct trainer *t, const struct record *own)
{
    return cluster_allgather(t->cluster, own, sizeof *own, t->records, "gathering metrics");
}

static double accuracy_of(const struct record *records, int ranks)
{
    uint64_t all = 0, correct = 0;

    for (int r = 0; r < ranks; r++) {
        all += records[r].held_out;
        correct += records[r].held_out_correct;
    }
    return all > 0 ? (double)correct / (double)all : NAN;
}

static strait_status end_interval(struct trainer *t)
{
    strait_statistics statistics;
    struct record own;
    strait_status st;

    t->agreed = false;
    strait_stats(t->ctx, &statistics);
    own = meter_cut(t->meter, &statistics);
    if (t->now.epoch_end) evaluate(t, &own);
    if ((st = gather(t, &own))) return st;
    if (t->now.epoch_end) t->accuracy = accuracy_of(t->records, t->cluster->size);
    if (t->cluster->rank == 0) st = report_interval(&t->report, &t->now, t->records);
    return agree(t, st, "writing metrics");
}

static strait_status after_step(struct trainer *t)
{
    int64_t every = t->config->report.every;
    bool due = every > 0 ? (int64_t)t->now.step % every == 0 : false;
    strait_statistics statistics;
    struct record own;

    if (due || t->now.epoch_end) return end_interval(t);
    if (t->cluster->rank == 0 && t->report.progress == PROGRESS_LINE) {
        strait_stats(t->ctx, &statistics);
        own = meter_since_cut(t->meter, &statistics);
        report_tick(&t->report, &t->now, own.loss_sum / (double)own.samples, &own);
    }
    return STRAIT_OK;
}

static strait_status run_epochs(struct trainer *t)
{
    strait_status st = STRAIT_OK;

    for (int64_t epoch = 1; epoch <= t->config->train.epochs; epoch++) {
        sampler_shuffle(t->order, t->data.train.count, (uint64_t)t->config->run.seed,
                        (uint64_t)epoch);
        for (size_t i = 0; i < t->steps_per_epoch && st == STRAIT_OK; i++) {
            if ((st = step(t, i))) return st;
            t->now = (struct moment){ .epoch = epoch, .step = t->now.step + 1,
                                      .epoch_end = i + 1 == t->steps_per_epoch };
            st = after_step(t);
        }
        if (st != STRAIT_OK) return st;
    }
    return STRAIT_OK;
}

/* ---- the end ---- */
static uint64_t hash_parameters(struct trainer *t)
{
    uint64_t hash = 0;

    for (int id = 0; id < mlp_parameter_count(t->model); id++) {
        const struct parameter *p = mlp_parameter(t->model, id);

        hash = hash_bytes(p->value, p->rows * p->columns * sizeof(float), hash);
    }
    return hash;
}

static strait_status sum_up(struct trainer *t)
{
    uint64_t hash = hash_parameters(t), *hashes = calloc((size_t)t->cluster->size, sizeof *hashes);
    strait_statistics statistics;
    struct record own;
    bool identical = true;
    strait_status st;

    t->agreed = false;
    if (hashes == NULL) return error_memory("fingerprints");
    strait_stats(t->ctx, &statistics);
    own = meter_total(t->meter, &statistics);
    if ((st = gather(t, &own))) goto done;
    if ((st = cluster_allgather(t->cluster, &hash, sizeof hash, hashes, "comparing replicas")))
        goto done;
    for (int r = 1; r < t->cluster->size; r++) identical &= hashes[r] == hashes[0];
    if (t->cluster->rank == 0)
        st = report_summary(&t->report, &t->now, t->records, t->accuracy, identical, hash);
    if (t->cluster->rank == 0 && own.skipped > own.steps / 2)
        log_write(LOG_WARN, "most steps were skipped for gradients that were not finite: the "
                  "training has diverged; lower train.lr");
    if (st == STRAIT_OK && !identical)
        st = error_set(STRAIT_ERR_DIVERGED, "the parameters differ between ranks at the end");
    st = agree(t, st, "writing the summary");
done:
    free(hashes);
    return st;
}

static strait_status tear_down(struct trainer *t, strait_status st)
{
    strait_status closed = strait_close(t->ctx);

    if (st == STRAIT_OK) t->agreed = false;
    st = st == STRAIT_OK ? closed : st;
    if (t->reporting) {
        closed = report_close(&t->report);
        st = st == STRAIT_OK ? closed : st;
    }
    meter_close(t->meter);
    optimizer_close(t->optimizer);
    mlp_close(t->model);
    data_free(&t->data);
    free(t->ids);
    free(t->order);
    free(t->batch_x);
    free(t->batch_labels);
    free(t->records);
    return st;
}

strait_status train_run(const struct strait_config *config, const struct cluster *cluster,
                        bool *agreed)
{
    struct trainer t = { .config = config, .cluster = cluster, .accuracy = NAN, .agreed = true };
    strait_status st = set_up(&t);

    if (st == STRAIT_OK) st = run_epochs(&t);
    if (st == STRAIT_OK) st = sum_up(&t);
    st = tear_down(&t, st);
    *agreed = t.agreed;
    return st;
}
