/* SPDX-License-Identifier: Apache-2.0
 * target.c - see target.h.
 *
 * A decoder's input is 8 bytes that say the shape, then the payload, which stands in a buffer of
 * the exact size for AddressSanitizer to see each byte beyond. All instruction sets must agree
 * on whether they take it, and on every bit of what they make of it; and that is finite. */
#include "fuzz/target.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "codec/codec.h"
#include "schedule/payload.h"

static const struct codec *chosen; /* NULL: headers */

const char *target_name(int i)
{
    for (int c = 0; codec_table[c] != NULL; c++)
        if (!codec_table[c]->factored && i-- == 0) return codec_table[c]->name; /* others: fp32 */
    return i == 0 ? "header" : NULL;
}

int target_choose(const char *name)
{
    chosen = codec_find(name);
    return chosen != NULL || strcmp(name, "header") == 0;
}

static void must(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "%s: %s\n", chosen != NULL ? chosen->name : "header", what);
    abort();
}

/* ---- a decoder ---- */
enum { SHAPE_BYTES = 8 };

struct input {
    struct codec_shape shape;
    struct codec_draw draw;
    uint8_t *wire;
    size_t bytes;
};

static struct input input_of(const uint8_t *data, size_t size)
{
    size_t n = le16_get(data) & 0x3ff, left = size - SHAPE_BYTES, copied;
    struct codec_settings settings = {
        .block = 8 * (1 + data[2] % 32u), .topk_ratio = (1 + data[3]) / 256.0,
        .randk_ratio = (1 + data[3]) / 256.0, .topk_values = (enum topk_values)(data[4] & 3),
    };
    struct input in = { .draw = { .key = data[5], .first = data[6] } };

    if (data[1] == 0x81) n += 65536; /* seldom: it takes long */
    if (data[4] & 4) settings.topk_ratio = settings.randk_ratio = 1e-6;
    in.shape = codec_shape(chosen, &settings, n);
    in.bytes = in.shape.wire_bytes;
    if (data[7] == 1) in.bytes++; /* of the wrong size */
    if (data[7] == 2 && in.bytes > 0) in.bytes--;
    in.wire = calloc(in.bytes > 0 ? in.bytes : 1, 1);
    must(in.wire != NULL, "no memory");
    copied = left < in.bytes ? left : in.bytes;
    memcpy(in.wire, data + SHAPE_BYTES, copied);
    return in;
}

static bool decode(const struct input *in, const struct kernels *kernels,
                   enum codec_decode_mode mode, float *out)
{
    strait_status st = codec_decode(&in->shape, kernels, in->draw, in->wire, in->bytes, mode, out);

    must(st == STRAIT_OK || st == STRAIT_ERR_FORMAT, "a status of another kind");
    must(st != STRAIT_OK || in->bytes == in->shape.wire_bytes, "the wrong size is taken");
    return st == STRAIT_OK;
}

static float *floats(size_t n)
{
    float *x = calloc(n > 0 ? n : 1, sizeof *x);

    must(x != NULL, "no memory");
    return x;
}

static void run_decoder(const uint8_t *data, size_t size)
{
    struct input in = input_of(data, size);
    size_t n = in.shape.elements;
    float *first = floats(n), *out = floats(n);
    bool taken = decode(&in, kernels_tables()[0], DECODE_WRITE, first);

    for (size_t i = 0; taken && i < n; i++) must(isfinite(first[i]), "a value is not finite");
    for (const struct kernels *const *k = kernels_tables(); *k != NULL; k++) {
        must(decode(&in, *k, DECODE_WRITE, out) == taken, "instruction sets disagree");
        must(!taken || memcmp(out, first, n * sizeof *out) == 0, "instruction sets differ");
        memset(out, 0, n * sizeof *out);
        must(decode(&in, *k, DECODE_ADD, out) == taken, "adding and writing disagree");
        for (size_t i = 0; taken && i < n; i++)
            must(out[i] == first[i], "adding and writing differ");
    }
    free(first);
    free(out);
    free(in.wire);
}

/* ---- headers: what is taken is what would be written, but for the mark of poison ---- */
static void run_header(const uint8_t *data, size_t size)
{
    struct payload_header due = { 0 };
    uint8_t *written;
    bool poisoned = false;
    strait_status st;

    /* read what is due from the input itself, so that most of it can be right */
    if (size >= PAYLOAD_HEADER_BYTES)
        due = (struct payload_header){
            .codec = data[5], .checked = data[6] & 2, .leg = data[7], .step = le32_get(data + 8),
            .bucket = le16_get(data + 12), .owner = le16_get(data + 14),
            .tile = le32_get(data + 16), .elements = le32_get(data + 20),
            .param = le32_get(data + 24), .variant = data[28],
        };
    st = payload_check(data, size, &due, &poisoned);
    must(st == STRAIT_OK || st == STRAIT_ERR_FORMAT, "a status of another kind");
    if (st != STRAIT_OK) return;
    due.poisoned = poisoned;
    written = malloc(size);
    must(written != NULL, "no memory");
    memcpy(written, data, size);
    payload_put(written, &due, size);
    must(memcmp(written, data, size) == 0, "what no sender writes is taken");
    must(!poisoned || size == PAYLOAD_HEADER_BYTES, "a poisoned payload has a body");
    free(written);
}

void target_run(const uint8_t *data, size_t size)
{
    if (chosen == NULL) run_header(data, size);
    else if (size >= SHAPE_BYTES) run_decoder(data, size);
}
