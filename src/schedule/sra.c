/* SPDX-License-Identifier: Apache-2.0
 * sra.c - scatter, reduce, all-gather.
 *
 * Rank c owns chunk c of the bucket. Everyone encodes every chunk but its own and sends
 * it to its owner. The owner sums in rank order, in fp32, its own part as it is and the
 * others' decoded; divides by the number of ranks; encodes the average once with its own
 * residual; and sends that to everyone. All ranks, the owner too, apply those bytes:
 * that is what keeps replicas identical.
 * Sent per rank: 2(N-1)/N times the encoded bucket. Lossy encodings on the way: two,
 * each with error feedback.
 *
 * Poison: a rank whose values are not finite sends headers without a body; an owner that
 * got one, or whose sum is not finite, tells everyone the same way. Every rank hears
 * from every owner, so all ranks end with the same verdict. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "schedule/payload.h"
#include "schedule/schedule.h"

/* One chunk, from the view of this rank. */
struct chunk {
    size_t begin;
    struct codec_shape shape;          /* in this step */
    size_t capacity;                   /* of each message buffer below */
    uint8_t *to_owner, *from_owner;    /* this rank's payload out; the owner's payload in */
    struct transfer sent_to_owner, from_owner_transfer;
    bool applied;                      /* the owner's payload is in x->data */
};

/* One peer, as a contributor to the chunk that this rank owns. */
struct contributor {
    uint8_t *payload;
    struct transfer arrival;           /* its payload in */
    struct transfer sent_average;      /* the average out to it */
};

struct sra {
    int ranks, rank;
    struct chunk *chunks;              /* by owner */
    struct contributor *contributors;  /* by rank; this rank's own is unused */
    float *sum;                        /* of the owned chunk */
    uint8_t *average;                  /* its payload: header and body */
    int next_to_sum;                   /* contributions below it are in `sum` */
    bool reduced;                      /* the average is on its way */
    bool sum_poisoned;
};

static uint32_t tag_of(const struct exchange *x, enum payload_leg leg)
{
    return (x->step & 0xfffu) << 17 | (uint32_t)x->bucket << 1 | (uint32_t)leg;
}

static struct payload_header header_of(const struct exchange *x, int owner, enum payload_leg leg)
{
    const struct sra *s = x->state;
    const struct codec_shape *shape = &s->chunks[owner].shape;

    return (struct payload_header){
        .codec = shape->codec->id, .leg = (uint8_t)leg, .step = x->step,
        .bucket = (uint16_t)x->bucket, .chunk = (uint16_t)owner,
        .elements = (uint32_t)shape->elements, .param = shape->param,
    };
}

static bool owns_nothing(const struct sra *s, int owner)
{
    return s->chunks[owner].shape.elements == 0;
}

/* ---- set-up ---- */
static size_t sra_owned(const struct exchange *x)
{
    const struct cluster *c = x->env->cluster;

    return chunk_begin(x->elements, c->size, c->rank + 1) -
           chunk_begin(x->elements, c->size, c->rank);
}

static size_t capacity_for(const struct exchange *x, size_t elements)
{
    size_t usual = codec_shape(x->usual_codec, &x->env->settings, elements).wire_bytes;
    size_t fp32 = codec_shape(&codec_fp32, &x->env->settings, elements).wire_bytes;

    return PAYLOAD_HEADER_BYTES + (usual > fp32 ? usual : fp32);
}

static strait_status open_chunk(struct exchange *x, int owner)
{
    struct sra *s = x->state;
    struct chunk *chunk = &s->chunks[owner];
    size_t end = chunk_begin(x->elements, s->ranks, owner + 1), elements;

    chunk->begin = chunk_begin(x->elements, s->ranks, owner);
    elements = end - chunk->begin;
    chunk->capacity = capacity_for(x, elements);
    if (chunk->capacity > INT_MAX)
        return error_set(STRAIT_ERR_USAGE, "a chunk of %zu elements takes more than 2 GiB; split "
                         "the tensor or lower comm.bucket_mb", elements);
    if (owner == s->rank) return STRAIT_OK;
    chunk->to_owner = malloc(chunk->capacity);
    chunk->from_owner = malloc(chunk->capacity);
    return chunk->to_owner != NULL && chunk->from_owner != NULL ? STRAIT_OK
                                                                : error_memory("payloads");
}

