/* SPDX-License-Identifier: Apache-2.0
 * strait.h - exchange gradients between ranks, compressed, with identical replicas.
 *
 * The only public header. A program describes its gradients once, hands them over
 * every step as the backward pass makes them, and gets the average over all ranks
 * back in place, the same bits on every rank:
 *
 *     strait_config *config;
 *     strait_context *ctx;
 *     strait_tensor weight = { .name = "fc.weight", .ndim = 2, .shape = { 128, 64 } };
 *     int id;
 *
 *     strait_config_create(&config);
 *     strait_config_set(config, "comm.codec=int8");
 *     strait_open(&ctx, config, MPI_COMM_WORLD);
 *     strait_register(ctx, &weight, &id);
 *     strait_commit(ctx);
 *     for (each step) {
 *         ... backward ...
 *         strait_grad_ready(ctx, id, grad);
 *         if (strait_wait(ctx) == STRAIT_OK)
 *             ... apply grad, which now holds the average ...
 *     }
 *     strait_close(ctx);
 *     strait_config_destroy(config);
 *
 * Errors, for every function here: the return value is a strait_status; what went
 * wrong, in words, is strait_error_message() in the thread that made the call. A
 * function that fails leaves its outputs untouched. The library never exits and
 * prints only warnings. A failed exchange (any status from STRAIT_ERR_FORMAT up)
 * ends the context: only strait_close() is useful after it.
 *
 * Threads: one context is used by one thread at a time; its own progress thread
 * works behind it. Contexts are independent of each other.
 */
#ifndef STRAIT_H
#define STRAIT_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STRAIT_API __attribute__((visibility("default")))

/* ---- Status ------------------------------------------------------------------
 * name, number, exit code of a program that ends on it, text. Numbers are fixed;
 * the gaps are for later members of each family. */
#define STRAIT_STATUS_LIST(X)                                                          \
    X(OK, 0, 0, "success")                                                             \
    X(SKIPPED, 1, 0, "the step was skipped on all ranks: a gradient was not finite")   \
    X(ERR_USAGE, 10, 2, "wrong use")                                                   \
    X(ERR_CONFIG, 11, 2, "wrong configuration")                                        \
    X(ERR_MEMORY, 20, 1, "out of memory")                                              \
    X(ERR_IO, 21, 1, "input or output failed")                                         \
    X(ERR_DATA, 22, 1, "the data cannot be used")                                      \
    X(ERR_UNSUPPORTED, 23, 1, "not supported by this build or system")                 \
    X(ERR_FORMAT, 30, 1, "bytes from a peer do not have the agreed form")              \
    X(ERR_NONFINITE, 31, 1, "a value is not finite")                                   \
    X(ERR_TRANSPORT, 40, 1, "the transport failed")                                    \
    X(ERR_TIMEOUT, 41, 1, "a wait reached its bound")                                  \
    X(ERR_MPI, 42, 1, "MPI failed")                                                    \
    X(ERR_DISAGREE, 50, 1, "the ranks disagree about what to exchange")                \
    X(ERR_DIVERGED, 51, 1, "the replicas are no longer identical")                     \
    X(ERR_PEER, 52, 1, "another rank failed")

typedef enum strait_status {
#define STRAIT_STATUS_ENUM(name, number, exit_code, text) STRAIT_##name = number,
    STRAIT_STATUS_LIST(STRAIT_STATUS_ENUM)
#undef STRAIT_STATUS_ENUM
} strait_status;

/* The status in words: a constant string, never NULL. */
STRAIT_API const char *strait_status_text(strait_status status);

/* What the last failed call in this thread had to say; "" when none failed yet.
 * Valid until the next failing call in this thread. */
STRAIT_API const char *strait_error_message(void);

/* "major.minor.patch" of the library that is loaded. */
STRAIT_API const char *strait_version(void);

/* ---- Configuration -------------------------------------------------------------
 * Every key with its meaning, unit and bounds: docs/configuration.md. */
typedef struct strait_config strait_config;

/* A configuration with every key at its default. *out is the caller's; free it with
 * strait_config_destroy(). */
STRAIT_API strait_status strait_config_create(strait_config **out);

/* Read a libconfig file over what is set so far. STRAIT_ERR_CONFIG: the message
 * lists every error in the file, one a line, as `file:line: group.key: ...`; the
 * configuration is unchanged. */
STRAIT_API strait_status strait_config_load(strait_config *config, const char *path);

/* Set one key from "group.key=value", as `--set` does. STRAIT_ERR_CONFIG: unknown
 * key, wrong type or out of bounds. */
STRAIT_API strait_status strait_config_set(strait_config *config, const char *assignment);

/* NULL is allowed. */
STRAIT_API void strait_config_destroy(strait_config *config);

/* ---- A context -------------------------------------------------------------------*/
typedef struct strait_context strait_context;

/* Open a context over the ranks of `comm`. Collective. MPI must be initialised; the
 * `mpi` transport and the `dense` schedule call MPI from the progress thread and need
 * MPI_THREAD_MULTIPLE. `config` is copied and may be destroyed afterwards; `comm` is
 * duplicated. *out is the caller's; end it with strait_close().
 * STRAIT_ERR_UNSUPPORTED: thread level too low. STRAIT_ERR_TRANSPORT,
 * STRAIT_ERR_TIMEOUT: a rank cannot be reached; the message names it. */
