/* SPDX-License-Identifier: Apache-2.0
 * hierarchical.c - full precision within a node, the codec between nodes.
 *
 * A tile has as many lanes as the largest node has ranks, and a lane has a slice per node.
 * On every node one rank drives a lane: local rank l drives lane l, and on a node with
 * fewer ranks also lanes l + its size and so on. For each lane,
 *   1. within the node: all send their gradients of it to its driver, which sums them in
 *      the order of local ranks (a reduce-scatter, in fp32);
 *   2. between nodes: the drivers, one per node, exchange their node's sums as a group
 *      (group.h), so that every local rank drives the network;
 *   3. within the node: the driver passes the averages on as they came, already encoded, so
 *      that all ranks apply the same bytes (an all-gather).
 * Sent per node of M: 2(M-1)/M times the encoded tile, however many ranks it has. What the
 * codec fails to send is the node's and is kept by the lane's driver, and so is momentum. On a
 * single node
 * nothing crosses a network, and all is fp32.
 * (ZeRO++, arXiv 2306.10209, and HiTopKComm, arXiv 2010.10458, compress only between nodes.)
 *
 * Poison: a contribution without a body poisons its slice of the node's sum. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "schedule/group.h"

enum { MAX_LANES = 64 }; /* lanes are numbered in 6 bits of the leg */
enum { LEG_WITHIN = 64, LEG_WITHIN_AVERAGE = 192 }; /* tags within a node, plus the lane */

struct parcel {
    uint8_t *message;
    size_t bytes;
    struct transfer transfer;
};

/* A lane that this rank drives. */
struct driven {
    struct group group;       /* its counterparts, by node */
    struct parcel *in;        /* by [node][local rank]: parts of that node's slice */
    struct transfer *passed;  /* by [node][local rank]: the average on its way on */
    float *partial, *own;     /* the sum of another node's slice, of this node's */
    bool poisoned;            /* the sum under way */
    int slices, locals;       /* slices summed; of the next, local ranks summed */
    int averages;             /* passed on */
};

/* A lane that another rank of the node drives. */
struct ridden {
    int lane, driver;
    struct parcel *out;        /* by node; once it has left, its message is the average's */
    struct transfer *averages; /* by node */
    int awaited, applied;      /* averages that may come, that came */
};

struct hierarchical {
    int nodes, node, locals, local, lanes;
    int *ranks;                    /* by local rank */
    int driven_count, ridden_count;
    struct driven *driven;         /* ascending */
    struct ridden *ridden;
    size_t capacity;               /* of a slice in fp32 as a message */
    size_t ridden_capacity;        /* of that, and of any average's message */
};

/* ---- who drives what ---- */
static int lanes_of(const struct cluster *c)
{
    int lanes = 0;

    for (int r = 0; r < c->size; r++)
        if (c->places[r].local_size > lanes) lanes = c->places[r].local_size;
    return lanes;
}

static int rank_at(const struct cluster *c, int node, int local_rank)
{
    for (int r = 0; r < c->size; r++)
        if (c->places[r].node == node && c->places[r].local_rank == local_rank) return r;
    return -1; /* there is none: nodes and local ranks are counted without gaps */
}

static int driver_on(const struct cluster *c, int node, int lane)
{
    return rank_at(c, node, lane % c->places[rank_at(c, node, 0)].local_size);
}

static int hierarchical_slices(const struct cluster *c)
{
    return lanes_of(c) * c->nodes;
}

/* Of a tile of n elements, what this rank owns in its lanes before `lane`. */
static size_t owned_before(const struct cluster *c, size_t n, int lane)
{
    const struct place *mine = &c->places[c->rank];
    int slices = hierarchical_slices(c);
    size_t sum = 0;

    for (int l = mine->local_rank; l < lane; l += mine->local_size)
        sum += slice_begin(n, slices, l * c->nodes + mine->node + 1) -
               slice_begin(n, slices, l * c->nodes + mine->node);
    return sum;
}

static size_t hierarchical_owned(const struct cluster *c, size_t n)
{
    return owned_before(c, n, lanes_of(c));
}

