/* SPDX-License-Identifier: Apache-2.0
 * payload.h - the 40 bytes in front of every encoded slice (docs/wire-format.md).
 *
 * They say what follows, so that a stale or foreign message is an error and never a
 * wrong gradient. A poisoned payload is the header alone: its sender holds a value that
 * is not finite, and the step will be skipped everywhere. */
#ifndef STRAIT_SCHEDULE_PAYLOAD_H
#define STRAIT_SCHEDULE_PAYLOAD_H

#include "codec/codec.h"

#define PAYLOAD_HEADER_BYTES 40
#define PAYLOAD_VERSION 3

/* Which leg of its journey a payload is on. A ring numbers the hops of either. */
enum payload_leg { LEG_TO_OWNER = 0, LEG_FROM_OWNER = 128 };

struct payload_header {
    uint8_t codec;    /* struct codec's id */
    bool poisoned;
    bool checked;     /* with a checksum (comm.checksum) */
    uint8_t leg;      /* enum payload_leg, plus the hop */
    uint32_t step;    /* counted from 0, modulo 2^32 */
    uint16_t bucket;
    uint16_t owner;   /* the rank that encodes the average */
    uint32_t tile;    /* within the bucket */
    uint32_t elements;
    uint32_t param;   /* the codec's */
    uint8_t variant;  /* the codec's */
};

/* Write PAYLOAD_HEADER_BYTES, in front of a body if it is not poisoned: `bytes` in all. */
void payload_put(uint8_t *to, const struct payload_header *header, size_t bytes);

/* Check a received message of `bytes` against what is due: everything but the poison
 * flag must agree, the checksum too, and a poisoned payload has no body. *poisoned tells which
 * it was. STRAIT_ERR_FORMAT says what differs. */
strait_status payload_check(const uint8_t *message, size_t bytes,
                            const struct payload_header *due, bool *poisoned);

#endif
