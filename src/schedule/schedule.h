/* SPDX-License-Identifier: Apache-2.0
 * schedule.h - who sends which payload to whom, in what order.
 *
 * A bucket is cut into tiles. An exchange takes one tile through one step: gradients go
 * in, the average over all ranks comes out in the same place, the same bits on every
 * rank. The engine owns a few exchanges, the window, and gives each the next tile when it
 * is free: so the stages of different tiles overlap, what is under way to one receiver is
 * bounded by the window, and buffers are reused. A schedule never blocks.
 * To add one: a file and a row in schedule.c. */
#ifndef STRAIT_SCHEDULE_SCHEDULE_H
#define STRAIT_SCHEDULE_SCHEDULE_H

#include "codec/codec.h"
#include "device/device.h"
#include "schedule/payload.h"
#include "schedule/view.h"
#include "transport/transport.h"

#define SCHEDULE_MAX_BUCKETS 65536

/* What all exchanges of a context share. */
struct exchange_env {
    const struct cluster *cluster;
    struct transport *transport;
    const struct device *device;
    struct codec_settings settings; /* of this step; those of the first take the most bytes */
    uint64_t seed;       /* of what codecs draw */
    size_t slice;        /* elements of one rank's share of a tile */
    bool error_feedback;
    bool checksum;       /* of every message */
    bool residual_bf16;  /* residuals are kept as bf16, not fp32 */
    bool may_skip;       /* a step may be taken back: residuals need their old values */
    MPI_Comm comm;       /* for schedules that use MPI's own collectives */
};

struct schedule;

/* One bucket's state over all steps. */
struct bucket {
    int index;
    size_t elements, tile; /* elements of a whole tile */
    int tiles;
    const struct schedule *schedule;
    const struct codec *usual_codec; /* from the plan */
    struct view view;
    float momentum;  /* kept by this rank (comm.momentum_correction); 0: none */
    /* What the codec failed to send: of this rank's gradient (by element), and of the
     * averages that this rank encodes (tile after tile). Row 0 is as of the last completed
     * step; encoding writes row 1, and only bucket_commit() makes that the new truth. One
     * array in both rows where no step is taken back. NULL without error feedback. */
    uint8_t *residual[2], *owner_residual[2];
    size_t residual_size; /* bytes of an element of these: a float, or a bf16 */
    float *velocity[2]; /* of this rank's gradient, by element; rows as above. NULL: none */
    size_t residual_bytes; /* of all these */

    /* set for every step */
    const struct codec *codec;
    uint8_t factor; /* of a factored codec: which one is exchanged */
    uint32_t step;
    bool poisoned;  /* some rank's gradient is not finite: known on all ranks at the end */
    int tiles_done;

    /* counted */
    uint64_t wire_bytes[STRAIT_PEER_CLASSES];
    double encode_s, decode_s;
};

/* What a thread that runs tiles needs while it does, a slice each; nothing stays in it. */
struct workspace {
    float *scratch;  /* see view.h */
    float *residual; /* where the bucket has none, or not as floats */
};

struct exchange {
    const struct exchange_env *env;
    const struct schedule *schedule;
    size_t capacity; /* elements of the largest tile */
    const struct codec *usual_codec; /* of all buckets but those in fp32 */
    bool fp32_too;                   /* some step or bucket travels as fp32 */
    void *state;     /* the schedule's own */
    struct workspace *work; /* of the thread that runs the tile */

    /* the tile under way; bucket is NULL when there is none */
    struct bucket *bucket;
    uint32_t tile, sequence; /* within the bucket; since the start, for tags */
    size_t begin, elements;  /* in the bucket */
    bool started;
    /* of this tile, until exchange_end() adds it to the bucket's */
    bool poisoned;
    uint64_t wire_bytes[STRAIT_PEER_CLASSES];
    double encode_s, decode_s;
};

struct schedule {
    const char *name;
    bool uses_mpi; /* from the progress thread: needs MPI_THREAD_MULTIPLE, and no sleep on
                      the transport would notice that MPI moved */
    /* Slices that a tile has. */
    int (*slices)(const struct cluster *);
    /* Of a tile of n elements, how many this rank encodes as their owner. */
    size_t (*owned)(const struct cluster *, size_t n);
    /* Allocate all that tiles will need; the exchange's first five members are set. */
    strait_status (*open)(struct exchange *);
    /* Begin the tile that is set. */
    strait_status (*start)(struct exchange *);
    /* Go on as far as arrivals allow. *moved: something was done; *done: all was. */
    strait_status (*progress)(struct exchange *, bool *moved, bool *done);
    /* What an unfinished tile waits for, in words. */
    void (*waiting)(const struct exchange *, struct text *out);
    /* Give up an unfinished tile; no transfer touches its buffers afterwards. */
    void (*cancel)(struct exchange *);
    void (*close)(struct exchange *);
};

extern const struct schedule schedule_sra, schedule_ring, schedule_hierarchical,
    schedule_allgather, schedule_dense;

/* All schedules, NULL at the end. */
extern const struct schedule *const schedule_table[];

const struct schedule *schedule_find(const char *name);

/* ---- bucket.c: `elements`, `usual_codec`, `index`, `schedule` and `momentum` are set */
strait_status bucket_open(struct bucket *b, const struct exchange_env *env, int parts);
void bucket_close(struct bucket *b, const struct exchange_env *env);
/* The step counts on all ranks: what it left unsent is what the next one adds. */
void bucket_commit(struct bucket *b);
/* With momentum, the velocity of these elements, to which `gradient` is added here: so once a
 * step for each element. Without, `gradient`. */
const float *bucket_momentum(struct bucket *b, const struct exchange_env *env, size_t begin,
                             size_t n, const float *gradient);
/* Elements that this rank encodes as their owner in the tiles before `tile`. */
size_t bucket_owned_before(const struct bucket *b, const struct exchange_env *env, uint32_t tile);

/* ---- schedule.c */
/* For tiles of exchanges like x. */
strait_status workspace_open(struct workspace *work, const struct exchange *x);
void workspace_close(struct workspace *work, const struct device *device);
/* Take on a tile. */
void exchange_begin(struct exchange *x, struct bucket *bucket, uint32_t tile, uint32_t sequence);
/* Start it, or go on with it, as far as arrivals allow. May be called from any one thread at
 * a time: nothing that exchanges share changes. */
strait_status exchange_run(struct exchange *x, struct workspace *work, bool *moved, bool *done);
/* It is done: account for it, and be free for the next. */
void exchange_end(struct exchange *x);

/* Elements [slice_begin(c), slice_begin(c + 1)) of n belong to slice c of `slices`. */
static inline size_t slice_begin(size_t n, int slices, int c)
{
    return n / (size_t)slices * (size_t)c + n % (size_t)slices * (size_t)c / (size_t)slices;
}

#endif
