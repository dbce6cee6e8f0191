/* SPDX-License-Identifier: Apache-2.0
 * test_allocations.c - once steps have settled, Strait allocates nothing, whatever the codec,
 * schedule and transport; what UCX and MPI allocate is theirs. Run by allocations.sh. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "codec/codec.h"
#include "lib/allocations.h"
#include "lib/ranks.h"
#include "schedule/schedule.h"
#include "transport/transport.h"

enum { TENSORS = 5, SETTLING = 3, COUNTED = 6, ELEMENTS = 3000 };

static float grads[TENSORS][ELEMENTS];

static strait_context *open_context(const char *codec, const char *schedule,
                                    const char *transport)
{
    char words[3][64];
    const char *assignments[] = { words[0], words[1], words[2], "comm.bucket_mb=0.02",
                                  "comm.slice_kb=1", "comm.window=4", "comm.dense_below=2000",
                                  "comm.check_every=2", "comm.warmup_steps=1",
                                  "fault.timeout_s=60", NULL };
    strait_context *ctx;
    strait_config *config;

    snprintf(words[0], sizeof words[0], "comm.codec=%s", codec);
    snprintf(words[1], sizeof words[1], "comm.schedule=%s", schedule);
    snprintf(words[2], sizeof words[2], "comm.transport=%s", transport);
    config = ranks_config(assignments);
    ranks_must(strait_open(&ctx, config, MPI_COMM_WORLD), "open");
    strait_config_destroy(config);
    for (int t = 0; t < TENSORS; t++) {
        char name[32];
        strait_tensor tensor = { .name = name, .ndim = 2,
                                 .shape = { 50, (size_t)(ELEMENTS - 500 * t) / 50 } };
        int id;

        snprintf(name, sizeof name, "tensor%d", t);
        ranks_must(strait_register(ctx, &tensor, &id), "register");
    }
    ranks_must(strait_commit(ctx), "commit");
    return ctx;
}

static void run_step(strait_context *ctx, int step)
{
    strait_status st;

    for (int t = 0; t < TENSORS; t++)
        for (int i = 0; i < ELEMENTS; i++)
            grads[t][i] = (float)((i * 7 + t + step + ranks_rank) % 101 - 50);
    if (step % 4 == 3) grads[1][7] = 0.0f / 0.0f; /* skipping allocates nothing either */
    for (int t = TENSORS - 1; t >= 0; t--)
        ranks_must(strait_grad_ready(ctx, t, grads[t]), "hand over");
    st = strait_wait(ctx);
    if (st != STRAIT_SKIPPED) ranks_must(st, "a step");
}

static void steps_allocate_nothing(const char *codec, const char *schedule, const char *transport)
{
    strait_context *ctx = open_context(codec, schedule, transport);
    char name[128];

    for (int step = 0; step < SETTLING; step++) run_step(ctx, step);
    MPI_Barrier(MPI_COMM_WORLD);
    allocations_begin();
    for (int step = SETTLING; step < SETTLING + COUNTED; step++) run_step(ctx, step);
    allocations_end();
    snprintf(name, sizeof name, "%s by %s over %s allocates nothing in a step", codec, schedule,
             transport);
    ranks_check(allocations_own() == 0, name, "%d allocations, %d more in libraries; the first:%s",
                allocations_own(), allocations_of_libraries(), allocations_first());
    ranks_must(strait_close(ctx), "close");
}

/* That the counter sees what it has to, and tells it apart. */
static void counting_counts(void)
{
    struct text text = { 0 };
    strait_config *config = NULL;
    void *volatile block;
    MPI_Comm comm;

    allocations_begin();
    ranks_must(strait_config_create(&config), "configuration");
    allocations_end();
    strait_config_destroy(config);
    ranks_check(allocations_own() >= 1, "the library's calloc is counted", "%d",
                allocations_own());

    allocations_begin();
    text_add(&text, "%d", 1);
    block = strdup("x");
    allocations_end();
    free(block);
    text_free(&text);
    ranks_check(allocations_own() >= 2, "so is what libc allocates on its behalf", "%d",
                allocations_own());

    allocations_begin();
    block = aligned_alloc(64, 64);
    allocations_end();
    free(block);
    ranks_check(allocations_own() == 1, "and an aligned block", "%d", allocations_own());

    allocations_begin();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    allocations_end();
    MPI_Comm_free(&comm);
    ranks_check(allocations_own() == 0 && allocations_of_libraries() > 0,
                "what MPI allocates is MPI's", "%d own, %d in libraries, the first:%s",
                allocations_own(), allocations_of_libraries(), allocations_first());
}

int main(void)
{
    ranks_begin();
    counting_counts();
    for (int c = 0; codec_table[c] != NULL; c++)
        for (int s = 0; schedule_table[s] != NULL; s++)
            steps_allocate_nothing(codec_table[c]->name, schedule_table[s]->name, "ucx");
    for (int s = 0; schedule_table[s] != NULL; s++)
        steps_allocate_nothing("int8", schedule_table[s]->name, "mpi");
    return ranks_end();
}