static strait_status open_owner(struct exchange *x)
{
    struct sra *s = x->state;
    size_t capacity = s->chunks[s->rank].capacity;

    s->average = malloc(capacity);
    s->sum = x->env->device->allocate(sra_owned(x) * sizeof(float));
    if (s->average == NULL || s->sum == NULL) return error_memory("payloads");
    for (int r = 0; r < s->ranks; r++) {
        if (r == s->rank) continue;
        if ((s->contributors[r].payload = malloc(capacity)) == NULL)
            return error_memory("payloads");
    }
    return STRAIT_OK;
}

static strait_status sra_open(struct exchange *x)
{
    struct sra *s = calloc(1, sizeof *s);
    strait_status st = STRAIT_OK;

    if ((x->state = s) == NULL) return error_memory("an exchange");
    s->ranks = x->env->cluster->size;
    s->rank = x->env->cluster->rank;
    s->chunks = calloc((size_t)s->ranks, sizeof *s->chunks);
    s->contributors = calloc((size_t)s->ranks, sizeof *s->contributors);
    if (s->chunks == NULL || s->contributors == NULL) return error_memory("an exchange");
    for (int owner = 0; owner < s->ranks && st == STRAIT_OK; owner++) st = open_chunk(x, owner);
    return st == STRAIT_OK ? open_owner(x) : st;
}

static void sra_close(struct exchange *x)
{
    struct sra *s = x->state;

    if (s == NULL) return;
    for (int r = 0; r < s->ranks; r++) {
        if (s->chunks != NULL) {
            free(s->chunks[r].to_owner);
            free(s->chunks[r].from_owner);
        }
        if (s->contributors != NULL) free(s->contributors[r].payload);
    }
    x->env->device->release(s->sum);
    free(s->average);
    free(s->chunks);
    free(s->contributors);
    free(s);
    x->state = NULL;
}

/* ---- out ---- */
static void send_payload(struct exchange *x, int peer, enum payload_leg leg, const uint8_t *payload,
                         size_t bytes, struct transfer *transfer)
{
    x->wire_bytes[cluster_class(x->env->cluster, peer)] += bytes;
    transport_send(x->env->transport, peer, tag_of(x, leg), payload, bytes, transfer);
}

/* Header and body of `values`, or the header alone when poisoned; *bytes is its size.
 * Non-finite values found on the way poison it. */
static strait_status encode_payload(struct exchange *x, int owner, enum payload_leg leg,
                                    bool poisoned, const float *values, const float *residual_in,
                                    float *residual_out, uint8_t *payload, size_t *bytes)
{
    const struct codec_shape *shape = &((struct sra *)x->state)->chunks[owner].shape;
    struct payload_header header = header_of(x, owner, leg);
    double begin = clock_s();
    strait_status st = STRAIT_ERR_NONFINITE;

    if (!poisoned)
        st = codec_encode(shape, x->env->device->kernels, (struct codec_draw){ 0 }, values, residual_in, residual_out,
                          payload + PAYLOAD_HEADER_BYTES);
    header.poisoned = st == STRAIT_ERR_NONFINITE;
    payload_put(payload, &header);
    *bytes = PAYLOAD_HEADER_BYTES + (header.poisoned ? 0 : shape->wire_bytes);
    x->encode_s += clock_s() - begin;
    return header.poisoned ? STRAIT_OK : st;
}

static float *at(float *residual, size_t begin)
{
    return residual != NULL ? residual + begin : NULL;
}

static strait_status send_to_owner(struct exchange *x, int owner)
{
    struct chunk *chunk = &((struct sra *)x->state)->chunks[owner];
    size_t bytes;
    strait_status st = encode_payload(x, owner, LEG_TO_OWNER, x->poisoned, x->data + chunk->begin,
                                      at(x->residual[0], chunk->begin),
                                      at(x->residual[1], chunk->begin), chunk->to_owner, &bytes);

    if (st == STRAIT_OK)
        send_payload(x, owner, LEG_TO_OWNER, chunk->to_owner, bytes, &chunk->sent_to_owner);
    return st;
}

/* Of the owned chunk nothing is encoded on the way in, so nothing is left of it. */
static void clear_own_residual(struct exchange *x)
{
    const struct chunk *own = &((struct sra *)x->state)->chunks[((struct sra *)x->state)->rank];

    if (x->residual[1] != NULL)
        memset(x->residual[1] + own->begin, 0, own->shape.elements * sizeof(float));
}

