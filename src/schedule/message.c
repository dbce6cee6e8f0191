/* SPDX-License-Identifier: Apache-2.0
 * message.c - see message.h. */
#include "schedule/message.h"

#include <string.h>

#include "base/clock.h"
#include "base/random.h"

struct slice slice_of(const struct exchange *x, int slices, int c)
{
    struct slice s = { .owner = c, .begin = slice_begin(x->elements, slices, c) };
    size_t end = slice_begin(x->elements, slices, c + 1);

    s.shape = codec_shape(x->bucket->codec, &x->env->settings, end - s.begin);
    if (x->bucket->codec->factored) s.shape.variant = x->bucket->factor;
    return s;
}

void slice_in_fp32(const struct exchange *x, struct slice *slice)
{
    slice->shape = codec_shape(&codec_fp32, &x->env->settings, slice->shape.elements);
}

size_t message_fp32_capacity(const struct exchange *x, size_t n)
{
    return PAYLOAD_HEADER_BYTES + codec_shape(&codec_fp32, &x->env->settings, n).wire_bytes;
}

size_t message_capacity(const struct exchange *x, size_t n)
{
    size_t usual = PAYLOAD_HEADER_BYTES +
                   codec_shape(x->usual_codec, &x->env->settings, n).wire_bytes;
    size_t fp32 = x->fp32_too ? message_fp32_capacity(x, n) : 0;

    return usual > fp32 ? usual : fp32;
}

static struct payload_header header_of(const struct exchange *x, const struct slice *slice,
                                       uint8_t leg)
{
    return (struct payload_header){
        .codec = slice->shape.codec->id, .leg = leg, .step = x->bucket->step,
        .bucket = (uint16_t)x->bucket->index, .owner = (uint16_t)slice->owner, .tile = x->tile,
        .elements = (uint32_t)slice->shape.elements, .param = slice->shape.param,
        .variant = slice->shape.variant, .checked = x->env->checksum,
    };
}

struct codec_draw message_draw(uint64_t seed, uint32_t step, int bucket, int rank, size_t first)
{
    uint64_t key = random_mix(random_u64(seed, step, (uint64_t)bucket));

    return (struct codec_draw){ .key = key, .noise = random_mix(key ^ ((uint64_t)rank + 1)),
                                .first = first };
}

static struct codec_draw draw_of(const struct exchange *x, const struct slice *slice)
{
    return message_draw(x->env->seed, x->bucket->step, x->bucket->index, x->env->cluster->rank,
                        x->begin + slice->begin);
}

/* NULL without error feedback. */
static uint8_t *residual_at(const struct exchange *x, const struct slice *slice,
                            enum residual_kind kind, int row)
{
    const struct bucket *b = x->bucket;

    if (b->residual[0] == NULL) return NULL;
    if (kind == RESIDUAL_OWN)
        return b->residual[row] + (x->begin + slice->begin) * b->residual_size;
    return b->owner_residual[row] +
           (bucket_owned_before(b, x->env, x->tile) + slice->owned_before) * b->residual_size;
}

static strait_status encode(const struct exchange *x, const struct slice *slice,
                            const float *values, const void *residual_in, void *residual_out,
                            uint8_t *body)
{
    return codec_encode(&slice->shape, x->env->device->kernels, draw_of(x, slice), values,
                        residual_in, residual_out, body);
}

/* The residual on either side of encoding is the bucket's own, if it has one as floats. */
static strait_status encode_with_residual(const struct exchange *x, const struct slice *slice,
                                          const float *values, enum residual_kind kind,
                                          uint8_t *body)
{
    const struct kernels *kernels = x->env->device->kernels;
    const uint8_t *before = residual_at(x, slice, kind, 0);
    uint8_t *after = residual_at(x, slice, kind, 1);
    float *residual = x->work->residual;
    size_t n = slice->shape.elements;
    strait_status st;

    if (!slice->shape.codec->lossy) return encode(x, slice, values, NULL, NULL, body);
    if (before != NULL && !x->env->residual_bf16)
        return encode(x, slice, values, before, after, body);
    if (before == NULL) memset(residual, 0, n * sizeof *residual);
    else kernels->bf16.decode(before, n, NULL, residual);
    st = encode(x, slice, values, residual, residual, body);
    if (after != NULL) kernels->to_bf16(residual, n, after);
    return st;
}

/* Where this rank sent an element, its momentum starts anew: old gradients go on in what was
 * held back alone. Every element is encoded once a step by every rank (hierarchical:
 * by one of every node). */
static void mask_momentum(struct exchange *x, const struct slice *slice, const uint8_t *wire)
{
    const struct codec *codec = slice->shape.codec;

    if (x->bucket->velocity[1] != NULL && codec->clear_sent != NULL)
        codec->clear_sent(&slice->shape, draw_of(x, slice), wire,
                          x->bucket->velocity[1] + x->begin + slice->begin);
}

