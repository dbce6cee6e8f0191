/* SPDX-License-Identifier: Apache-2.0
 * transport.c - the table of transports, counting, and the greeting at the start. */
#include "transport/transport.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"

const struct transport_ops *const transport_table[] = { &transport_ucx, &transport_mpi, NULL };

const struct transport_ops *transport_find(const char *name)
{
    for (int i = 0; transport_table[i] != NULL; i++)
        if (strcmp(transport_table[i]->name, name) == 0) return transport_table[i];
    return NULL;
}

void transport_send(struct transport *t, int peer, uint32_t tag, const void *buffer, size_t bytes,
                    struct transfer *transfer)
{
    strait_peer_class peers = cluster_class(t->cluster, peer);

    *transfer = (struct transfer){ .state = TRANSFER_ACTIVE, .peer = peer, .bytes = bytes };
    pthread_mutex_lock(&t->lock);
    t->sent_bytes[peers] += bytes;
    t->sent_messages[peers]++;
    t->ops->send(t, tag, buffer, transfer);
    pthread_mutex_unlock(&t->lock);
}

void transport_recv(struct transport *t, int peer, uint32_t tag, void *buffer, size_t capacity,
                    struct transfer *transfer)
{
    *transfer = (struct transfer){ .state = TRANSFER_ACTIVE, .peer = peer, .bytes = capacity };
    pthread_mutex_lock(&t->lock);
    t->ops->recv(t, tag, buffer, transfer);
    pthread_mutex_unlock(&t->lock);
}

bool transport_progress(struct transport *t)
{
    bool moved;

    pthread_mutex_lock(&t->lock);
    moved = t->ops->progress(t);
    pthread_mutex_unlock(&t->lock);
    return moved;
}

void transport_cancel(struct transport *t, struct transfer *transfer)
{
    if (transfer_state(transfer) == TRANSFER_ACTIVE) t->ops->cancel(t, transfer);
}

strait_status transfer_error(const struct transport *t, const struct transfer *transfer,
                             const char *what)
{
    return error_set(transfer->status, "%s rank %d on %s over %s failed: %s", what, transfer->peer,
                     cluster_host(t->cluster, transfer->peer), t->ops->name, transfer->why);
}

/* ---- the greeting: eight bytes to and from every peer ---- */
struct greeting {
    uint8_t sent[8], received[8];
    struct transfer send, recv;
};

static const uint8_t hello[8] = { 'S', 'T', 'R', 'A', 'I', 'T', 0, 1 };

static bool is_over(const struct greeting *g)
{
    return g->send.state != TRANSFER_ACTIVE && g->recv.state != TRANSFER_ACTIVE;
}

static strait_status judge(const struct transport *t, const struct greeting *g)
{
    if (g->send.state == TRANSFER_FAILED) return transfer_error(t, &g->send, "greeting");
    if (g->recv.state == TRANSFER_FAILED) return transfer_error(t, &g->recv, "the greeting of");
    if (g->recv.bytes != sizeof hello || memcmp(g->received, hello, sizeof hello) != 0)
        return error_set(STRAIT_ERR_FORMAT, "rank %d on %s greets in another language; run the "
                         "same version of Strait on all nodes",
                         g->recv.peer, cluster_host(t->cluster, g->recv.peer));
    return STRAIT_OK;
}

static strait_status wait_for_greetings(struct transport *t, const struct greeting *all)
{
    double begin = clock_s();
    int peer = 0;

    while (peer < t->cluster->size) {
        if (peer == t->cluster->rank || is_over(&all[peer])) {
            peer++;
            continue;
        }
        if (clock_s() - begin > t->cluster->timeout_s)
            return error_set(STRAIT_ERR_TIMEOUT,
                             "no greeting over %s from rank %d on %s within %.0f s; check that its "
                             "node can be reached on the network that UCX_NET_DEVICES names",
                             t->ops->name, peer, cluster_host(t->cluster, peer),
                             t->cluster->timeout_s);
        if (!transport_progress(t)) t->ops->wait(t, -1, 10000);
    }
    return STRAIT_OK;
}

static strait_status greet(struct transport *t)
{
    int size = t->cluster->size, rank = t->cluster->rank;
    struct greeting *all = calloc((size_t)size, sizeof *all);
    strait_status st = STRAIT_OK;

    if (all == NULL) return error_memory("greetings");
    for (int i = 1; i < size; i++) {
        int peer = (rank + i) % size;
        struct greeting *g = &all[peer];

        memcpy(g->sent, hello, sizeof hello);
        transport_recv(t, peer, TRANSPORT_HELLO_TAG, g->received, sizeof g->received, &g->recv);
        transport_send(t, peer, TRANSPORT_HELLO_TAG, g->sent, sizeof g->sent, &g->send);
    }
    st = wait_for_greetings(t, all);
    for (int peer = 0; peer < size; peer++) {
        if (peer == rank) continue;
        if (st == STRAIT_OK) st = judge(t, &all[peer]);
        transport_cancel(t, &all[peer].send);
        transport_cancel(t, &all[peer].recv);
    }
    free(all);
    return st;
}

strait_status transport_open(struct transport **out, const struct transport_ops *ops,
                             const struct cluster *cluster)
{
    struct transport *t = NULL;
    strait_status st = ops->open(&t, cluster);

    if (st == STRAIT_OK) {
        t->ops = ops;
        pthread_mutex_init(&t->lock, NULL);
    }
    st = cluster_agree(cluster, st, "opening the transport");
    if (st == STRAIT_OK) st = cluster_agree(cluster, greet(t), "greeting all ranks");
    if (st == STRAIT_OK) *out = t;
    else transport_close(t, true);
    return st;
}

strait_status transport_close(struct transport *t, bool broken)
{
    return t != NULL ? t->ops->close(t, broken) : STRAIT_OK;
}
