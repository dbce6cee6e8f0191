/* SPDX-License-Identifier: Apache-2.0
 * agree.c - see agree.h. */
#include "engine/agree.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* The first line in which the texts differ. */
static strait_status first_difference(const char *mine, const char *theirs, const char *what)
{
    for (;;) {
        int mine_length = (int)strcspn(mine, "\n"), theirs_length = (int)strcspn(theirs, "\n");

        if (mine_length != theirs_length || strncmp(mine, theirs, (size_t)mine_length) != 0)
            return error_set(STRAIT_ERR_DISAGREE, "%s differ: here '%.*s', on rank 0 '%.*s'", what,
                             mine_length, mine, theirs_length, theirs);
        if (mine[mine_length] == '\0' || theirs[theirs_length] == '\0') return STRAIT_OK;
        mine += mine_length + 1;
        theirs += theirs_length + 1;
    }
}

strait_status agree_on(const struct cluster *cluster, const struct text *mine, const char *what)
{
    uint64_t hash = hash_bytes(text_string(mine), mine->length, 0);
    uint64_t *all = calloc((size_t)cluster->size, sizeof *all);
    struct text reference = { 0 };
    bool same = true;
    strait_status st;

    if (all == NULL) return error_memory(what);
    if ((st = cluster_allgather(cluster, &hash, sizeof hash, all, what))) goto done;
    for (int r = 1; r < cluster->size; r++) same &= all[r] == all[0];
    if (same) goto done;
    if (cluster->rank == 0) text_add(&reference, "%s", text_string(mine));
    if ((st = cluster_broadcast_text(cluster, &reference, what))) goto done;
    st = cluster_agree(cluster, first_difference(text_string(mine), text_string(&reference), what),
                       what);
done:
    text_free(&reference);
    free(all);
    return st;
}
