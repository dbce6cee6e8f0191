/* SPDX-License-Identifier: Apache-2.0
 * workers.c - see workers.h. */
#include "engine/workers.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
    enum { AT_HOME, GIVEN, RUNNING, BACK } where;
    struct tile_result result;
};

struct worker {
    struct workers *all;
    pthread_t thread;
    struct workspace work;
};

struct workers {
    pthread_mutex_t mutex;
    pthread_cond_t given;
    struct exchange *window;
    struct job *jobs;       /* by exchange */
    struct worker *each;
    int size, count, wake_fd;
    bool stop;
};

/* With the mutex held: the earliest tile that waits for a worker; -1: none. */
static int earliest_given(const struct workers *w)
{
    int earliest = -1;

    for (int i = 0; i < w->size; i++) {
        if (w->jobs[i].where != GIVEN) continue;
        if (earliest < 0 ||
            (int32_t)(w->window[i].sequence - w->window[earliest].sequence) < 0)
            earliest = i;
    }
    return earliest;
}

static void run(struct exchange *x, struct workspace *work, struct tile_result *result)
{
    result->moved = result->done = false;
    result->status = exchange_run(x, work, &result->moved, &result->done);
    if (result->status != STRAIT_OK)
        snprintf(result->message, sizeof result->message, "%s", strait_error_message());
}

static void *worker_main(void *arg)
{
    struct worker *self = arg;
    struct workers *w = self->all;
    uint64_t one = 1;

    pthread_mutex_lock(&w->mutex);
    while (!w->stop) {
        int i = earliest_given(w);

        if (i < 0) {
            pthread_cond_wait(&w->given, &w->mutex);
            continue;
        }
        w->jobs[i].where = RUNNING;
        pthread_mutex_unlock(&w->mutex);
        run(&w->window[i], &self->work, &w->jobs[i].result);
        pthread_mutex_lock(&w->mutex);
        w->jobs[i].where = BACK;
        /* the counter cannot overflow, so the write cannot fail */
        if (write(w->wake_fd, &one, sizeof one) < 0) continue;
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

static bool start_worker(struct workers *w, struct worker *worker)
{
    worker->all = w;
    if (workspace_open(&worker->work, &w->window[0]) == STRAIT_OK &&
        pthread_create(&worker->thread, NULL, worker_main, worker) == 0)
        return true;
    workspace_close(&worker->work, w->window[0].env->device);
    return false;
}

static void end_worker(struct workers *w, struct worker *worker)
{
    pthread_join(worker->thread, NULL);
    workspace_close(&worker->work, w->window[0].env->device);
}

strait_status workers_open(struct workers **out, int threads, struct exchange *window, int size,
                           int wake_fd)
{
    struct workers *w = calloc(1, sizeof *w);

    if (w == NULL) return error_memory("codec threads");
    w->window = window;
    w->size = size;
    w->wake_fd = wake_fd;
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->given, NULL);
    w->jobs = calloc((size_t)size, sizeof *w->jobs);
    w->each = calloc((size_t)threads, sizeof *w->each);
    while (w->jobs != NULL && w->each != NULL && w->count < threads &&
           start_worker(w, &w->each[w->count]))
        w->count++;
    if (w->count == threads) {
        *out = w;
        return STRAIT_OK;
    }
    workers_close(w);
    return error_set(STRAIT_ERR_MEMORY, "%d codec threads could not be started; lower "
                     "comm.threads", threads);
}

void workers_close(struct workers *w)
{
    if (w == NULL) return;
    pthread_mutex_lock(&w->mutex);
    w->stop = true;
    pthread_cond_broadcast(&w->given);
    pthread_mutex_unlock(&w->mutex);
    for (int i = 0; i < w->count; i++) end_worker(w, &w->each[i]);
    pthread_cond_destroy(&w->given);
    pthread_mutex_destroy(&w->mutex);
    free(w->each);
    free(w->jobs);
    free(w);
}

void workers_give(struct workers *w, int i)
{
    pthread_mutex_lock(&w->mutex);
    w->jobs[i].where = GIVEN;
    pthread_cond_signal(&w->given);
    pthread_mutex_unlock(&w->mutex);
}

bool workers_have(struct workers *w, int i)
{
    bool have;

    pthread_mutex_lock(&w->mutex);
    have = w->jobs[i].where != AT_HOME;
    pthread_mutex_unlock(&w->mutex);
    return have;
}

bool workers_take(struct workers *w, int i, struct tile_result *result)
{
    bool back;

    pthread_mutex_lock(&w->mutex);
    back = w->jobs[i].where == BACK;
    if (back) {
        const struct tile_result *from = &w->jobs[i].result;

        result->moved = from->moved;
        result->done = from->done;
        result->status = from->status;
        if (from->status != STRAIT_OK) memcpy(result->message, from->message, sizeof from->message);
        w->jobs[i].where = AT_HOME;
    }
    pthread_mutex_unlock(&w->mutex);
    return back;
}
