/* SPDX-License-Identifier: Apache-2.0
 * fingerprint.h - are the averaged gradients the same bits on all ranks?
 *
 * Each rank hashes every bucket's average and sends the hashes to all others over the
 * transport. Every rank sees all hashes, so all reach the same verdict. */
#ifndef STRAIT_ENGINE_FINGERPRINT_H
#define STRAIT_ENGINE_FINGERPRINT_H

#include "schedule/schedule.h"

struct fingerprint;

strait_status fingerprint_open(struct fingerprint **out, const struct exchange_env *env,
                               int buckets);
/* NULL is allowed. */
void fingerprint_close(struct fingerprint *f);

void fingerprint_start(struct fingerprint *f, const struct bucket *buckets, uint32_t step);
/* *done: compared. STRAIT_ERR_DIVERGED names the bucket and the ranks. */
strait_status fingerprint_progress(struct fingerprint *f, bool *moved, bool *done);
void fingerprint_waiting(const struct fingerprint *f, struct text *out);
void fingerprint_cancel(struct fingerprint *f);

/* The verdict alone: `all` holds `buckets` hashes of each rank in turn. Writes to `why`
 * and returns the first bucket that differs, or returns -1. */
int fingerprint_compare(const uint64_t *all, int ranks, int buckets, const struct cluster *cluster,
                        struct text *why);

#endif
