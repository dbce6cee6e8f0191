/* SPDX-License-Identifier: Apache-2.0
 * bench_link.c - the rate of the links between nodes, as a transport fills them.
 *
 * The first rank of every node sends to that of the next node while it receives from that of
 * the one before: both directions of every link at once, as in an exchange. More and more
 * messages are sent until the time can be trusted; the slowest link counts. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench.h"
#include "transport/transport.h"

enum { DEPTH = 8, MESSAGE_BYTES = 256 << 10, FIRST = 4 * DEPTH, TAG = 1, SPINS = 64 };

static const double trusted_s = 0.25, bound_s = 60;

struct probe {
    struct transport *transport;
    int to, from;
    uint8_t *out, *in; /* in: DEPTH messages */
    struct transfer sends[DEPTH], recvs[DEPTH];
};

/* The first rank of a node. */
static int leader(const struct cluster *c, int node)
{
    int rank = 0;

    while (c->places[rank].node != node || c->places[rank].local_rank != 0) rank++;
    return rank;
}

/* Renew what has ended; *started counts up to `count`, *ended too. */
static strait_status renew(struct probe *p, bool sending, int count, int *started, int *ended)
{
    struct transport *t = p->transport;

    for (int i = 0; i < DEPTH; i++) {
        struct transfer *x = sending ? &p->sends[i] : &p->recvs[i];

        if (x->state == TRANSFER_ACTIVE) continue;
        if (x->state == TRANSFER_FAILED)
            return transfer_error(t, x, sending ? "probing the link to" : "probing the link from");
        *ended += x->state == TRANSFER_DONE;
        x->state = TRANSFER_IDLE;
        if (*started == count) continue;
        ++*started;
        if (sending) transport_send(t, p->to, TAG, p->out, MESSAGE_BYTES, x);
        else transport_recv(t, p->from, TAG, p->in + (size_t)i * MESSAGE_BYTES, MESSAGE_BYTES, x);
    }
    return STRAIT_OK;
}

/* `count` messages both ways. */
static strait_status burst(struct probe *p, int count)
{
    struct transport *t = p->transport;
    int started[2] = { 0, 0 }, ended[2] = { 0, 0 }, idle = 0;
    double begin = clock_s();
    strait_status st = STRAIT_OK;

    while (st == STRAIT_OK && (ended[0] < count || ended[1] < count)) {
        st = renew(p, false, count, &started[0], &ended[0]);
        if (st == STRAIT_OK) st = renew(p, true, count, &started[1], &ended[1]);
        if (t->ops->progress(t)) idle = 0;
        else if (++idle > SPINS) t->ops->wait(t, -1, 1000);
        if (st == STRAIT_OK && clock_s() - begin > bound_s)
            st = error_set(STRAIT_ERR_TIMEOUT, "probing the links to rank %d on %s and from rank "
                           "%d on %s took more than %.0f s; say --link-rate", p->to,
                           cluster_host(t->cluster, p->to), p->from,
                           cluster_host(t->cluster, p->from), bound_s);
    }
    for (int i = 0; i < DEPTH && st != STRAIT_OK; i++) {
        transport_cancel(t, &p->sends[i]);
        transport_cancel(t, &p->recvs[i]);
    }
    return st;
}

/* The same number of messages everywhere, and the slowest rank's time. */
static strait_status timed(struct probe *p, bool leads, int count, double *slowest)
{
    const struct cluster *c = p->transport->cluster;
    double mine, all[c->size];
    strait_status st = cluster_barrier(c, "the probe of the links");

    if (st != STRAIT_OK) return st;
    mine = clock_s();
    if (leads) st = burst(p, count);
    mine = clock_s() - mine;
    if ((st = cluster_agree(c, st, "probing the links"))) return st;
    st = cluster_allgather(c, &mine, sizeof mine, all, "the times of the probe");
    *slowest = 0;
    for (int r = 0; st == STRAIT_OK && r < c->size; r++) *slowest = fmax(*slowest, all[r]);
    return st;
}

static strait_status measure(struct probe *p, bool leads, double *bytes_s)
{
    double slowest = 0;
    int count = FIRST;
    strait_status st = timed(p, leads, count, &slowest); /* opens the connections, too */

    while (st == STRAIT_OK) {
        double factor = 1.2 * trusted_s / slowest;

        count = factor > 64 ? 64 * count : factor > 1 ? (int)(factor * count) + 1 : count;
        st = timed(p, leads, count, &slowest);
        *bytes_s = (double)count * MESSAGE_BYTES / slowest;
        if (slowest >= trusted_s) break;
    }
    return st;
}

strait_status bench_link_rate(const struct cluster *c, const char *transport, double *bytes_s)
{
    struct probe p = { .out = calloc(1, MESSAGE_BYTES), .in = calloc(DEPTH, MESSAGE_BYTES) };
    int node = c->places[c->rank].node;
    strait_status st, closed = STRAIT_OK;

    *bytes_s = 0;
    p.to = leader(c, (node + 1) % c->nodes);
    p.from = leader(c, (node + c->nodes - 1) % c->nodes);
    st = p.out != NULL && p.in != NULL ? STRAIT_OK : error_memory("a probe of the links");
    st = cluster_agree(c, st, "allocating messages");
    if (st == STRAIT_OK) st = transport_open(&p.transport, transport_find(transport), c);
    if (st == STRAIT_OK) st = measure(&p, c->places[c->rank].local_rank == 0, bytes_s);
    if (p.transport != NULL) closed = transport_close(p.transport, st != STRAIT_OK);
    free(p.out);
    free(p.in);
    return st != STRAIT_OK ? st : closed;
}