static void post_receives(struct exchange *x)
{
    struct sra *s = x->state;

    for (int i = 1; i < s->ranks; i++) {
        int peer = (s->rank + i) % s->ranks;
        struct chunk *chunk = &s->chunks[peer];
        struct contributor *from = &s->contributors[peer];

        if (!owns_nothing(s, s->rank))
            transport_recv(x->env->transport, peer, tag_of(x, LEG_TO_OWNER), from->payload,
                           s->chunks[s->rank].capacity, &from->arrival);
        if (!owns_nothing(s, peer))
            transport_recv(x->env->transport, peer, tag_of(x, LEG_FROM_OWNER), chunk->from_owner,
                           chunk->capacity, &chunk->from_owner_transfer);
    }
}

static strait_status sra_start(struct exchange *x)
{
    struct sra *s = x->state;
    strait_status st = STRAIT_OK;

    for (int c = 0; c < s->ranks; c++) {
        size_t end = chunk_begin(x->elements, s->ranks, c + 1);

        s->chunks[c].shape = codec_shape(x->codec, &x->env->settings, end - s->chunks[c].begin);
        s->chunks[c].applied = owns_nothing(s, c);
    }
    s->next_to_sum = 0;
    s->sum_poisoned = false;
    s->reduced = owns_nothing(s, s->rank);
    clear_own_residual(x);
    post_receives(x);
    /* begin with the next rank: at no time do all send to one */
    for (int i = 1; i < s->ranks && st == STRAIT_OK; i++) {
        int owner = (s->rank + i) % s->ranks;

        if (!owns_nothing(s, owner)) st = send_to_owner(x, owner);
    }
    return st;
}

/* ---- in ---- */
static strait_status decode_payload(struct exchange *x, int owner, enum payload_leg leg,
                                    const uint8_t *payload, size_t bytes,
                                    enum codec_decode_mode mode, float *out, bool *poisoned)
{
    const struct codec_shape *shape = &((struct sra *)x->state)->chunks[owner].shape;
    struct payload_header due = header_of(x, owner, leg);
    double begin = clock_s();
    strait_status st = payload_check(payload, bytes, &due, poisoned);

    if (st == STRAIT_OK && !*poisoned)
        st = codec_decode(shape, x->env->device->kernels, (struct codec_draw){ 0 }, payload + PAYLOAD_HEADER_BYTES,
                          bytes - PAYLOAD_HEADER_BYTES, mode, out);
    x->decode_s += clock_s() - begin;
    return st;
}

static strait_status name_sender(const struct exchange *x, int peer, strait_status st)
{
    return error_set(st, "step %u, bucket %d, from rank %d on %s: %s", x->step, x->bucket, peer,
                     cluster_host(x->env->cluster, peer), strait_error_message());
}

/* Add rank r's contribution; false: it has not arrived. */
static bool sum_one(struct exchange *x, int r, strait_status *st)
{
    struct sra *s = x->state;
    struct chunk *own = &s->chunks[s->rank];
    struct contributor *from = &s->contributors[r];
    const struct kernels *kernels = x->env->device->kernels;
    bool poisoned = false;

    if (r == s->rank) {
        if (r == 0) memcpy(s->sum, x->data + own->begin, own->shape.elements * sizeof(float));
        else kernels->add(s->sum, x->data + own->begin, own->shape.elements);
        return true;
    }
    if (from->arrival.state == TRANSFER_ACTIVE) return false;
    if (from->arrival.state == TRANSFER_FAILED) {
        *st = transfer_error(x->env->transport, &from->arrival, "receiving from");
        return true;
    }
    *st = decode_payload(x, s->rank, LEG_TO_OWNER, from->payload, from->arrival.bytes,
                         r == 0 ? DECODE_WRITE : DECODE_ADD, s->sum, &poisoned);
    if (*st != STRAIT_OK) *st = name_sender(x, r, *st);
    s->sum_poisoned |= poisoned;
    return true;
}

/* All contributions are in: average, encode once, send to all, and apply what was sent. */
static strait_status send_average(struct exchange *x)
{
    struct sra *s = x->state;
    struct chunk *own = &s->chunks[s->rank];
    bool poisoned = s->sum_poisoned || x->poisoned;
    size_t bytes;
    strait_status st;

    if (!poisoned)
        x->env->device->kernels->divide(s->sum, own->shape.elements, (float)s->ranks);
    st = encode_payload(x, s->rank, LEG_FROM_OWNER, poisoned, s->sum, x->owner_residual[0],
                        x->owner_residual[1], s->average, &bytes);
    if (st != STRAIT_OK) return st;
    for (int i = 1; i < s->ranks; i++) {
        int peer = (s->rank + i) % s->ranks;

        send_payload(x, peer, LEG_FROM_OWNER, s->average, bytes,
                     &s->contributors[peer].sent_average);
    }
    st = decode_payload(x, s->rank, LEG_FROM_OWNER, s->average, bytes, DECODE_WRITE,
                        x->data + own->begin, &poisoned);
    x->poisoned |= poisoned;
    own->applied = true;
    s->reduced = true;
    return st;
}