strait_status message_encode(struct exchange *x, const struct slice *slice, uint8_t leg,
                             bool poisoned, const float *values, enum residual_kind kind,
                             uint8_t *message, size_t *bytes)
{
    struct payload_header header = header_of(x, slice, leg);
    double begin = clock_s();
    strait_status st = STRAIT_ERR_NONFINITE;

    if (!poisoned)
        st = encode_with_residual(x, slice, values, kind, message + PAYLOAD_HEADER_BYTES);
    if (st == STRAIT_OK) mask_momentum(x, slice, message + PAYLOAD_HEADER_BYTES);
    header.poisoned = st == STRAIT_ERR_NONFINITE;
    *bytes = PAYLOAD_HEADER_BYTES + (header.poisoned ? 0 : slice->shape.wire_bytes);
    payload_put(message, &header, *bytes);
    x->encode_s += clock_s() - begin;
    return header.poisoned ? STRAIT_OK : st;
}

void message_clear_residual(struct exchange *x, const struct slice *slice)
{
    if (x->bucket->residual[0] != NULL && slice->shape.codec->lossy)
        memset(residual_at(x, slice, RESIDUAL_OWN, 1), 0,
               slice->shape.elements * x->bucket->residual_size);
}

strait_status message_decode(struct exchange *x, const struct slice *slice, uint8_t leg, int peer,
                             const uint8_t *message, size_t bytes, enum codec_decode_mode mode,
                             float *out, bool *poisoned)
{
    struct payload_header due = header_of(x, slice, leg);
    double begin = clock_s();
    strait_status st = payload_check(message, bytes, &due, poisoned);

    if (st == STRAIT_OK && !*poisoned)
        st = codec_decode(&slice->shape, x->env->device->kernels, draw_of(x, slice),
                          message + PAYLOAD_HEADER_BYTES, bytes - PAYLOAD_HEADER_BYTES, mode, out);
    x->decode_s += clock_s() - begin;
    if (st == STRAIT_OK) return STRAIT_OK;
    return error_set(st, "step %u, bucket %d, from rank %d on %s: %s", x->bucket->step,
                     x->bucket->index, peer, cluster_host(x->env->cluster, peer),
                     strait_error_message());
}

strait_status message_apply(struct exchange *x, const struct slice *slice, uint8_t leg, int peer,
                            const uint8_t *message, size_t bytes)
{
    const struct view *view = &x->bucket->view;
    size_t begin = x->begin + slice->begin, n = slice->shape.elements;
    float *out = view_target(view, begin, n, x->work->scratch);
    bool poisoned = false;
    strait_status st = message_decode(x, slice, leg, peer, message, bytes, DECODE_WRITE, out,
                                      &poisoned);

    x->poisoned |= poisoned;
    if (st == STRAIT_OK && !poisoned) view_written(view, begin, n, out);
    return st;
}

const float *slice_gradient(struct exchange *x, const struct slice *slice)
{
    return view_read(&x->bucket->view, x->begin + slice->begin, slice->shape.elements,
                     x->work->scratch);
}

const float *slice_momentum(struct exchange *x, const struct slice *slice, const float *gradient)
{
    if (x->bucket->codec->factored) return gradient; /* factors are made of what had it */
    return bucket_momentum(x->bucket, x->env, x->begin + slice->begin, slice->shape.elements,
                           gradient);
}

const float *slice_values(struct exchange *x, const struct slice *slice)
{
    return slice_momentum(x, slice, slice_gradient(x, slice));
}

/* The top bit is the fingerprint's; 21 bits of the sequence outlast any window. */
static uint32_t tag_of(const struct exchange *x, uint8_t leg)
{
    return (x->sequence & 0x1fffffu) << 8 | leg;
}

void message_send(struct exchange *x, int peer, uint8_t leg, const uint8_t *message, size_t bytes,
                  struct transfer *transfer)
{
    x->wire_bytes[cluster_class(x->env->cluster, peer)] += bytes;
    transport_send(x->env->transport, peer, tag_of(x, leg), message, bytes, transfer);
}

void message_recv(struct exchange *x, int peer, uint8_t leg, uint8_t *message, size_t capacity,
                  struct transfer *transfer)
{
    transport_recv(x->env->transport, peer, tag_of(x, leg), message, capacity, transfer);
}

bool message_ended(struct exchange *x, const struct transfer *transfer, const char *what,
                   strait_status *st)
{
    enum transfer_state state = transfer_state(transfer);

    if (state == TRANSFER_ACTIVE) return false;
    if (state == TRANSFER_FAILED)
        *st = transfer_error(x->env->transport, transfer, what);
    return true;
}
