/* SPDX-License-Identifier: Apache-2.0
 * cluster.c - who is where: rank, node, local rank and host of every rank. */
#include "cluster/cluster.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

/* The lowest rank on this rank's node tells the node apart: MPI knows which ranks share
 * memory, host names do not (two machines may bear one name). */
static strait_status node_leader(struct cluster *c, int *leader)
{
    MPI_Comm node = MPI_COMM_NULL;
    strait_status st = STRAIT_OK;

    if (MPI_Comm_split_type(c->comm, MPI_COMM_TYPE_SHARED, c->rank, MPI_INFO_NULL, &node) ||
        MPI_Allreduce(&c->rank, leader, 1, MPI_INT, MPI_MIN, node))
        st = error_set(STRAIT_ERR_MPI, "MPI could not tell which ranks share this node");
    if (node != MPI_COMM_NULL) MPI_Comm_free(&node);
    return st;
}

/* Number the nodes and the ranks within them from every rank's leader. */
static void number_places(struct cluster *c, const int *leaders)
{
    for (int r = 0; r < c->size; r++) {
        struct place *place = &c->places[r];

        if (leaders[r] == r) place->node = c->nodes++;
        else place->node = c->places[leaders[r]].node;
        place->local_size = place->local_rank = 0;
        for (int other = 0; other < c->size; other++) {
            if (leaders[other] != leaders[r]) continue;
            place->local_size++;
            place->local_rank += other < r;
        }
    }
}

static strait_status find_places(struct cluster *c)
{
    struct { int leader; char host[CLUSTER_HOST_BYTES]; } mine = { 0 }, *all;
    int *leaders = calloc((size_t)c->size, sizeof *leaders);
    strait_status st = STRAIT_ERR_MEMORY;

    all = calloc((size_t)c->size, sizeof *all);
    c->places = calloc((size_t)c->size, sizeof *c->places);
    if (leaders == NULL || all == NULL || c->places == NULL) {
        error_memory("the placement of ranks");
        goto done;
    }
    if (gethostname(mine.host, sizeof mine.host - 1) != 0) strcpy(mine.host, "unknown");
    if ((st = node_leader(c, &mine.leader))) goto done;
    if ((st = cluster_allgather(c, &mine, sizeof mine, all, "the placement of ranks"))) goto done;
    for (int r = 0; r < c->size; r++) {
        leaders[r] = all[r].leader;
        memcpy(c->places[r].host, all[r].host, sizeof all[r].host);
        c->places[r].host[sizeof all[r].host - 1] = '\0';
        if (leaders[r] < 0 || leaders[r] > r) {
            st = error_set(STRAIT_ERR_FORMAT, "rank %d says its node begins at rank %d", r,
                           leaders[r]);
            goto done;
        }
    }
    number_places(c, leaders);
done:
    free(leaders);
    free(all);
    return st;
}

/* The number of a node at *text, with the comma that must follow all but the last. */
static bool next_node(const char **text, bool last, long *node)
{
    char *end;

    if (**text < '0' || **text > '9') return false;
    *node = strtol(*text, &end, 10);
    if (*end != (last ? '\0' : ',')) return false;
    *text = end + 1;
    return true;
}

strait_status cluster_rehearse(struct cluster *c, const char *nodes)
{
    long *node = calloc((size_t)c->size, sizeof *node);
    int *leaders = calloc((size_t)c->size, sizeof *leaders);
    const char *text = nodes;
    strait_status st = STRAIT_OK;

    if (nodes[0] == '\0') goto done;
    if (node == NULL || leaders == NULL) {
        st = error_memory("the placement of ranks");
        goto done;
    }
    for (int r = 0; r < c->size && st == STRAIT_OK; r++) {
        if (!next_node(&text, r == c->size - 1, &node[r]))
            st = error_set(STRAIT_ERR_CONFIG, "comm.nodes = \"%s\" does not name a node for each "
                           "of %d ranks; for instance, 0,0,1,1 for four", nodes, c->size);
        while (st == STRAIT_OK && node[leaders[r]] != node[r]) leaders[r]++;
    }
    if (st == STRAIT_OK) {
        c->nodes = 0;
        number_places(c, leaders);
    }
done:
    free(node);
    free(leaders);
    return st;
}

strait_status cluster_open(struct cluster **out, MPI_Comm comm, double timeout_s)
{
    struct cluster *c = calloc(1, sizeof *c);
    int initialized = 0;
    strait_status st;

    if (c == NULL) return error_memory("the cluster");
    c->comm = MPI_COMM_NULL;
    c->timeout_s = timeout_s;
    MPI_Initialized(&initialized);
    if (!initialized) {
        st = error_set(STRAIT_ERR_USAGE, "MPI is not initialised; call MPI_Init_thread first");
        goto done;
    }
    if (MPI_Comm_dup(comm, &c->comm) || MPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN) ||
        MPI_Comm_rank(c->comm, &c->rank) || MPI_Comm_size(c->comm, &c->size)) {
        st = error_set(STRAIT_ERR_MPI, "MPI could not duplicate the communicator");
        goto done;
    }
    if ((st = find_places(c))) goto done;
    log_identity(c->rank, cluster_host(c, c->rank));
    *out = c;
    c = NULL;
done:
    cluster_close(c);
    return st;
}

void cluster_close(struct cluster *cluster)
{
    if (cluster == NULL) return;
    if (cluster->comm != MPI_COMM_NULL) MPI_Comm_free(&cluster->comm);
    free(cluster->places);
    free(cluster);
}
