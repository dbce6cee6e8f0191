/* SPDX-License-Identifier: Apache-2.0
 * fingerprint.c - see fingerprint.h. */
#include "engine/fingerprint.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"

struct fingerprint {
    const struct exchange_env *env;
    int buckets;
    uint32_t step;
    uint64_t *all;            /* buckets hashes of each rank */
    uint8_t *sent;            /* this rank's, little-endian */
    uint8_t *received;        /* a slot of the same size for each rank */
    struct transfer *sends, *recvs;
};

static size_t message_bytes(const struct fingerprint *f)
{
    return 8 * (size_t)f->buckets;
}

strait_status fingerprint_open(struct fingerprint **out, const struct exchange_env *env,
                               int buckets)
{
    struct fingerprint *f = calloc(1, sizeof *f);
    size_t ranks = (size_t)env->cluster->size;

    if (f == NULL) return error_memory("fingerprints");
    f->env = env;
    f->buckets = buckets;
    f->all = calloc(ranks * (size_t)buckets, sizeof *f->all);
    f->sent = calloc(1, message_bytes(f));
    f->received = calloc(ranks, message_bytes(f));
    f->sends = calloc(ranks, sizeof *f->sends);
    f->recvs = calloc(ranks, sizeof *f->recvs);
    if (f->all == NULL || f->sent == NULL || f->received == NULL || f->sends == NULL ||
        f->recvs == NULL) {
        fingerprint_close(f);
        return error_memory("fingerprints");
    }
    *out = f;
    return STRAIT_OK;
}

void fingerprint_close(struct fingerprint *f)
{
    if (f == NULL) return;
    free(f->all);
    free(f->sent);
    free(f->received);
    free(f->sends);
    free(f->recvs);
    free(f);
}

static uint64_t hash_view(const struct view *view, uint64_t seed)
{
    for (int p = 0; p < view->count; p++) {
        const struct view_part *part = &view->parts[p];

        seed = hash_bytes(part->at, (part[1].begin - part->begin) * sizeof(float), seed);
    }
    return seed;
}

void fingerprint_start(struct fingerprint *f, const struct bucket *buckets, uint32_t step)
{
    int ranks = f->env->cluster->size, rank = f->env->cluster->rank;
    /* the top bit keeps these tags apart from every payload's */
    uint32_t tag = 1u << (TRANSPORT_TAG_BITS - 1) | (step & 0xffff);

    f->step = step;
    for (int b = 0; b < f->buckets; b++) {
        uint64_t hash = hash_view(&buckets[b].view, (uint64_t)b);

        f->all[rank * f->buckets + b] = hash;
        le64_put(f->sent + 8 * b, hash);
    }
    for (int i = 1; i < ranks; i++) {
        int peer = (rank + i) % ranks;

        transport_recv(f->env->transport, peer, tag, f->received + (size_t)peer * message_bytes(f),
                       message_bytes(f), &f->recvs[peer]);
        transport_send(f->env->transport, peer, tag, f->sent, message_bytes(f), &f->sends[peer]);
    }
}

/* How many ranks hold the same hash of bucket b as rank r. */
static int votes(const uint64_t *all, int ranks, int buckets, int b, int r)
{
    int count = 0;

    for (int other = 0; other < ranks; other++)
        count += all[other * buckets + b] == all[r * buckets + b];
    return count;
}

int fingerprint_compare(const uint64_t *all, int ranks, int buckets, const struct cluster *cluster,
                        struct text *why)
{
    for (int b = 0; b < buckets; b++) {
        int majority = 0;

        for (int r = 1; r < ranks; r++)
            if (votes(all, ranks, buckets, b, r) > votes(all, ranks, buckets, b, majority))
                majority = r;
        if (votes(all, ranks, buckets, b, majority) == ranks) continue;
        text_add(why, "bucket %d: ", b);
        for (int r = 0, listed = 0; r < ranks; r++)
            if (all[r * buckets + b] != all[majority * buckets + b])
                text_add(why, "%srank %d on %s", listed++ > 0 ? ", " : "", r,
                         cluster_host(cluster, r));
        text_add(why, " against rank %d and %d like it", majority,
                 votes(all, ranks, buckets, b, majority) - 1);
        return b;
    }
    return -1;
}

static strait_status compare(struct fingerprint *f)
{
    int ranks = f->env->cluster->size;
    struct text why = { 0 };
    strait_status st = STRAIT_OK;

    for (int r = 0; r < ranks; r++)
        for (int b = 0; r != f->env->cluster->rank && b < f->buckets; b++)
            f->all[r * f->buckets + b] =
                le64_get(f->received + (size_t)r * message_bytes(f) + 8 * (size_t)b);
    if (fingerprint_compare(f->all, ranks, f->buckets, f->env->cluster, &why) >= 0)
        st = error_set(STRAIT_ERR_DIVERGED, "step %u: the averaged gradients differ in %s; "
                       "memory or network damaged them, or the nodes run different builds",
                       f->step, text_string(&why));
    text_free(&why);
    return st;
}

strait_status fingerprint_progress(struct fingerprint *f, bool *moved, bool *done)
{
    for (int r = 0; r < f->env->cluster->size; r++) {
        const struct transfer *send = &f->sends[r], *recv = &f->recvs[r];

        if (send->state == TRANSFER_FAILED)
            return transfer_error(f->env->transport, send, "sending a fingerprint to");
        if (recv->state == TRANSFER_FAILED)
            return transfer_error(f->env->transport, recv, "receiving a fingerprint from");
        if (send->state == TRANSFER_ACTIVE || recv->state == TRANSFER_ACTIVE) return STRAIT_OK;
        if (recv->state == TRANSFER_DONE && recv->bytes != message_bytes(f))
            return error_set(STRAIT_ERR_FORMAT, "the fingerprint of rank %d on %s has %zu bytes, "
                             "due are %zu", r, cluster_host(f->env->cluster, r), recv->bytes,
                             message_bytes(f));
    }
    *moved = *done = true;
    return compare(f);
}

void fingerprint_waiting(const struct fingerprint *f, struct text *out)
{
    for (int r = 0; r < f->env->cluster->size; r++)
        if (f->recvs[r].state == TRANSFER_ACTIVE || f->sends[r].state == TRANSFER_ACTIVE)
            text_add(out, "%srank %d on %s (its fingerprint)", out->length > 0 ? ", " : "", r,
                     cluster_host(f->env->cluster, r));
}

void fingerprint_cancel(struct fingerprint *f)
{
    for (int r = 0; f != NULL && r < f->env->cluster->size; r++) {
        transport_cancel(f->env->transport, &f->sends[r]);
        transport_cancel(f->env->transport, &f->recvs[r]);
    }
}
