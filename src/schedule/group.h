/* SPDX-License-Identifier: Apache-2.0
 * group.h - scatter, reduce, all-gather among some of the ranks.
 *
 * The members share one lane, a run of the tile's slices, one slice each. Everyone encodes
 * its values of every slice but its own and sends them to the slice's owner. The owner sums
 * in member order, in fp32, its own values as they are and the others' decoded; divides;
 * encodes the average once with its own residual; and sends that to all members. All of
 * them, the owner too, apply those bytes: that is what keeps replicas identical.
 *
 * Poison: who finds a value that is not finite in a slice sends its header without a
 * body; an owner that got one, or whose sum is not finite, tells everyone the same way. */
#ifndef STRAIT_SCHEDULE_GROUP_H
#define STRAIT_SCHEDULE_GROUP_H

#include "schedule/message.h"

/* One member, both as the owner of its slice and as a contributor to this rank's. */
struct member {
    int rank;
    struct slice slice;                    /* the one it owns */
    uint8_t *exchanged;                    /* this rank's message to it, then its average */
    struct transfer sent, average_arrival; /* of these two */
    uint8_t *contribution;                 /* its message to this rank's slice */
    struct transfer arrival, sent_average; /* of that; the average out to it */
    bool applied;                          /* its average is in the caller's tensors */
};

struct group {
    /* set before group_open() */
    int count, me;        /* members; which of them this rank is */
    int lane, slices;     /* the lane's number; slices of the whole tile */
    bool exact;           /* nothing here crosses a network: fp32, whatever the codec */
    struct member *members;

    size_t capacity;      /* of each message */
    size_t owned_before;  /* elements that this rank owns in the lanes before this one */
    const float *own;     /* this rank's values of its own slice; NULL: its gradient */
    bool own_given, sum_poisoned;
    float *sum;           /* of the owned slice */
    uint8_t *average;     /* its message */
    size_t average_bytes;
    int next_to_sum;      /* members below it are in `sum` */
    bool reduced;         /* the average is on its way */
};

/* `members` are allocated, with their ranks. */
strait_status group_open(struct exchange *x, struct group *g);
void group_close(struct exchange *x, struct group *g);

/* A new tile: nothing is contributed yet. */
void group_begin(struct exchange *x, struct group *g);
/* This rank's values of one member's slice. Its own are read later: until the end of the
 * tile (NULL: from the caller's tensors). */
strait_status group_contribute(struct exchange *x, struct group *g, int member,
                               const float *values, bool poisoned);
strait_status group_progress(struct exchange *x, struct group *g, bool *moved, bool *done);

/* The average of a member's slice, to pass on; NULL: not here yet. */
const uint8_t *group_average(const struct group *g, int member, size_t *bytes);

void group_waiting(const struct exchange *x, const struct group *g, struct text *out);
void group_cancel(struct exchange *x, struct group *g);

#endif
