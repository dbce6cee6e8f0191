/* SPDX-License-Identifier: Apache-2.0
 * train.h - Strait's own trainer: load, train, evaluate, report. */
#ifndef STRAIT_TRAIN_TRAIN_H
#define STRAIT_TRAIN_TRAIN_H

#include "base/config.h"
#include "cluster/cluster.h"

/* Train as `config` says, with the ranks of `cluster`. Collective. *agreed tells whether
 * all ranks return this very status and message, so that one of them may report it and
 * all may end in peace; otherwise this rank alone knows. */
strait_status train_run(const struct strait_config *config, const struct cluster *cluster,
                        bool *agreed);

#endif
