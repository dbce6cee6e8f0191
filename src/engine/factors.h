/* SPDX-License-Identifier: Apache-2.0
 * factors.h - gradients as products of two thin factors: PowerSGD (Vogels, Karimireddy and Jaggi
 * 2019, arXiv 1905.13727), one step of the power method for each step of training.
 *
 * A tensor is a matrix, M: gradient and residual. From the last step's Q,
 *   1. P = M Q, averaged over the ranks, its columns made orthonormal;
 *   2. Q = M' P, averaged over the ranks;
 *   3. the averaged gradient is P Q', and what a rank's own M differs from it is its residual.
 * Both averages are exchanges of the bucket like any other: a leg shows its schedule the
 * elements of one factor, and the schedule gives all ranks the same bits. All else is
 * arithmetic in a fixed order on equal numbers, so replicas stay identical.
 *
 * M lies in the caller's memory. A step that is taken back leaves Q and residual as they were. */
#ifndef STRAIT_ENGINE_FACTORS_H
#define STRAIT_ENGINE_FACTORS_H

#include "engine/plan.h"
#include "schedule/schedule.h"

/* Of one bucket, all of whose tensors plan_can_factor(). Belongs to the progress thread. */
struct factors;

/* After bucket_open(). Adds to the bucket's residual_bytes. */
strait_status factors_open(struct factors **out, struct bucket *bucket,
                           const struct exchange_env *env, const struct tensor_list *tensors,
                           uint32_t rank);
/* Before bucket_close(). NULL is allowed. */
void factors_close(struct factors *f);

/* The gradients are in the bucket's view: make P, and have the bucket's tiles be P's. */
void factors_begin(struct factors *f);
/* All tiles of this leg are done. True: the bucket's tiles are Q's now. False: it is over, the
 * view is the tensors' again, and they hold the average unless the bucket is poisoned. */
bool factors_go_on(struct factors *f);
/* May tiles of the second leg start? *over: there will be none in this step. */
bool factors_may_start_second(const struct factors *f, bool *over);

/* The step counts on all ranks: Q and residual are those of the next. */
void factors_commit(struct factors *f);

/* Column `column` of tensor `id`'s first Q, and of what takes the place of a Q that is 0. */
void factors_draw(uint64_t seed, uint32_t step, int id, uint32_t column, float *q, size_t n);

#endif
