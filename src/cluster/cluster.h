/* SPDX-License-Identifier: Apache-2.0
 * cluster.h - which ranks exist and where they run, and the few collectives that
 * starting up, agreeing and reporting need.
 *
 * All collectives run over a duplicate of the caller's communicator, are called by all
 * ranks in the same order from one thread, and end after `timeout_s` with a message
 * that says what was waited for. Gradients never travel this way. */
#ifndef STRAIT_CLUSTER_CLUSTER_H
#define STRAIT_CLUSTER_CLUSTER_H

#include <mpi.h>

#include "base/error.h"
#include "base/text.h"

#define CLUSTER_HOST_BYTES 64

struct place {
    int node;        /* nodes are counted in the order of their lowest rank */
    int local_rank;  /* among the ranks of its node, in rank order */
    int local_size;
    char host[CLUSTER_HOST_BYTES];
};

struct cluster {
    MPI_Comm comm;
    int rank, size, nodes;
    double timeout_s;
    struct place *places; /* by rank */
};

strait_status cluster_open(struct cluster **out, MPI_Comm comm, double timeout_s);
/* Take ranks to be on the nodes that the text names (by rank, as "0,0,1,1"), wherever they
 * are, to try a layout on one machine; "" leaves them as they are. */
strait_status cluster_rehearse(struct cluster *cluster, const char *nodes);
void cluster_close(struct cluster *cluster); /* local, but for the communicator's release */

static inline const char *cluster_host(const struct cluster *cluster, int rank)
{
    return cluster->places[rank].host;
}

static inline strait_peer_class cluster_class(const struct cluster *cluster, int peer)
{
    return cluster->places[peer].node == cluster->places[cluster->rank].node
               ? STRAIT_WITHIN_NODE
               : STRAIT_BETWEEN_NODES;
}

/* `what` names the wait in the message of a timeout. `all` receives size * bytes. */
strait_status cluster_allgather(const struct cluster *cluster, const void *mine, size_t bytes,
                                void *all, const char *what);
/* From rank 0 to all. */
strait_status cluster_broadcast(const struct cluster *cluster, void *buffer, size_t bytes,
                                const char *what);
strait_status cluster_barrier(const struct cluster *cluster, const char *what);

/* Every rank brings what its last step came to; all get the status and message of the
 * lowest rank that failed, or STRAIT_OK. The message names that rank and host unless
 * rank 0 failed with the same words or it is the only rank. */
strait_status cluster_agree(const struct cluster *cluster, strait_status mine, const char *what);

/* Rank 0's text (any length) becomes every rank's; `text` of the others is replaced. */
strait_status cluster_broadcast_text(const struct cluster *cluster, struct text *text,
                                     const char *what);

/* Wait for an MPI request with the cluster's bound; it is NULL or cancelled afterwards. */
strait_status cluster_wait(const struct cluster *cluster, MPI_Request *request,
                           const char *what);

#endif
