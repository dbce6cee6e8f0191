/* SPDX-License-Identifier: Apache-2.0
 * message.h - a slice of a tile as a message: header, body, and the checks on arrival.
 *
 * Shared by all schedules that send payloads: each says which slice goes where. */
#ifndef STRAIT_SCHEDULE_MESSAGE_H
#define STRAIT_SCHEDULE_MESSAGE_H

#include "schedule/schedule.h"

/* A slice of the tile under way, and how it is encoded in this step. */
struct slice {
    int owner;     /* into the header: who encodes its average */
    size_t begin;  /* in the tile */
    size_t owned_before; /* elements of the tile that its owner owns in slices before it */
    struct codec_shape shape;
};

/* Slice c of `slices` of the tile under way. */
struct slice slice_of(const struct exchange *x, int slices, int c);

/* This slice travels as fp32 whatever the bucket's codec. */
void slice_in_fp32(const struct exchange *x, struct slice *slice);

/* The counts and keys that `rank` encodes elements from `first` of the bucket with: `key` is
 * the same on all ranks, `noise` is not. No rank encodes an element twice in a step. */
struct codec_draw message_draw(uint64_t seed, uint32_t step, int bucket, int rank, size_t first);

/* Bytes that hold any slice of n elements with its header. */
size_t message_capacity(const struct exchange *x, size_t n);
size_t message_fp32_capacity(const struct exchange *x, size_t n);

/* Which residual an encoding adds and renews. */
enum residual_kind { RESIDUAL_OWN, RESIDUAL_OWNER };

/* Encode `values` (of the slice) into `message`; *bytes is its size. Poisoned values, or
 * such as are not finite, make it a header alone. */
strait_status message_encode(struct exchange *x, const struct slice *slice, uint8_t leg,
                             bool poisoned, const float *values, enum residual_kind kind,
                             uint8_t *message, size_t *bytes);
/* Nothing of this slice is encoded in this step by this rank, so nothing is left of it. */
void message_clear_residual(struct exchange *x, const struct slice *slice);

/* Check and decode what came from `peer` to or onto `out`; *poisoned: it had no body. */
strait_status message_decode(struct exchange *x, const struct slice *slice, uint8_t leg, int peer,
                             const uint8_t *message, size_t bytes, enum codec_decode_mode mode,
                             float *out, bool *poisoned);
/* The same, to the caller's tensors. A poisoned message poisons the bucket. */
strait_status message_apply(struct exchange *x, const struct slice *slice, uint8_t leg, int peer,
                            const uint8_t *message, size_t bytes);

/* Gradient elements of the slice, as view_read() gives them. */
const float *slice_gradient(struct exchange *x, const struct slice *slice);
/* What is encoded in the stead of a gradient where momentum is corrected: bucket_momentum(). */
const float *slice_momentum(struct exchange *x, const struct slice *slice, const float *gradient);
/* Both: what this rank gives to the average. */
const float *slice_values(struct exchange *x, const struct slice *slice);

/* Messages of the tile under way are told apart by leg, sender and sequence. */
void message_send(struct exchange *x, int peer, uint8_t leg, const uint8_t *message, size_t bytes,
                  struct transfer *transfer);
void message_recv(struct exchange *x, int peer, uint8_t leg, uint8_t *message, size_t capacity,
                  struct transfer *transfer);

/* False: still under way. A failed one gives its error. */
bool message_ended(struct exchange *x, const struct transfer *transfer, const char *what,
                   strait_status *st);

#endif
