/* SPDX-License-Identifier: Apache-2.0
 * test_faults.c - ranks that disagree, fall behind, damage messages or misuse the
 * interface: each ends in a status and a message that names the culprit, and none hangs.
 * Run by faults.sh with 2 ranks and more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "lib/ranks.h"
#include "schedule/payload.h"

static bool says(const char *part)
{
    return strstr(strait_error_message(), part) != NULL;
}

static const char *const quick[] = { "fault.timeout_s=20", "comm.dense_below=0",
                                     "comm.check_every=0", NULL };

static strait_context *open_default(const char *const *words, const struct transport_ops *transport)
{
    strait_config *config = ranks_config(words);
    strait_context *ctx = NULL;

    ranks_must(engine_open(&ctx, config, MPI_COMM_WORLD, transport), "open");
    strait_config_destroy(config);
    return ctx;
}

static int add_tensor(strait_context *ctx, const char *name, size_t elements)
{
    strait_tensor tensor = { .name = name, .ndim = 1, .shape = { elements } };
    int id = -1;

    ranks_must(strait_register(ctx, &tensor, &id), "register");
    return id;
}

static void test_tensors_differ(void)
{
    strait_context *ctx = open_default(quick, &transport_ucx);
    bool odd = ranks_rank == ranks_size - 1;
    char who[32];
    strait_status st;

    snprintf(who, sizeof who, "rank %d on", ranks_size - 1);
    add_tensor(ctx, "weight", odd ? 99 : 100);
    st = strait_commit(ctx);
    ranks_check(st == STRAIT_ERR_DISAGREE && says(who) && says("'weight' float32 99") &&
                    says("'weight' float32 100"),
                "a tensor that differs is named with its rank on all ranks", "%d: %s", st,
                strait_error_message());
    strait_close(ctx);
}

static void test_settings_differ(void)
{
    const char *const a[] = { "comm.codec=int8", "fault.timeout_s=20", NULL };
    const char *const b[] = { "comm.codec=fp16", "fault.timeout_s=20", NULL };
    strait_config *config = ranks_config(ranks_rank == 1 ? b : a);
    strait_context *ctx = NULL;
    strait_status st = strait_open(&ctx, config, MPI_COMM_WORLD);

    ranks_check(st == STRAIT_ERR_DISAGREE && says("rank 1 on") && says("comm.codec = \"fp16\"") &&
                    says("comm.codec = \"int8\"") && ctx == NULL,
                "a setting that differs is named with its rank on all ranks", "%d: %s", st,
                strait_error_message());
    strait_config_destroy(config);
}

static void test_no_tensors(void)
{
    strait_context *ctx = open_default(quick, &transport_ucx);
    strait_status st = strait_commit(ctx);

    ranks_check(st == STRAIT_ERR_USAGE, "committing nothing is refused", "%d", st);
    strait_close(ctx);
}

static void test_misuse(void)
{
    strait_context *ctx = open_default(quick, &transport_ucx);
    int a = add_tensor(ctx, "a", 10), b = add_tensor(ctx, "b", 10), again;
    strait_tensor twice = { .name = "a", .ndim = 1, .shape = { 10 } };
    float x[10] = { 0 }, y[10] = { 0 };
    strait_bucket_info info;
    bool ok = true;

    ok &= strait_register(ctx, &twice, &again) == STRAIT_ERR_USAGE && says("registered already");
    ok &= strait_grad_ready(ctx, a, x) == STRAIT_ERR_USAGE && says("strait_commit()");
    ok &= strait_wait(ctx) == STRAIT_ERR_USAGE;
    ok &= strait_bucket_count(ctx) == 0;
    ranks_must(strait_commit(ctx), "commit");
    ok &= strait_commit(ctx) == STRAIT_ERR_USAGE;
    ok &= strait_register(ctx, &twice, &again) == STRAIT_ERR_USAGE && says("after strait_commit");
    ok &= strait_grad_ready(ctx, 7, x) == STRAIT_ERR_USAGE;
    ok &= strait_grad_ready(ctx, a, NULL) == STRAIT_ERR_USAGE;
    ok &= strait_bucket(ctx, 99, &info) == STRAIT_ERR_USAGE;
    ranks_must(strait_grad_ready(ctx, a, x), "hand over");
    ok &= strait_grad_ready(ctx, a, x) == STRAIT_ERR_USAGE && says("'a' was handed over already");
    ok &= strait_wait(ctx) == STRAIT_ERR_USAGE && says("'b' was not handed over");
    ranks_must(strait_grad_ready(ctx, b, y), "hand over");
    ok &= strait_wait(ctx) == STRAIT_OK; /* misuse breaks nothing */
    ranks_check(ok, "misuse is refused with words and does no harm", "%s", strait_error_message());
    ranks_must(strait_close(ctx), "close");
}

