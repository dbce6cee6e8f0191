/* SPDX-License-Identifier: Apache-2.0
 * meter.h - one rank's clock and counters, cut into records. */
#ifndef STRAIT_TRAIN_METER_H
#define STRAIT_TRAIN_METER_H

#include "train/record.h"

struct meter;

/* Room for the times of `steps` steps. */
struct meter *meter_open(size_t steps);
void meter_close(struct meter *m); /* NULL is allowed */

/* One step is over: how long it took, how much of that was waiting, what it trained on. */
void meter_step(struct meter *m, double step_s, double exposed_s, size_t samples, double loss_sum);

/* The record since the last cut, and since the beginning. `now` is the context's total. */
struct record meter_cut(struct meter *m, const strait_statistics *now);
/* The record since the last cut, as it would be; nothing is cut. */
struct record meter_since_cut(const struct meter *m, const strait_statistics *now);
struct record meter_total(const struct meter *m, const strait_statistics *now);

#endif
