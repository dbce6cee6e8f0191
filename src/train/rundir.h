/* SPDX-License-Identifier: Apache-2.0
 * rundir.h - the folder of one run: its effective configuration and its metrics. */
#ifndef STRAIT_TRAIN_RUNDIR_H
#define STRAIT_TRAIN_RUNDIR_H

#include "base/config.h"
#include "base/jsonl.h"

struct rundir {
    char path[2 * CONFIG_TEXT_BYTES];
    struct jsonl *metrics; /* metrics.jsonl: docs/metrics.md */
};

/* Make <run.dir>/<time>-<run.name>/ with config.conf and an empty metrics.jsonl. Rank 0
 * alone does this. */
strait_status rundir_open(struct rundir *dir, const struct strait_config *config);
strait_status rundir_close(struct rundir *dir);

#endif