/* Slices are summed and sent beginning with the next node's: never do all send to one. */
static int node_in_turn(const struct hierarchical *h, int turn)
{
    return (h->node + 1 + turn) % h->nodes;
}

/* The slice of a lane that belongs to a node, as it travels within this node. */
static struct slice slice_within(const struct exchange *x, int lane, int node, int driver)
{
    const struct hierarchical *h = x->state;
    struct slice s = slice_of(x, h->lanes * h->nodes, lane * h->nodes + node);

    s.owner = driver;
    slice_in_fp32(x, &s);
    return s;
}

/* ---- set-up ---- */
static struct parcel *allocate_parcels(size_t count, size_t capacity)
{
    struct parcel *parcels = calloc(count + 1, sizeof *parcels);

    for (size_t i = 0; parcels != NULL && i < count; i++)
        if ((parcels[i].message = malloc(capacity)) == NULL) {
            while (i-- > 0) free(parcels[i].message);
            free(parcels);
            return NULL;
        }
    return parcels;
}

static void free_parcels(struct parcel *parcels)
{
    for (int i = 0; parcels != NULL && parcels[i].message != NULL; i++) free(parcels[i].message);
    free(parcels);
}

static strait_status open_driven(struct exchange *x, struct driven *d, int lane)
{
    const struct hierarchical *h = x->state;
    const struct device *device = x->env->device;
    struct group *g = &d->group;
    size_t pairs = (size_t)h->nodes * (size_t)h->locals;

    g->count = h->nodes;
    g->me = h->node;
    g->lane = lane;
    g->slices = h->lanes * h->nodes;
    g->exact = h->nodes == 1;
    g->members = calloc((size_t)h->nodes, sizeof *g->members);
    d->in = allocate_parcels(pairs, h->capacity);
    d->passed = calloc(pairs, sizeof *d->passed);
    d->partial = device->allocate(h->capacity);
    d->own = device->allocate(h->capacity);
    if (g->members == NULL || d->in == NULL || d->passed == NULL || d->partial == NULL ||
        d->own == NULL)
        return error_memory("an exchange");
    for (int node = 0; node < h->nodes; node++)
        g->members[node].rank = driver_on(x->env->cluster, node, lane);
    return group_open(x, g);
}

static strait_status open_ridden(struct exchange *x, struct ridden *r, int lane)
{
    const struct hierarchical *h = x->state;

    r->lane = lane;
    r->driver = h->ranks[lane % h->locals];
    r->out = allocate_parcels((size_t)h->nodes, h->ridden_capacity);
    r->averages = calloc((size_t)h->nodes, sizeof *r->averages);
    return r->out == NULL || r->averages == NULL ? error_memory("messages") : STRAIT_OK;
}

static strait_status place_self(struct exchange *x)
{
    struct hierarchical *h = x->state;
    const struct cluster *c = x->env->cluster;
    const struct place *mine = &c->places[c->rank];
    size_t slices = (size_t)hierarchical_slices(c), largest = (x->capacity + slices - 1) / slices;

    h->nodes = c->nodes;
    h->node = mine->node;
    h->locals = mine->local_size;
    h->local = mine->local_rank;
    h->lanes = lanes_of(c);
    h->capacity = message_fp32_capacity(x, largest);
    h->ridden_capacity = message_capacity(x, largest);
    if (h->ridden_capacity < h->capacity) h->ridden_capacity = h->capacity;
    if (h->lanes > MAX_LANES)
        return error_set(STRAIT_ERR_UNSUPPORTED, "comm.schedule = \"hierarchical\" takes up to %d "
                         "ranks on a node; \"sra\" takes any number", MAX_LANES);
    h->ranks = calloc((size_t)h->locals, sizeof *h->ranks);
    h->driven = calloc((size_t)h->lanes, sizeof *h->driven);
    h->ridden = calloc((size_t)h->lanes, sizeof *h->ridden);
    if (h->ranks == NULL || h->driven == NULL || h->ridden == NULL)
        return error_memory("an exchange");
    for (int l = 0; l < h->locals; l++) h->ranks[l] = rank_at(c, h->node, l);
    return STRAIT_OK;
}

