/* SPDX-License-Identifier: Apache-2.0
 * transport.h - carry bytes between ranks: tagged, without blocking.
 *
 * A transport knows neither schedules nor codecs. Messages match by sender and tag; two
 * with the same sender and tag arrive in the order sent. Any thread may send and receive;
 * one at a time makes progress, waits, cancels and closes. Adding one is a file and a row
 * in transport.c. */
#ifndef STRAIT_TRANSPORT_TRANSPORT_H
#define STRAIT_TRANSPORT_TRANSPORT_H

#include <pthread.h>

#include "cluster/cluster.h"

/* Tags have 30 bits; the topmost value is the handshake's. */
#define TRANSPORT_TAG_BITS 30
#define TRANSPORT_HELLO_TAG ((1u << TRANSPORT_TAG_BITS) - 1)

/* One message under way. The caller owns it and its buffer, and leaves both alone while
 * it is active. */
struct transfer {
    /* read by transfer_state(), ended by transfer_end(): other threads look on */
    enum transfer_state { TRANSFER_IDLE, TRANSFER_ACTIVE, TRANSFER_DONE, TRANSFER_FAILED } state;
    strait_status status;  /* when it failed */
    const char *why;       /* when it failed: a constant string */
    int peer;
    size_t bytes;          /* asked for; of a finished receive: what came */
    void *request;         /* the transport's own */
    struct transfer *next; /* the transport's own */
};

struct transport;

struct transport_ops {
    const char *name;
    bool uses_mpi; /* from the progress thread: needs MPI_THREAD_MULTIPLE */
    /* Sets `cluster`; transport_open() sets `ops`. */
    strait_status (*open)(struct transport **out, const struct cluster *cluster);
    /* `transfer` is prepared by the caller below; set its state when the end is known. */
    void (*send)(struct transport *, uint32_t tag, const void *buffer, struct transfer *);
    void (*recv)(struct transport *, uint32_t tag, void *buffer, struct transfer *);
    /* Move things on; true when something moved. */
    bool (*progress)(struct transport *);
    /* Sleep until something may move, `wake_fd` is readable, or the time is up. */
    void (*wait)(struct transport *, int wake_fd, long timeout_us);
    /* Give an active transfer up; its buffer is free afterwards. */
    void (*cancel)(struct transport *, struct transfer *);
    /* What carries bytes to the peer, as words. */
    void (*describe)(struct transport *, int peer, struct text *out);
    /* Collective unless `broken`. Frees everything. */
    strait_status (*close)(struct transport *, bool broken);
};

struct transport {
    const struct transport_ops *ops;
    const struct cluster *cluster;
    /* Held over all calls of `ops` but `wait`, which takes it where it touches what is
     * shared, and those that one thread makes alone: open, cancel, describe, close. */
    pthread_mutex_t lock;
    /* All that was handed over for sending, by peer class. */
    uint64_t sent_bytes[STRAIT_PEER_CLASSES], sent_messages[STRAIT_PEER_CLASSES];
};

extern const struct transport_ops transport_ucx, transport_mpi;

/* All transports, NULL at the end. */
extern const struct transport_ops *const transport_table[];

const struct transport_ops *transport_find(const char *name);

/* Open and greet every peer, so that one that cannot be reached is known by name before
 * the first gradient. Collective. */
strait_status transport_open(struct transport **out, const struct transport_ops *ops,
                             const struct cluster *cluster);
strait_status transport_close(struct transport *transport, bool broken);

void transport_send(struct transport *transport, int peer, uint32_t tag, const void *buffer,
                    size_t bytes, struct transfer *transfer);
void transport_recv(struct transport *transport, int peer, uint32_t tag, void *buffer,
                    size_t capacity, struct transfer *transfer);
bool transport_progress(struct transport *transport);
/* Nothing happens to a transfer that is not active. */
void transport_cancel(struct transport *transport, struct transfer *transfer);

static inline enum transfer_state transfer_state(const struct transfer *transfer)
{
    return __atomic_load_n(&transfer->state, __ATOMIC_ACQUIRE);
}

/* All else that the end changes is written before. */
static inline void transfer_end(struct transfer *transfer, enum transfer_state state)
{
    __atomic_store_n(&transfer->state, state, __ATOMIC_RELEASE);
}

/* The error of a failed transfer: `what` says what was being done with the peer. */
strait_status transfer_error(const struct transport *transport, const struct transfer *transfer,
                             const char *what);

#endif
