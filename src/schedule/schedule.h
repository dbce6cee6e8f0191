/* SPDX-License-Identifier: Apache-2.0
 * schedule.h - who sends which payload to whom, in what order.
 *
 * An exchange is one bucket's way through one step: packed gradients go in, the average
 * over all ranks comes out in the same place, the same bits on every rank. The engine
 * owns exchanges and drives them from its progress thread; a schedule never blocks. To
 * add one: a file and a row in schedule.c. */
#ifndef STRAIT_SCHEDULE_SCHEDULE_H
#define STRAIT_SCHEDULE_SCHEDULE_H

#include "codec/codec.h"
#include "device/device.h"
#include "transport/transport.h"

#define SCHEDULE_MAX_BUCKETS 65536

/* What all exchanges of a context share. */
struct exchange_env {
    const struct cluster *cluster;
    struct transport *transport;
    const struct device *device;
    struct codec_settings settings;
    MPI_Comm comm; /* for schedules that use MPI's own collectives */
};

struct schedule;

struct exchange {
    /* set once */
    const struct exchange_env *env;
    const struct schedule *schedule;
    const struct codec *usual_codec; /* from the plan */
    int bucket;
    size_t elements;
    float *data; /* packed gradients in, averages out */
    /* What the codec failed to send: of this rank's gradient, and of the average of the
     * chunk it owns. Row 0 is as of the last completed step; encoding writes row 1, and
     * only exchange_commit() makes that the new truth. NULL for lossless codecs. */
    float *residual[2], *owner_residual[2];
    void *state; /* the schedule's own */

    /* set for every step */
    const struct codec *codec;
    uint32_t step;
    bool poisoned; /* in: this rank's gradient is not finite; out: some rank's is not */

    /* counted */
    uint64_t wire_bytes[STRAIT_PEER_CLASSES];
    double encode_s, decode_s;
};

struct schedule {
    const char *name;
    bool uses_mpi; /* from the progress thread: needs MPI_THREAD_MULTIPLE, and no sleep on
                      the transport would notice that MPI moved */
    /* Elements of the chunk that this rank owns: the size of owner_residual. */
    size_t (*owned)(const struct exchange *);
    /* Allocate all that steps will need, for the usual codec and for fp32. */
    strait_status (*open)(struct exchange *);
    /* Begin a step; data, codec, step and poisoned are set. */
    strait_status (*start)(struct exchange *);
    /* Go on as far as arrivals allow. *moved: something was done; *done: all was. */
    strait_status (*progress)(struct exchange *, bool *moved, bool *done);
    /* What an unfinished step waits for, in words. */
    void (*waiting)(const struct exchange *, struct text *out);
    /* Give up an unfinished step; no transfer touches its buffers afterwards. */
    void (*cancel)(struct exchange *);
    void (*close)(struct exchange *);
};

extern const struct schedule schedule_sra, schedule_dense;

/* All schedules, NULL at the end. */
extern const struct schedule *const schedule_table[];

const struct schedule *schedule_find(const char *name);

/* Fill in the buffers of an exchange whose plan fields are set. */
strait_status exchange_open(struct exchange *x);
void exchange_close(struct exchange *x);

/* The step counts on all ranks: what it left unsent is what the next one adds. */
void exchange_commit(struct exchange *x);

/* Elements [chunk_begin(c), chunk_begin(c + 1)) of n belong to rank c of `ranks`. */
static inline size_t chunk_begin(size_t n, int ranks, int c)
{
    return n / (size_t)ranks * (size_t)c + n % (size_t)ranks * (size_t)c / (size_t)ranks;
}

#endif