static strait_status hierarchical_open(struct exchange *x)
{
    struct hierarchical *h = calloc(1, sizeof *h);
    strait_status st;

    if ((x->state = h) == NULL) return error_memory("an exchange");
    st = place_self(x);
    for (int lane = 0; lane < h->lanes && st == STRAIT_OK; lane++)
        if (lane % h->locals == h->local) st = open_driven(x, &h->driven[h->driven_count++], lane);
        else st = open_ridden(x, &h->ridden[h->ridden_count++], lane);
    return st;
}

static void hierarchical_close(struct exchange *x)
{
    struct hierarchical *h = x->state;

    if (h == NULL) return;
    for (int i = 0; i < h->driven_count; i++) {
        group_close(x, &h->driven[i].group);
        free_parcels(h->driven[i].in);
        free(h->driven[i].passed);
        x->env->device->release(h->driven[i].partial);
        x->env->device->release(h->driven[i].own);
    }
    for (int i = 0; i < h->ridden_count; i++) {
        free_parcels(h->ridden[i].out);
        free(h->ridden[i].averages);
    }
    free(h->ranks);
    free(h->driven);
    free(h->ridden);
    free(h);
    x->state = NULL;
}

/* ---- 1. to the driver ---- */
static void begin_driven(struct exchange *x, struct driven *d)
{
    const struct hierarchical *h = x->state;

    d->group.owned_before = owned_before(x->env->cluster, x->elements, d->group.lane);
    group_begin(x, &d->group);
    d->slices = d->locals = d->averages = 0;
    d->poisoned = false;
    for (int turn = 0; turn < h->nodes; turn++) {
        int node = node_in_turn(h, turn);

        for (int l = 0; l < h->locals; l++) {
            struct parcel *in = &d->in[node * h->locals + l];

            d->passed[node * h->locals + l].state = TRANSFER_IDLE;
            if (l == h->local || d->group.members[node].slice.shape.elements == 0) continue;
            message_recv(x, h->ranks[l], (uint8_t)(LEG_WITHIN + d->group.lane), in->message,
                         h->capacity, &in->transfer);
        }
    }
}

static strait_status ride(struct exchange *x, struct ridden *r)
{
    const struct hierarchical *h = x->state;
    uint8_t leg = (uint8_t)(LEG_WITHIN + r->lane);
    strait_status st = STRAIT_OK;

    r->awaited = r->applied = 0;
    for (int turn = 0; turn < h->nodes && st == STRAIT_OK; turn++) {
        int node = node_in_turn(h, turn);
        struct slice s = slice_within(x, r->lane, node, r->driver);
        struct parcel *out = &r->out[node];

        out->transfer.state = r->averages[node].state = TRANSFER_IDLE;
        if (s.shape.elements == 0) continue;
        st = message_encode(x, &s, leg, false, slice_gradient(x, &s), RESIDUAL_OWN, out->message,
                            &out->bytes);
        if (st == STRAIT_OK)
            message_send(x, r->driver, leg, out->message, out->bytes, &out->transfer);
    }
    return st;
}

static strait_status hierarchical_start(struct exchange *x)
{
    struct hierarchical *h = x->state;
    strait_status st = STRAIT_OK;

    for (int i = 0; i < h->driven_count; i++) begin_driven(x, &h->driven[i]);
    for (int i = 0; i < h->ridden_count && st == STRAIT_OK; i++) st = ride(x, &h->ridden[i]);
    return st;
}

