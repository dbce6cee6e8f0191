/* SPDX-License-Identifier: Apache-2.0
 * record.h - what one rank did in an interval of steps: measured by the loop, gathered
 * from all ranks, shown as a line, a table row and a JSON record. */
#ifndef STRAIT_TRAIN_RECORD_H
#define STRAIT_TRAIN_RECORD_H

#include "strait.h"

/* Plain data: it travels between ranks as it is. */
struct record {
    uint64_t steps, skipped, samples;
    double loss_sum;                 /* over this rank's samples */
    double step_s;                   /* sum over the steps */
    double step_median_s, step_p95_s;
    double exposed_s;                /* of step_s: waiting for gradients */
    double encode_decode_s;          /* in the progress thread, beside the step */
    uint64_t raw_bytes, dense_bytes, wire_bytes[STRAIT_PEER_CLASSES];
    uint64_t held_out, held_out_correct; /* of this rank's share; 0, 0: not evaluated */
};

static inline double record_rate(const struct record *r)
{
    return r->step_s > 0 ? (double)r->samples / r->step_s : 0;
}

/* Milliseconds a step, on average. */
static inline double record_ms(const struct record *r, double total_s)
{
    return r->steps > 0 ? 1e3 * total_s / (double)r->steps : 0;
}

static inline uint64_t record_wire_bytes(const struct record *r)
{
    return r->wire_bytes[STRAIT_WITHIN_NODE] + r->wire_bytes[STRAIT_BETWEEN_NODES];
}

/* How many times fewer bytes than the same exchange in fp32; 0: nothing was sent. */
static inline double record_ratio(const struct record *r)
{
    return record_wire_bytes(r) > 0 ? (double)r->dense_bytes / (double)record_wire_bytes(r) : 0;
}

#endif
