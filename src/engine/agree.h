/* SPDX-License-Identifier: Apache-2.0
 * agree.h - do all ranks hold the same text? */
#ifndef STRAIT_ENGINE_AGREE_H
#define STRAIT_ENGINE_AGREE_H

#include "cluster/cluster.h"

/* Compare by hash; when hashes differ, find the first line that does. Collective; all
 * ranks get the same status. STRAIT_ERR_DISAGREE: "rank 2 on b: has '...', rank 0 has
 * '...'". */
strait_status agree_on(const struct cluster *cluster, const struct text *mine, const char *what);

#endif