/* Add one local rank's part to the sum; false: it has not arrived. */
static bool add_local(struct exchange *x, struct driven *d, int node, float *sum,
                      strait_status *st)
{
    const struct hierarchical *h = x->state;
    struct slice s = slice_within(x, d->group.lane, node, x->env->cluster->rank);
    const struct parcel *in = &d->in[node * h->locals + d->locals];
    bool first = d->locals == 0, poisoned = false;

    if (d->locals == h->local) {
        const float *gradient = slice_gradient(x, &s);
        double begin = clock_s();

        if (first) memcpy(sum, gradient, s.shape.elements * sizeof *sum);
        else x->env->device->kernels->add(sum, gradient, s.shape.elements);
        x->decode_s += clock_s() - begin;
        return true;
    }
    if (!message_ended(x, &in->transfer, "receiving from", st)) return false;
    if (*st == STRAIT_OK)
        *st = message_decode(x, &s, (uint8_t)(LEG_WITHIN + d->group.lane), h->ranks[d->locals],
                             in->message, in->transfer.bytes,
                             first ? DECODE_WRITE : DECODE_ADD, sum, &poisoned);
    d->poisoned |= poisoned;
    return true;
}

/* Sum slice after slice over the node and give each to the group. */
static strait_status sum_locals(struct exchange *x, struct driven *d, bool *moved)
{
    const struct hierarchical *h = x->state;
    strait_status st = STRAIT_OK;

    while (d->slices < h->nodes && st == STRAIT_OK) {
        int node = node_in_turn(h, d->slices);
        float *sum = node == h->node ? d->own : d->partial;

        if (d->group.members[node].slice.shape.elements == 0) d->locals = h->locals;
        while (d->locals < h->locals && st == STRAIT_OK) {
            if (!add_local(x, d, node, sum, &st)) return st;
            d->locals++;
            *moved = true;
        }
        if (st == STRAIT_OK)
            st = group_contribute(x, &d->group, node,
                                  slice_momentum(x, &d->group.members[node].slice, sum),
                                  d->poisoned);
        d->poisoned = false;
        d->locals = 0;
        d->slices++;
    }
    return st;
}

/* ---- 3. averages within the node: in the order of nodes, as their receives stand ---- */
static void pass_on(struct exchange *x, struct driven *d, bool *moved)
{
    const struct hierarchical *h = x->state;
    const uint8_t *message;
    size_t bytes;

    for (; d->averages < h->nodes; d->averages++, *moved = true) {
        int node = node_in_turn(h, d->averages);

        if (d->group.members[node].slice.shape.elements == 0) continue;
        if ((message = group_average(&d->group, node, &bytes)) == NULL) return;
        for (int i = 1; i < h->locals; i++) {
            int l = (h->local + i) % h->locals;

            message_send(x, h->ranks[l], (uint8_t)(LEG_WITHIN_AVERAGE + d->group.lane), message,
                         bytes, &d->passed[node * h->locals + l]);
        }
    }
}

static strait_status await_averages(struct exchange *x, struct ridden *r)
{
    const struct hierarchical *h = x->state;
    strait_status st = STRAIT_OK;

    for (; r->awaited < h->nodes; r->awaited++) {
        int node = node_in_turn(h, r->awaited);
        struct parcel *out = &r->out[node];

        if (slice_of(x, h->lanes * h->nodes, r->lane * h->nodes + node).shape.elements == 0)
            continue;
        if (!message_ended(x, &out->transfer, "sending to", &st) || st != STRAIT_OK) break;
        message_recv(x, r->driver, (uint8_t)(LEG_WITHIN_AVERAGE + r->lane), out->message,
                     h->ridden_capacity, &r->averages[node]);
    }
    return st;
}

static strait_status apply_averages(struct exchange *x, struct ridden *r, bool *moved)
{
    const struct hierarchical *h = x->state;
    strait_status st = await_averages(x, r);

    for (; r->applied < r->awaited && st == STRAIT_OK; r->applied++, *moved = true) {
        int node = node_in_turn(h, r->applied);
        const struct transfer *average = &r->averages[node];
        struct slice s = slice_of(x, h->lanes * h->nodes, r->lane * h->nodes + node);

        if (s.shape.elements == 0) continue;
        if (!message_ended(x, average, "receiving from", &st)) return st;
        s.owner = driver_on(x->env->cluster, node, r->lane);
        if (h->nodes == 1) slice_in_fp32(x, &s);
        if (st == STRAIT_OK)
            st = message_apply(x, &s, (uint8_t)(LEG_FROM_OWNER + r->lane), r->driver,
                               r->out[node].message, average->bytes);
    }
    return st;
}

