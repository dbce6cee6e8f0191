/* SPDX-License-Identifier: Apache-2.0
 * workers.h - threads that encode and decode: each takes one tile at a time as far as
 * arrivals allow, and gives it back.
 *
 * With a single thread there are none, and the progress thread does it all. Otherwise it
 * is left with moving messages, and with the products of factors.h. Which thread has a tile
 * changes no bit of it: a tile's sums have their own order, and tiles share nothing. */
#ifndef STRAIT_ENGINE_WORKERS_H
#define STRAIT_ENGINE_WORKERS_H

#include "base/error.h"
#include "schedule/schedule.h"

/* What running a tile came to. */
struct tile_result {
    bool moved, done;
    strait_status status;
    char message[ERROR_MESSAGE_BYTES]; /* of an error: those are kept by thread */
};

struct workers;

/* `window` are the exchanges that may be given; `wake_fd` is written when one is back. */
strait_status workers_open(struct workers **out, int threads, struct exchange *window, int size,
                           int wake_fd);
/* Returns when no worker has a tile. */
void workers_close(struct workers *w);

/* Run exchange i of the window. */
void workers_give(struct workers *w, int i);
/* True: a worker still has exchange i, or it waits for one. */
bool workers_have(struct workers *w, int i);
/* Its result, once: false when there is none. */
bool workers_take(struct workers *w, int i, struct tile_result *result);

#endif