/* The last rank hands nothing over; the others must name it in time. */
static void test_absent_rank(const char *schedule, const struct transport_ops *transport,
                             const char *setting)
{
    char word[64], name[96], who[32];
    const char *const words[] = { word, "fault.timeout_s=1", "comm.dense_below=0", setting, NULL };
    double begin, took;
    strait_context *ctx;
    float *x = calloc(5000, sizeof *x);
    strait_status st = STRAIT_ERR_TIMEOUT;
    int id;

    snprintf(word, sizeof word, "comm.schedule=%s", schedule);
    snprintf(name, sizeof name, "over %s and %s with %s an absent rank is named in time", schedule,
             transport->name, setting);
    snprintf(who, sizeof who, "rank %d on", ranks_size - 1);
    ctx = open_default(words, transport);
    id = add_tensor(ctx, "a", 5000);
    ranks_must(strait_commit(ctx), "commit");
    begin = clock_s();
    if (ranks_rank != ranks_size - 1) {
        ranks_must(strait_grad_ready(ctx, id, x), "hand over");
        st = strait_wait(ctx);
    }
    took = clock_s() - begin;
    ranks_check(st == STRAIT_ERR_TIMEOUT && took < 5 &&
                    (ranks_rank == ranks_size - 1 || strcmp(schedule, "dense") == 0 ||
                     (says(who) && says("step 0, bucket 0"))),
                name, "%d after %.1f s: %s", st, took, strait_error_message());
    MPI_Barrier(MPI_COMM_WORLD); /* let go together: the absent rank still has the peer's data */
    strait_close(ctx);
    free(x);
}

/* ---- a transport that damages what rank 1 receives from rank 0 ---- */
static struct transport_ops damaging;
static size_t damage_at; /* which byte of each message gets its lowest bit flipped */
static int damage_left;
static struct { struct transfer *transfer; uint8_t *buffer; } watched[1024];
static int watched_count;

static void damaging_recv(struct transport *t, uint32_t tag, void *buffer,
                          struct transfer *transfer)
{
    transport_mpi.recv(t, tag, buffer, transfer);
    if (tag == TRANSPORT_HELLO_TAG || transfer->peer != 0 || ranks_rank != 1) return;
    watched[watched_count].transfer = transfer;
    watched[watched_count++ % 1024].buffer = buffer;
}

static bool damaging_progress(struct transport *t)
{
    bool moved = transport_mpi.progress(t);

    for (int i = 0; i < watched_count; i++) {
        struct transfer *transfer = watched[i].transfer;

        if (transfer == NULL || transfer->state != TRANSFER_DONE) continue;
        if (damage_left > 0 && transfer->bytes > damage_at) {
            watched[i].buffer[damage_at] ^= 1;
            damage_left--;
        }
        watched[i].transfer = NULL;
    }
    return moved;
}

static strait_status one_damaged_step(size_t at, const char *codec, const char *checksum)
{
    char word[64];
    const char *const words[] = { word, checksum, "comm.check_every=1", "comm.dense_below=0",
                                  "fault.timeout_s=3", NULL };
    strait_context *ctx;
    float *x = calloc(5000, sizeof *x);
    strait_status st;
    int id;

    snprintf(word, sizeof word, "comm.codec=%s", codec);
    damage_at = at;
    damage_left = 0;
    watched_count = 0;
    ctx = open_default(words, &damaging);
    id = add_tensor(ctx, "a", 5000);
    ranks_must(strait_commit(ctx), "commit");
    for (int i = 0; i < 5000; i++) x[i] = (float)(i % 7);
    damage_left = 1000; /* the scatter leg changes the sum for all; the gather leg rank 1's copy */
    ranks_must(strait_grad_ready(ctx, id, x), "hand over");
    st = strait_wait(ctx);
    MPI_Barrier(MPI_COMM_WORLD);
    strait_close(ctx);
    free(x);
    return st;
}