static strait_status apply_average(struct exchange *x, int owner, bool *moved)
{
    struct chunk *chunk = &((struct sra *)x->state)->chunks[owner];
    const struct transfer *arrival = &chunk->from_owner_transfer;
    bool poisoned = false;
    strait_status st;

    if (chunk->applied || arrival->state == TRANSFER_ACTIVE) return STRAIT_OK;
    if (arrival->state == TRANSFER_FAILED)
        return transfer_error(x->env->transport, arrival, "receiving from");
    st = decode_payload(x, owner, LEG_FROM_OWNER, chunk->from_owner, arrival->bytes, DECODE_WRITE,
                        x->data + chunk->begin, &poisoned);
    x->poisoned |= poisoned;
    chunk->applied = *moved = true;
    return st == STRAIT_OK ? st : name_sender(x, owner, st);
}

static strait_status check_sends(struct exchange *x, bool *all_sent)
{
    struct sra *s = x->state;

    *all_sent = true;
    for (int r = 0; r < s->ranks; r++) {
        const struct transfer *sends[2] = { &s->chunks[r].sent_to_owner,
                                            &s->contributors[r].sent_average };

        for (int i = 0; i < 2; i++) {
            if (sends[i]->state == TRANSFER_FAILED)
                return transfer_error(x->env->transport, sends[i], "sending to");
            *all_sent &= sends[i]->state != TRANSFER_ACTIVE;
        }
    }
    return STRAIT_OK;
}

static strait_status sra_progress(struct exchange *x, bool *moved, bool *done)
{
    struct sra *s = x->state;
    bool all_sent, all_applied = true;
    strait_status st = STRAIT_OK;

    while (!s->reduced && s->next_to_sum < s->ranks && sum_one(x, s->next_to_sum, &st)) {
        if (st != STRAIT_OK) return st;
        s->next_to_sum++;
        *moved = true;
    }
    if (!s->reduced && s->next_to_sum == s->ranks) {
        if ((st = send_average(x))) return st;
        *moved = true;
    }
    for (int owner = 0; owner < s->ranks; owner++) {
        if (owner == s->rank) continue;
        if ((st = apply_average(x, owner, moved))) return st;
        all_applied &= s->chunks[owner].applied;
    }
    st = check_sends(x, &all_sent);
    *done = s->reduced && all_applied && all_sent;
    return st;
}

/* What rank r still owes at this point of the journey; NULL: nothing. */
static const char *owes(const struct sra *s, int r, int point)
{
    if (point == 0 && !s->reduced && s->contributors[r].arrival.state == TRANSFER_ACTIVE)
        return "its part of this rank's chunk";
    if (point == 1 && !s->chunks[r].applied) return "the average of its chunk";
    if (point == 2 && (s->chunks[r].sent_to_owner.state == TRANSFER_ACTIVE ||
                       s->contributors[r].sent_average.state == TRANSFER_ACTIVE))
        return "its taking what was sent";
    return NULL;
}

/* Only the earliest point at which someone owes something: a rank that has not sent its
 * part also keeps others from sending their averages, and they are not to blame. */
static void sra_waiting(const struct exchange *x, struct text *out)
{
    const struct sra *s = x->state;

    for (int point = 0; point < 3 && out->length == 0; point++)
        for (int r = 0; r < s->ranks; r++) {
            const char *what = r != s->rank ? owes(s, r, point) : NULL;

            if (what != NULL)
                text_add(out, "%srank %d on %s (%s)", out->length > 0 ? ", " : "", r,
                         cluster_host(x->env->cluster, r), what);
        }
}

static void sra_cancel(struct exchange *x)
{
    struct sra *s = x->state;
    struct transport *t = x->env->transport;

    for (int r = 0; s != NULL && r < s->ranks; r++) {
        transport_cancel(t, &s->chunks[r].sent_to_owner);
        transport_cancel(t, &s->chunks[r].from_owner_transfer);
        transport_cancel(t, &s->contributors[r].arrival);
        transport_cancel(t, &s->contributors[r].sent_average);
    }
}

const struct schedule schedule_sra = {
    .name = "sra", .uses_mpi = false, .owned = sra_owned, .open = sra_open,
    .start = sra_start, .progress = sra_progress, .waiting = sra_waiting, .cancel = sra_cancel,
    .close = sra_close,
};
