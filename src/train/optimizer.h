/* SPDX-License-Identifier: Apache-2.0
 * optimizer.h - SGD with momentum, and Adam (Kingma and Ba 2015, arXiv 1412.6980).
 *
 * Every rank applies the same averaged gradients to the same parameters by the same
 * arithmetic, so replicas stay identical without exchanging parameters. */
#ifndef STRAIT_TRAIN_OPTIMIZER_H
#define STRAIT_TRAIN_OPTIMIZER_H

#include "train/mlp.h"

struct optimizer;

strait_status optimizer_open(struct optimizer **out, const struct strait_config *config,
                             struct mlp *model);
/* NULL is allowed. */
void optimizer_close(struct optimizer *o);

/* One step on all parameters from their gradients. */
void optimizer_apply(struct optimizer *o);

#endif
