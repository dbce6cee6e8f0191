/* SPDX-License-Identifier: Apache-2.0
 * engine.h - what a context is made of, for the files of this folder and for tests.
 *
 * The caller's thread hands gradients over and waits; the progress thread does the rest.
 * What crosses between them is `shared`, under one mutex; the caller wakes the progress
 * thread through an event descriptor that the transport sleeps on. */
#ifndef STRAIT_ENGINE_ENGINE_H
#define STRAIT_ENGINE_ENGINE_H

#include <pthread.h>

#include "engine/factors.h"
#include "engine/fingerprint.h"
#include "engine/plan.h"
#include "engine/workers.h"

/* Guarded by strait_context.mutex. */
struct shared {
    float **grads;        /* by tensor; NULL: not handed over in this step */
    int *handed;          /* by bucket: tensors handed over in this step */
    bool step_done;       /* set by the progress thread, cleared by strait_wait() */
    strait_status result; /* of the step; an error is final */
    char message[ERROR_MESSAGE_BYTES];
    bool stop;            /* strait_close() asks the thread to end */
    strait_statistics statistics; /* all but exposed_s: as of the last completed step */
};

/* Owned by the progress thread once it runs. */
struct progress {
    struct bucket *buckets;     /* in plan order */
    struct factors **factors;   /* by bucket; NULL where its codec is not factored */
    struct exchange *window;    /* tiles under way */
    int window_size;
    struct workspace work;
    struct workers *workers;    /* NULL: the progress thread encodes and decodes itself */
    bool *due;                  /* by exchange: something may have come since its last run */
    struct fingerprint *fingerprint;
    int whole;                  /* buckets before it became whole in this step */
    int next_leg;               /* of the plan; its next_tile is the first not yet started */
    uint32_t next_tile;
    uint32_t sequence;          /* tiles started since the beginning */
    int busy;                   /* exchanges with a tile */
    int finished;               /* buckets of this step that are done */
    bool checking;              /* the fingerprint is under way */
    uint32_t step;
    uint64_t skipped, checks;
    double moved_at;            /* when something last moved while a step was under way */
};

struct strait_context {
    struct strait_config config;
    struct cluster *cluster;
    struct transport *transport;
    struct exchange_env env;
    struct tensor_list tensors;
    struct plan plan;
    char path[STRAIT_PEER_CLASSES][256];

    pthread_mutex_t mutex;
    pthread_cond_t step_ended;
    int wake_fd;
    pthread_t thread;
    bool running; /* the thread exists */
    struct shared shared;
    struct progress progress;
    double exposed_s; /* caller's */
};

/* strait_open() with a transport that is in no table: tests damage messages this way. */
strait_status engine_open(strait_context **out, const strait_config *config, MPI_Comm comm,
                          const struct transport_ops *transport);

/* The progress thread. */
void *progress_main(void *context);

#endif