static strait_status driven_progress(struct exchange *x, struct driven *d, bool *moved,
                                     bool *done)
{
    const struct hierarchical *h = x->state;
    strait_status st = sum_locals(x, d, moved);

    if (st == STRAIT_OK) st = group_progress(x, &d->group, moved, done);
    if (st == STRAIT_OK) pass_on(x, d, moved);
    *done &= d->averages == h->nodes;
    for (int i = 0; i < h->nodes * h->locals && st == STRAIT_OK; i++)
        *done &= message_ended(x, &d->passed[i], "sending to", &st);
    return st;
}

static strait_status ridden_progress(struct exchange *x, struct ridden *r, bool *moved,
                                     bool *done)
{
    const struct hierarchical *h = x->state;
    strait_status st = apply_averages(x, r, moved);

    *done = r->applied == h->nodes;
    for (int node = 0; node < h->nodes && st == STRAIT_OK; node++)
        *done &= message_ended(x, &r->out[node].transfer, "sending to", &st);
    return st;
}

static strait_status hierarchical_progress(struct exchange *x, bool *moved, bool *done)
{
    struct hierarchical *h = x->state;
    bool lane_done = true;
    strait_status st = STRAIT_OK;

    *done = true;
    for (int i = 0; i < h->driven_count && st == STRAIT_OK; i++, *done &= lane_done)
        st = driven_progress(x, &h->driven[i], moved, &lane_done);
    for (int i = 0; i < h->ridden_count && st == STRAIT_OK; i++, *done &= lane_done)
        st = ridden_progress(x, &h->ridden[i], moved, &lane_done);
    return st;
}

/* ---- what is waited for: parts within the node, then the group, then what follows ---- */
static void owing(const struct exchange *x, int rank, const char *what, struct text *out)
{
    text_add(out, "%srank %d on %s (%s)", out->length > 0 ? ", " : "", rank,
             cluster_host(x->env->cluster, rank), what);
}

static void hierarchical_waiting(const struct exchange *x, struct text *out)
{
    const struct hierarchical *h = x->state;

    for (int l = 0; l < h->locals; l++)
        for (int i = 0; i < h->driven_count * h->nodes; i++)
            if (h->driven[i / h->nodes].in[i % h->nodes * h->locals + l].transfer.state ==
                TRANSFER_ACTIVE) {
                owing(x, h->ranks[l], "its part of the node's sum", out);
                break;
            }
    for (int i = 0; i < h->driven_count && out->length == 0; i++)
        group_waiting(x, &h->driven[i].group, out);
    for (int i = 0; i < h->ridden_count && out->length == 0; i++)
        if (h->ridden[i].applied < h->nodes)
            owing(x, h->ridden[i].driver, "the averages of its lane", out);
    if (out->length == 0) text_add(out, "ranks of this node to take what they were sent");
}

static void hierarchical_cancel(struct exchange *x)
{
    struct hierarchical *h = x->state;
    struct transport *t = x->env->transport;

    for (int i = 0; h != NULL && i < h->driven_count; i++) {
        group_cancel(x, &h->driven[i].group);
        for (int j = 0; j < h->nodes * h->locals; j++) {
            transport_cancel(t, &h->driven[i].in[j].transfer);
            transport_cancel(t, &h->driven[i].passed[j]);
        }
    }
    for (int i = 0; h != NULL && i < h->ridden_count; i++)
        for (int node = 0; node < h->nodes; node++) {
            transport_cancel(t, &h->ridden[i].out[node].transfer);
            transport_cancel(t, &h->ridden[i].averages[node]);
        }
}

const struct schedule schedule_hierarchical = {
    .name = "hierarchical", .uses_mpi = false, .slices = hierarchical_slices,
    .owned = hierarchical_owned, .open = hierarchical_open, .start = hierarchical_start,
    .progress = hierarchical_progress, .waiting = hierarchical_waiting,
    .cancel = hierarchical_cancel, .close = hierarchical_close,
};