static void test_damage(void)
{
    static const char off[] = "comm.checksum=false", on[] = "comm.checksum=true";
    strait_status st;

    damaging = transport_mpi;
    damaging.name = "damaging";
    damaging.recv = damaging_recv;
    damaging.progress = damaging_progress;
    st = one_damaged_step(PAYLOAD_HEADER_BYTES + 2, "fp32", off); /* of the first value */
    ranks_check(st == STRAIT_ERR_DIVERGED && says("bucket 0") && says("rank 1 on"),
                "a bit that flips on one rank is found by the fingerprint, which names the rank",
                "%d: %s", st, strait_error_message());
    st = one_damaged_step(8, "int8", off); /* the step number */
    /* rank 1 sees the damage at once; the others wait for it until their bound */
    ranks_check(ranks_rank == 1 ? st == STRAIT_ERR_FORMAT && says("the step is") &&
                                      says("from rank 0 on")
                                : st != STRAIT_OK,
                "a damaged header is an error that names its sender", "%d: %s", st,
                strait_error_message());
    st = one_damaged_step(PAYLOAD_HEADER_BYTES + 2, "fp32", on);
    ranks_check(ranks_rank == 1 ? st == STRAIT_ERR_FORMAT && says("the checksum is wrong") &&
                                      says("from rank 0 on")
                                : st != STRAIT_OK,
                "with a checksum so is a damaged body", "%d: %s", st, strait_error_message());
}

/* Two contexts at once, of different codecs, do not disturb each other. */
static void test_two_contexts(void)
{
    const char *const other[] = { "comm.codec=fp16", "comm.dense_below=0", NULL };
    strait_context *first = open_default(quick, &transport_ucx);
    strait_context *second = open_default(other, &transport_ucx);
    float x[300], y[300];
    int a = add_tensor(first, "a", 300), b = add_tensor(second, "b", 300);
    bool ok = true;

    ranks_must(strait_commit(first), "commit");
    ranks_must(strait_commit(second), "commit");
    for (int step = 0; step < 20; step++) {
        for (int i = 0; i < 300; i++) x[i] = y[i] = (float)step;
        ranks_must(strait_grad_ready(first, a, x), "hand over");
        ranks_must(strait_grad_ready(second, b, y), "hand over");
        ok &= strait_wait(second) == STRAIT_OK && strait_wait(first) == STRAIT_OK;
        ok &= y[299] == (float)step; /* fp16 has these exactly */
    }
    ranks_check(ok, "two contexts work side by side", "%s", strait_error_message());
    ranks_must(strait_close(first), "close");
    ranks_must(strait_close(second), "close");
}

/* Closing while a step is under way ends, on all ranks. */
static void test_close_within_a_step(void)
{
    strait_context *ctx = open_default(quick, &transport_ucx);
    float x[100] = { 0 };
    int id = add_tensor(ctx, "a", 100);
    double begin = clock_s();

    ranks_must(strait_commit(ctx), "commit");
    if (ranks_rank == 0) ranks_must(strait_grad_ready(ctx, id, x), "hand over");
    clock_sleep_us(20000);
    if (ranks_rank != 0) ctx->shared.result = STRAIT_ERR_PEER; /* they give up for their reasons */
    strait_close(ctx);
    ranks_check(clock_s() - begin < 10, "closing within a step does not hang", "%.1f s",
                clock_s() - begin);
}

int main(void)
{
    ranks_begin();
    test_misuse();
    test_no_tensors();
    test_two_contexts();
    if (ranks_size > 1) {
        test_settings_differ();
        test_tensors_differ();
        test_absent_rank("sra", &transport_ucx, "comm.threads=1");
        test_absent_rank("sra", &transport_mpi, "comm.threads=1");
        test_absent_rank("sra", &transport_ucx, "comm.threads=3");
        test_absent_rank("hierarchical", &transport_ucx, "comm.threads=1");
        test_absent_rank("hierarchical", &transport_mpi, "comm.threads=1");
        test_damage();
        test_close_within_a_step();
        /* last: MPI cannot take it back */
        test_absent_rank("dense", &transport_ucx, "comm.threads=1");
    }
    return ranks_end();
}