STRAIT_API strait_status strait_open(strait_context **out, const strait_config *config,
                                     MPI_Comm comm);

#define STRAIT_MAX_DIMS 8

typedef enum strait_dtype { STRAIT_FLOAT32 = 0 } strait_dtype;

typedef struct strait_tensor {
    const char *name;              /* unique in the context; copied */
    strait_dtype dtype;
    int ndim;                      /* 1 .. STRAIT_MAX_DIMS */
    size_t shape[STRAIT_MAX_DIMS]; /* elements along each dimension, all > 0 */
} strait_tensor;

/* Register one gradient before strait_commit(); *id is its handle, counted from 0.
 * Register in forward order: buckets are filled from the last tensor to the first,
 * as a backward pass makes them. STRAIT_ERR_USAGE: after commit, a bad shape, or a
 * name that is taken. */
STRAIT_API strait_status strait_register(strait_context *ctx, const strait_tensor *tensor,
                                         int *id);

/* Agree with all ranks on tensors, buckets, codec and schedule, and start the progress
 * thread. Collective. STRAIT_ERR_DISAGREE: the message says which rank differs in what. */
STRAIT_API strait_status strait_commit(strait_context *ctx);

/* Hand over gradient `id` of this step: `grad` points to the registered number of
 * floats in host memory and must stay untouched until strait_wait() returns. Any order
 * of tensors is right; backward order overlaps best. Returns at once.
 * STRAIT_ERR_USAGE: unknown id, or handed over already in this step. */
STRAIT_API strait_status strait_grad_ready(strait_context *ctx, int id, float *grad);

/* Wait until every gradient of the step holds the average over the ranks: their sum
 * divided by the number of ranks, as the codec conveys it, the same bits on every rank.
 * (sra and allgather sum in rank order, ring in the order of its ranks, dense in MPI's.)
 * STRAIT_SKIPPED: a gradient was not finite on some rank; all ranks get this status in
 * the same step, the gradients' contents are unspecified and residuals are as before.
 * STRAIT_ERR_NONFINITE: the same where comm.nonfinite = "stop".
 * STRAIT_ERR_USAGE: a registered tensor was not handed over; the message names it.
 * STRAIT_ERR_TIMEOUT: a peer sent nothing for fault.timeout_s; the message names it.
 * STRAIT_ERR_DIVERGED: the check of comm.check_every found replicas that differ. */
STRAIT_API strait_status strait_wait(strait_context *ctx);

/* End the context and free it; NULL is allowed. Collective after success; after a
 * failure it waits for nobody. Returns the first failure met while closing. */
STRAIT_API strait_status strait_close(strait_context *ctx);

/* ---- What it did -----------------------------------------------------------------*/
typedef enum strait_peer_class {
    STRAIT_WITHIN_NODE = 0,  /* peers on this rank's node */
    STRAIT_BETWEEN_NODES = 1 /* peers on other nodes */
} strait_peer_class;

#define STRAIT_PEER_CLASSES 2

/* Totals of this rank since strait_commit(). */
typedef struct strait_statistics {
    uint64_t steps;              /* completed, skipped ones included */
    uint64_t skipped_steps;      /* skipped for non-finite gradients */
    uint64_t checks;             /* fingerprints compared */
    uint64_t raw_bytes;          /* gradients handed over, 4 bytes an element */
    uint64_t dense_bytes;        /* what an uncompressed sra of them would have sent */
    uint64_t wire_bytes[STRAIT_PEER_CLASSES]; /* gradient payloads sent, headers included */
    uint64_t transport_bytes[STRAIT_PEER_CLASSES]; /* all that the transport was handed:
                                                      payloads, checks, handshake */
    uint64_t transport_messages[STRAIT_PEER_CLASSES];
    double encode_s;             /* progress thread: packing and encoding */
    double decode_s;             /* progress thread: decoding, summing, unpacking */
    double exposed_s;            /* caller's thread: time spent inside strait_wait() */
    uint64_t residual_bytes;     /* memory that error feedback holds */
} strait_statistics;

STRAIT_API strait_status strait_stats(const strait_context *ctx, strait_statistics *out);

typedef struct strait_bucket_info {
    size_t elements;
    int tensors;
    const char *codec;                         /* constant string */
    const char *schedule;                      /* constant string */
    uint64_t wire_bytes[STRAIT_PEER_CLASSES];  /* sent by this rank so far */
} strait_bucket_info;

/* How many buckets the plan has; 0 before strait_commit(). */
STRAIT_API int strait_bucket_count(const strait_context *ctx);

/* STRAIT_ERR_USAGE: `bucket` is not below strait_bucket_count(). */
STRAIT_API strait_status strait_bucket(const strait_context *ctx, int bucket,
                                       strait_bucket_info *out);

/* What carries bytes to peers of this class, as "ucx: sysv/memory cma/memory"; "none"
 * when there is no such peer. The string lives as long as the context. */
STRAIT_API const char *strait_transport_path(const strait_context *ctx,
                                             strait_peer_class peers);

#ifdef __cplusplus
}
#endif
#endif
