/* SPDX-License-Identifier: Apache-2.0
 * test_codecs.c - the contract that every codec of the table keeps, against the plain
 * reference, for many sizes and kinds of input. A new codec is tested by being listed. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/random.h"
#include "codec/codec.h"
#include "codec/reference.h"
#include "device/device.h"
#include "lib/unit.h"

static const size_t sizes[] = { 0, 1, 2, 3, 7, 8, 9, 31, 64, 255, 256, 257, 1000, 4099 };
enum { SIZES = sizeof sizes / sizeof sizes[0], LARGEST = 4099, KINDS = 9 };

/* What is under test: every codec of the table with the usual settings, and those below. */
struct variant {
    const struct codec *codec;
    const char *label;
    struct codec_settings settings;
};

#define USUAL .block = 32, .topk_ratio = 0.03, .randk_ratio = 0.07
static const struct codec_settings usual = { USUAL };
static const struct variant others[] = {
    { &codec_fp8, "fp8 by chance", { USUAL, .stochastic = true } },
    { &codec_int8, "int8 by chance", { USUAL, .stochastic = true } },
    { &codec_int4, "int4 by chance", { USUAL, .stochastic = true } },
    { &codec_int2, "int2 by chance", { USUAL, .stochastic = true } },
    { &codec_topk, "topk as fp16", { USUAL, .topk_values = TOPK_FP16 } },
    { &codec_topk, "topk as int8", { USUAL, .topk_values = TOPK_INT8 } },
    { &codec_topk, "topk as int2", { USUAL, .topk_values = TOPK_INT2 } },
};
enum { OTHERS = sizeof others / sizeof others[0] };

/* Variant i; false: there are no more. */
static bool variant_at(int i, struct variant *v)
{
    int codecs = 0;

    while (codec_table[codecs] != NULL) codecs++;
    if (i >= codecs + OTHERS) return false;
    *v = i < codecs ? (struct variant){ codec_table[i], codec_table[i]->name, usual }
                    : others[i - codecs];
    return true;
}

/* Somewhere in the sequences, and across the end of 32 bits. */
static const struct codec_draw draw = { .key = 0x123456789abcdef0, .noise = 0xfedcba987654321,
                                        .first = 0xffffff00 };

/* Inputs that have broken codecs: ties, zeros of both signs, huge, tiny, halfway. */
static float input(int kind, uint64_t i)
{
    double u = 2 * random_unit(7, (uint64_t)kind, i) - 1;

    switch (kind) {
    case 0: return (float)u;
    case 1: return 0.0f;
    case 2: return i % 2 ? -0.0f : 0.0f;
    case 3: return i % 3 ? 1.5f : -1.5f;                    /* nothing but ties */
    case 4: return (float)(u * 1e-39);                      /* subnormal */
    case 5: return (float)(u * FLT_MAX);
    case 6: return (float)(ldexp(u, (int)(i % 200) - 100)); /* all magnitudes */
    case 7: return (float)((double)(i % 255) - 127) / 2;    /* halfway between codes */
    default: return i % 97 == 0 ? 1000.0f : (float)(u * 1e-3); /* outliers */
    }
}

static const struct kernels *table; /* the instruction set under test */

#define FOR_TABLES(t) \
    for (t = kernels_tables(); *t != NULL && (table = *t) != NULL; t++)

struct trial {
    float x[LARGEST], before[LARGEST], after[LARGEST], sum[LARGEST], out[LARGEST],
        expected[LARGEST];
    uint8_t wire[8 * LARGEST + 64];
    struct codec_shape shape;
};

static struct trial *trial_of(const struct variant *v, size_t n, int kind)
{
    struct trial *t = calloc(1, sizeof *t);

    assert_non_null(t);
    t->shape = codec_shape(v->codec, &v->settings, n);
    assert_true(t->shape.wire_bytes <= 8 * LARGEST);
    for (size_t i = 0; i < n; i++) {
        t->x[i] = input(kind, i);
        t->before[i] = v->codec->lossy && kind != 5 ? input((int)(i % 2), i + 99) * t->x[i] : 0;
        t->sum[i] = t->x[i] + t->before[i];
    }
    return t;
}

static struct trial *new_trial(const struct codec *codec, size_t n, int kind)
{
    return trial_of(&(struct variant){ codec, codec->name, usual }, n, kind);
}

static void for_all(void (*check)(const struct variant *v, size_t n, int kind))
{
    const struct kernels *const *t;
    struct variant v;

    FOR_TABLES(t)
        for (int i = 0; variant_at(i, &v); i++)
            for (int s = 0; s < SIZES; s++)
                for (int kind = 0; kind < KINDS; kind++) check(&v, sizes[s], kind);
}

static strait_status encode(struct trial *t)
{
    return codec_encode(&t->shape, table, draw, t->x, t->before, t->after, t->wire);
}

static strait_status decode_bytes(struct trial *t, size_t bytes, enum codec_decode_mode mode)
{
    return codec_decode(&t->shape, table, draw, t->wire, bytes, mode, t->out);
}

static strait_status decode(struct trial *t, enum codec_decode_mode mode)
{
    return decode_bytes(t, t->shape.wire_bytes, mode);
}

static void check_reference(const struct variant *v, size_t n, int kind)
{
    struct trial *t = trial_of(v, n, kind);

    assert_ok(encode(t));
    assert_ok(decode(t, DECODE_WRITE));
    reference_decoded(&t->shape, draw, t->sum, t->expected);
    for (size_t i = 0; i < n; i++)
        if (t->out[i] != t->expected[i])
            fail_msg("%s, n %zu, kind %d, element %zu: %a decodes to %a, reference %a",
                     v->label, n, kind, i, (double)t->sum[i], (double)t->out[i],
                     (double)t->expected[i]);
    free(t);
}

static void decoded_values_equal_the_plain_reference(void **state)
{
    (void)state;
    for_all(check_reference);
}

/* A small value under a code that is not 0 leaves more digits than a float has. */
static bool is_exact(const struct variant *v)
{
    return v->codec != &codec_int2 && v->codec != &codec_onebit && !v->settings.stochastic &&
           v->settings.topk_values != TOPK_INT2;
}

/* The residual is what is missing, to the last bit, except where saturation, a huge
 * scale, chance or a codec without a zero makes the difference itself inexact:
 * there within half a unit of its last place. */
static void check_nothing_lost(const struct variant *v, size_t n, int kind)
{
    struct trial *t = trial_of(v, n, kind);

    if (!v->codec->lossy) goto done;
    assert_ok(encode(t));
    assert_ok(decode(t, DECODE_WRITE));
    for (size_t i = 0; i < n; i++) {
        double missing = (double)t->sum[i] - (double)t->out[i];

        if (t->after[i] != (float)missing)
            fail_msg("%s, n %zu, kind %d, element %zu: residual %a, missing %a", v->label, n,
                     kind, i, (double)t->after[i], missing);
        if (is_exact(v) && kind != 5 && kind != 6 && (double)t->after[i] != missing)
            fail_msg("%s, kind %d, element %zu: the residual is not exact", v->label, kind, i);
    }
done:
    free(t);
}

static void decoded_plus_residual_is_gradient_plus_old_residual(void **state)
{
    (void)state;
    for_all(check_nothing_lost);
}

static void check_add(const struct variant *v, size_t n, int kind)
{
    struct trial *t = trial_of(v, n, kind);

    assert_ok(encode(t));
    assert_ok(decode(t, DECODE_WRITE));
    memcpy(t->expected, t->out, sizeof t->out);
    for (size_t i = 0; i < n; i++) {
        t->out[i] = (float)(i % 5) - 2.0f;
        t->expected[i] = t->out[i] + t->expected[i];
    }
    assert_ok(decode(t, DECODE_ADD));
    for (size_t i = 0; i < n; i++)
        if (t->out[i] != t->expected[i]) fail_msg("%s, element %zu", v->label, i);
    free(t);
}

static void adding_is_decoding_and_then_adding(void **state)
{
    (void)state;
    for_all(check_add);
}

static void check_sizes(const struct variant *v, size_t n, int kind)
{
    struct trial *t = trial_of(v, n, kind);
    size_t bytes = t->shape.wire_bytes;

    memset(t->wire, 0xa5, sizeof t->wire);
    assert_ok(encode(t));
    for (size_t i = bytes; i < bytes + 64; i++) assert_int_equal(t->wire[i], 0xa5);
    assert_int_equal(decode_bytes(t, bytes + 1, DECODE_WRITE), STRAIT_ERR_FORMAT);
    assert_contains(strait_error_message(), "elements take");
    if (bytes > 0)
        assert_int_equal(decode_bytes(t, bytes - 1, DECODE_WRITE), STRAIT_ERR_FORMAT);
    free(t);
}

/* Every instruction set gives the bits of the plainest, in place or not. */
static void check_same_bits(const struct variant *v, size_t n, int kind)
{
    struct trial *t = trial_of(v, n, kind), *plain = trial_of(v, n, kind);
    const struct kernels *tested = table;

    table = &kernels_baseline;
    assert_ok(encode(plain));
    assert_ok(decode(plain, DECODE_WRITE));
    table = tested;
    assert_ok(encode(t));
    assert_ok(decode(t, DECODE_WRITE));
    assert_memory_equal(t->wire, plain->wire, sizeof t->wire);
    assert_memory_equal(t->after, plain->after, sizeof t->after);
    assert_memory_equal(t->out, plain->out, sizeof t->out);
    assert_ok(codec_encode(&t->shape, table, draw, t->x, t->before, t->before, t->wire));
    assert_memory_equal(t->wire, plain->wire, sizeof t->wire);
    if (v->codec->lossy) assert_memory_equal(t->before, plain->after, n * sizeof(float));
    free(plain);
    free(t);
}

static void all_instruction_sets_give_the_same_bits_in_place_or_not(void **state)
{
    (void)state;
    for_all(check_same_bits);
}

static void instruction_sets_are_found_by_name(void **state)
{
    const struct kernels *const *t;

    (void)state;
    FOR_TABLES(t) assert_ptr_equal(kernels_by_name(table->name), table);
    assert_ptr_equal(t[-1], kernels_host());
    assert_null(kernels_by_name("mmx"));
    assert_null(kernels_by_name(""));
}

static void short_and_long_payloads_are_refused_and_no_byte_is_written_beyond(void **state)
{
    (void)state;
    for_all(check_sizes);
}

static void non_finite_values_are_refused(void **state)
{
    static const float bad[] = { NAN, -NAN, INFINITY, -INFINITY };

    const struct kernels *const *k;
    struct variant v;

    (void)state;
    FOR_TABLES(k)
        for (int i = 0; variant_at(i, &v); i++)
            for (int at = 0; at < 4 * 64; at += 21) {
                struct trial *t = trial_of(&v, 64, 0);

                t->x[at / 4] = bad[at % 4];
                assert_int_equal(encode(t), STRAIT_ERR_NONFINITE);
                free(t);
            }
}

static void a_sum_that_overflows_is_refused(void **state)
{
    (void)state;
    for (int c = 0; codec_table[c] != NULL; c++) {
        struct trial *t = new_trial(codec_table[c], 64, 0);

        t->x[63] = t->before[63] = FLT_MAX;
        if (codec_table[c]->lossy) assert_int_equal(encode(t), STRAIT_ERR_NONFINITE);
        free(t);
    }
}

static void expect_refused(struct trial *t, size_t at, const void *bytes, size_t count)
{
    uint8_t held[8];

    memcpy(held, t->wire + at, count);
    memcpy(t->wire + at, bytes, count);
    if (decode(t, DECODE_WRITE) != STRAIT_ERR_FORMAT || decode(t, DECODE_ADD) != STRAIT_ERR_FORMAT)
        fail_msg("%s took a bad byte at %zu", t->shape.codec->name, at);
    memcpy(t->wire + at, held, count);
    assert_ok(decode(t, DECODE_WRITE));
}

static void content_that_no_encoder_writes_is_refused(void **state)
{
    static const uint8_t infinity16[2] = { 0x00, 0x7c }, infinity_b[2] = { 0x80, 0x7f };
    static const uint8_t infinity32[4] = { 0, 0, 0x80, 0x7f }, negative[4] = { 0, 0, 0x80, 0xbf };
    static const uint8_t minus128 = 0x80;
    struct trial *t = new_trial(&codec_fp32, 100, 0);

    (void)state;
    assert_ok(encode(t));
    expect_refused(t, 4 * 99, infinity32, 4);
    free(t);
    t = new_trial(&codec_fp16, 100, 0);
    assert_ok(encode(t));
    expect_refused(t, 2 * 50, infinity16, 2);
    free(t);
    t = new_trial(&codec_bf16, 100, 0);
    assert_ok(encode(t));
    expect_refused(t, 0, infinity_b, 2);
    free(t);
    t = new_trial(&codec_int8, 100, 0); /* four scales, a hundred codes */
    assert_ok(encode(t));
    expect_refused(t, 4, infinity32, 4);
    expect_refused(t, 12, negative, 4);
    expect_refused(t, 16 + 99, &minus128, 1);
    free(t);
}

/* 30 of 1000: 5 low bits each, then a row of 30 + 31: 211 bits in 27 bytes, then 30 values. */
static void bad_topk_indices_are_refused(void **state)
{
    struct trial *t = new_trial(&codec_topk, 1000, 0);
    uint8_t byte;

    (void)state;
    assert_ok(encode(t));
    assert_int_equal(t->shape.param, 30);
    assert_int_equal(t->shape.variant, 0);
    assert_int_equal(t->shape.wire_bytes, 27 + 4 * 30);
    byte = t->wire[26] | 0x08; /* padding, a 31st one in the row, and one missing */
    expect_refused(t, 26, &byte, 1);
    byte = (uint8_t)(t->wire[20] | (t->wire[20] + 1));
    expect_refused(t, 20, &byte, 1);
    byte = (uint8_t)(t->wire[20] & (t->wire[20] - 1));
    expect_refused(t, 20, &byte, 1);
    free(t);
}

/* Of two indices with the same upper part the low bits must ascend; and none is from n on. */
static void topk_indices_out_of_order_are_refused(void **state)
{
    static const struct codec_settings two = { .block = 8, .topk_ratio = 0.02 };
    struct trial *t = new_trial(&codec_topk, 100, 1);
    const uint16_t row = 3 << 13; /* bits 3 + 0 and 3 + 1 behind 10 low bits */
    uint8_t low[2];

    (void)state;
    t->shape = codec_shape(&codec_topk, &two, 100);
    memset(t->before, 0, sizeof t->before);
    t->x[97] = t->x[98] = 1; /* 5 low bits of each: 1 and 2; the upper part is 3 */
    assert_ok(encode(t));
    assert_ok(decode(t, DECODE_WRITE));
    assert_int_equal(le16_get(t->wire), row | 1 | 2 << 5);
    le16_put(low, row | 2 | 1 << 5);
    expect_refused(t, 0, low, 2);
    le16_put(low, row | 1 | 1 << 5);
    expect_refused(t, 0, low, 2);
    le16_put(low, row | 1 | 4 << 5); /* element 100 */
    expect_refused(t, 0, low, 2);
    free(t);
}

/* Thirty values behind 27 bytes of indices. */
static void bad_topk_values_are_refused(void **state)
{
    static const struct { enum topk_values values; size_t at, bytes; uint8_t bad[4]; } row[] = {
        { TOPK_FP32, 27, 4, { 0, 0, 0x80, 0x7f } }, { TOPK_FP16, 85, 2, { 0, 0xfc } },
        { TOPK_INT8, 27, 4, { 0, 0, 0x80, 0x7f } }, { TOPK_INT8, 27, 4, { 0, 0, 0x80, 0xbf } },
        { TOPK_INT8, 31, 1, { 0x80 } },             { TOPK_INT2, 27, 4, { 1 } },
        { TOPK_INT2, 31, 4, { 0, 0, 0x80, 0x7f } },
        { TOPK_INT2, 31, 4, { 0 } }, /* the second magnitude below the first */
        { TOPK_INT2, 42, 1, { 0x10 } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct codec_settings coded = { USUAL, .topk_values = row[i].values };
        struct trial *t = new_trial(&codec_topk, 1000, 0);

        t->shape = codec_shape(&codec_topk, &coded, 1000);
        assert_ok(encode(t));
        assert_ok(decode(t, DECODE_WRITE));
        expect_refused(t, row[i].at, row[i].bad, row[i].bytes);
        free(t);
    }
}

/* Buffers are as large as the largest slice and the first step's ratio need. */
static void no_smaller_slice_takes_more_bytes(void **state)
{
    static const double ratios[] = { 1e-6, 0.01, 0.03, 0.05, 0.062, 0.1, 0.25, 0.5, 1 };

    (void)state;
    for (int c = 0; codec_table[c] != NULL; c++)
        for (size_t r = 0; r < sizeof ratios / sizeof ratios[0]; r++)
            for (int values = TOPK_FP32; values <= TOPK_INT2; values++) {
                struct codec_settings s = { .block = 32, .topk_ratio = ratios[r],
                                            .randk_ratio = ratios[r],
                                            .topk_values = (enum topk_values)values };
                size_t largest = 0;

                for (size_t n = 0; n < 20000; n++) {
                    size_t bytes = codec_shape(codec_table[c], &s, n).wire_bytes;

                    if (bytes < largest)
                        fail_msg("%s of %g: %zu elements take %zu bytes, fewer %zu",
                                 codec_table[c]->name, ratios[r], n, bytes, largest);
                    largest = bytes;
                }
            }
}

static void no_smaller_share_takes_more_bytes(void **state)
{
    (void)state;
    for (size_t n = 1; n < 700; n++)
        for (int values = TOPK_FP32; values <= TOPK_INT2; values++)
            for (uint32_t k = 1; k <= n; k++)
                assert_true(topk_layout(n, k - 1, (enum topk_values)values).wire_bytes <=
                            topk_layout(n, k, (enum topk_values)values).wire_bytes);
}

static void bad_topk_bitmaps_are_refused(void **state)
{
    struct codec_settings dense = { .block = 32, .topk_ratio = 0.5 };
    struct trial *t = new_trial(&codec_topk, 99, 0);
    uint8_t more, less, beyond;

    (void)state;
    t->shape = codec_shape(&codec_topk, &dense, 99);
    assert_int_equal(t->shape.variant, TOPK_BITMAP);
    assert_ok(encode(t));
    more = (uint8_t)(t->wire[0] | (t->wire[0] + 1));
    less = (uint8_t)(t->wire[0] & (t->wire[0] - 1));
    beyond = (uint8_t)((t->wire[12] & (t->wire[12] - 1)) | 0x80);
    expect_refused(t, 0, &more, 1);
    expect_refused(t, 0, &less, 1);
    expect_refused(t, 12, &beyond, 1);
    free(t);
}

static void bad_blocks_are_refused(void **state)
{
    static const struct { const struct codec *codec; size_t at; uint8_t bad; } row[] = {
        { &codec_fp8, 16, 0xff },   /* NaN */
        { &codec_int4, 16, 0x80 },  /* -8 */
        { &codec_int4, 66, 0x10 },  /* the half beyond the 101st element */
        { &codec_int2, 41, 0x04 },  /* padding */
        { &codec_onebit, 44, 0x20 },
    };
    static const uint8_t subnormal[4] = { 1, 0, 0, 0 }, huge[4] = { 0xff, 0xff, 0x7f, 0x7f };
    static const uint8_t infinity[4] = { 0, 0, 0x80, 0x7f }, negative[4] = { 0, 0, 0x80, 0xbf };

    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct trial *t = new_trial(row[i].codec, 101, 0);

        assert_ok(encode(t));
        expect_refused(t, row[i].at, &row[i].bad, 1);
        expect_refused(t, 0, subnormal, 4);
        expect_refused(t, 4, infinity, 4);
        expect_refused(t, 8, negative, 4);
        if (row[i].codec != &codec_onebit) expect_refused(t, 12, huge, 4);
        free(t);
    }
}

/* Noise, or what an encoder wrote with some bytes changed, in buffers of the exact size:
 * sanitizers see every step beyond. Decoding ends with a status. */
static void decode_noise(const struct variant *v, uint64_t round)
{
    struct trial *t = trial_of(v, 1 + round * 13 % 1000, (int)(round % KINDS));
    size_t bytes = t->shape.wire_bytes;
    uint8_t *wire = malloc(bytes + 1);
    float *out = calloc(t->shape.elements, sizeof *out);

    assert_ok(encode(t));
    memcpy(wire, t->wire, bytes);
    for (size_t i = 0; i < bytes; i++)
        if (round % 3 == 0 || random_u64(round, 6, i) % bytes < round % 5)
            wire[i] = (uint8_t)random_u64(round, 5, i);
    wire = realloc(wire, bytes > 0 ? bytes : 1);
    for (int mode = DECODE_WRITE; mode <= DECODE_ADD; mode++) {
        strait_status st = codec_decode(&t->shape, table, draw, wire, bytes,
                                        (enum codec_decode_mode)mode, out);

        assert_true(st == STRAIT_OK || st == STRAIT_ERR_FORMAT);
        for (size_t i = 0; st == STRAIT_OK && mode == DECODE_WRITE && i < t->shape.elements; i++)
            if (!isfinite(out[i])) fail_msg("%s decodes to %g", v->label, (double)out[i]);
    }
    free(out);
    free(wire);
    free(t);
}

static void random_bytes_do_no_harm(void **state)
{
    const struct kernels *const *k;
    struct variant v;

    (void)state;
    FOR_TABLES(k)
        for (int i = 0; variant_at(i, &v); i++)
            for (uint64_t round = 0; round < 2000; round++) decode_noise(&v, round);
}

/* Over many steps, what was conveyed catches up with what was meant. */
static void error_feedback_conveys_everything_in_the_end(void **state)
{
    enum { N = 512, STEPS = 400 };
    struct variant v;

    (void)state;
    for (int i = 0; variant_at(i, &v); i++) {
        struct trial *t = trial_of(&v, N, 0);
        double conveyed[N] = { 0 };
        /* one element in 14 may have to wait for long: 200 steps once in 3 million times */
        double allowed = v.codec == &codec_randk ? 0.5 : 0.1;

        memset(t->before, 0, sizeof t->before);
        for (uint64_t step = 0; step < STEPS; step++) {
            struct codec_draw each = { .key = step, .noise = step };

            assert_ok(codec_encode(&t->shape, table, each, t->x, t->before, t->after, t->wire));
            assert_ok(codec_decode(&t->shape, table, each, t->wire, t->shape.wire_bytes,
                                   DECODE_WRITE, t->out));
            for (int e = 0; e < N; e++) conveyed[e] += (double)t->out[e];
            if (v.codec->lossy) memcpy(t->before, t->after, sizeof t->before);
        }
        for (int e = 0; e < N; e++) {
            double off = fabs(conveyed[e] / STEPS - (double)t->x[e]);

            if (off > allowed) fail_msg("%s, element %d is off by %g", v.label, e, off);
        }
        free(t);
    }
}

/* How far the mean of many roundings is off: at worst of one element, and of all. */
static void mean_errors(const struct codec *codec, bool stochastic, int rounds, double *each,
                        double *all)
{
    enum { N = 256 };
    struct codec_settings settings = { .block = 32, .stochastic = stochastic };
    struct trial *t = new_trial(codec, N, 0);
    double sum[N] = { 0 };

    t->shape = codec_shape(codec, &settings, N);
    memset(t->before, 0, sizeof t->before);
    for (int i = 0; i < N; i++) t->x[i] = i % 32 == 0 ? 1.0f : 0.3f + 1e-4f * (float)i;
    for (int round = 0; round < rounds; round++) {
        struct codec_draw other = { .noise = random_mix((uint64_t)round), .first = N };

        assert_ok(codec_encode(&t->shape, table, other, t->x, t->before, t->after, t->wire));
        assert_ok(decode(t, DECODE_WRITE));
        for (int i = 0; i < N; i++) sum[i] += (double)t->out[i] - (double)t->x[i];
    }
    *each = *all = 0;
    for (int i = 0; i < N; i++) {
        *each = fmax(*each, fabs(sum[i]) / rounds);
        *all += sum[i] / rounds / N;
    }
    free(t);
}

/* Codes are `apart` of each other at most: the mean of r roundings is within 5 standard
 * deviations, apart / 2 / sqrt(r) each, of 0, and that of all elements in 1/16 of it. */
static void rounding_by_chance_is_right_on_average(void **state)
{
    static const struct { const struct codec *codec; double apart; } row[] = {
        { &codec_int8, 1 / 127.0 }, { &codec_int4, 1 / 7.0 }, { &codec_int2, 2 / 3.0 },
        { &codec_fp8, 1 / 28.0 }, /* between 1/4 and 1/2 of the largest: 1/8 of 128/448 */
    };
    const struct kernels *const *k;

    (void)state;
    FOR_TABLES(k)
        for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
            for (int rounds = 100; rounds <= 10000; rounds *= 10) {
                double each, all, nearest, nearest_all;
                double bound = 5 * row[i].apart / 2 / sqrt(rounds);

                mean_errors(row[i].codec, true, rounds, &each, &all);
                mean_errors(row[i].codec, false, 1, &nearest, &nearest_all);
                if (each > bound || fabs(all) > bound / 16)
                    fail_msg("%s: after %d roundings off by %g, on average by %g",
                             row[i].codec->name, rounds, each, all);
                if (rounds == 10000 && nearest < bound)
                    fail_msg("%s: to nearest is as good: %g", row[i].codec->name, nearest);
            }
}

/* Elements draw by their place in the bucket, wherever the slices are cut. */
static void chance_does_not_depend_on_how_a_bucket_is_cut(void **state)
{
    (void)state;
    for (int i = 0; i < OTHERS; i++) {
        struct trial *all = trial_of(&others[i], 256, 0), *part = trial_of(&others[i], 96, 0);
        struct codec_draw at = draw;

        if (!others[i].settings.stochastic) goto next;
        assert_ok(encode(all));
        at.first += 160;
        memcpy(part->x, all->x + 160, 96 * sizeof(float));
        memcpy(part->before, all->before + 160, 96 * sizeof(float));
        assert_ok(codec_encode(&part->shape, table, at, part->x, part->before, part->after,
                               part->wire));
        assert_memory_equal(part->after, all->after + 160, 96 * sizeof(float));
        assert_ok(codec_encode(&part->shape, table, draw, part->x, part->before, part->after,
                               part->wire));
        assert_memory_not_equal(part->after, all->after + 160, 96 * sizeof(float));
next:
        free(part);
        free(all);
    }
}

static void topk_breaks_ties_by_lower_index(void **state)
{
    struct trial *t = new_trial(&codec_topk, 100, 3);

    (void)state;
    memset(t->before, 0, sizeof t->before);
    assert_ok(encode(t));
    assert_ok(decode(t, DECODE_WRITE));
    for (size_t i = 0; i < 100; i++) assert_int_equal(t->out[i] != 0, i < 3);
    free(t);
}

static void check_large_topk(double ratio, enum topk_values values, int kind)
{
    enum { N = 70001 };
    struct codec_settings few = { .block = 8, .topk_ratio = ratio, .topk_values = values };
    struct codec_shape shape = codec_shape(&codec_topk, &few, N);
    float *x = calloc(5 * N, sizeof *x), *zero = x + N, *rest = zero + N, *out = rest + N;
    float *expected = out + N;
    uint8_t *wire = malloc(shape.wire_bytes);

    assert_non_null(x);
    for (size_t i = 0; i < N; i++) x[i] = input(kind, i);
    assert_ok(codec_encode(&shape, table, draw, x, zero, rest, wire));
    assert_ok(codec_decode(&shape, table, draw, wire, shape.wire_bytes, DECODE_WRITE, out));
    reference_decoded(&shape, draw, x, expected);
    for (size_t i = 0; i < N; i++) assert_true(out[i] == expected[i]);
    for (size_t i = 0; i < N; i++) assert_true(rest[i] == x[i] - out[i]);
    free(wire);
    free(x);
}

/* Few and many candidates, low bits of all counts and bitmaps, many blocks of values. */
static void topk_of_many_elements_equals_the_reference(void **state)
{
    static const double ratios[] = { 1e-6, 1e-3, 0.01, 0.02, 0.1, 0.2, 0.5, 1.0 };
    const struct kernels *const *k;

    (void)state;
    FOR_TABLES(k)
        for (size_t r = 0; r < sizeof ratios / sizeof ratios[0]; r++)
            for (int kind = 0; kind < KINDS; kind += 2)
                check_large_topk(ratios[r], (enum topk_values)(r % 4), kind);
}

static void names_and_numbers_are_unique(void **state)
{
    (void)state;
    for (int a = 0; codec_table[a] != NULL; a++) {
        assert_ptr_equal(codec_find(codec_table[a]->name), codec_table[a]);
        for (int b = 0; b < a; b++) assert_int_not_equal(codec_table[a]->id, codec_table[b]->id);
    }
    assert_null(codec_find("zip"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoded_values_equal_the_plain_reference),
        cmocka_unit_test(decoded_plus_residual_is_gradient_plus_old_residual),
        cmocka_unit_test(adding_is_decoding_and_then_adding),
        cmocka_unit_test(short_and_long_payloads_are_refused_and_no_byte_is_written_beyond),
        cmocka_unit_test(all_instruction_sets_give_the_same_bits_in_place_or_not),
        cmocka_unit_test(instruction_sets_are_found_by_name),
        cmocka_unit_test(non_finite_values_are_refused),
        cmocka_unit_test(a_sum_that_overflows_is_refused),
        cmocka_unit_test(content_that_no_encoder_writes_is_refused),
        cmocka_unit_test(no_smaller_slice_takes_more_bytes),
        cmocka_unit_test(no_smaller_share_takes_more_bytes),
        cmocka_unit_test(bad_topk_indices_are_refused),
        cmocka_unit_test(topk_indices_out_of_order_are_refused),
        cmocka_unit_test(bad_topk_values_are_refused),
        cmocka_unit_test(bad_topk_bitmaps_are_refused),
        cmocka_unit_test(bad_blocks_are_refused),
        cmocka_unit_test(random_bytes_do_no_harm),
        cmocka_unit_test(error_feedback_conveys_everything_in_the_end),
        cmocka_unit_test(rounding_by_chance_is_right_on_average),
        cmocka_unit_test(chance_does_not_depend_on_how_a_bucket_is_cut),
        cmocka_unit_test(topk_breaks_ties_by_lower_index),
        cmocka_unit_test(topk_of_many_elements_equals_the_reference),
        cmocka_unit_test(names_and_numbers_are_unique),
    };

    table = kernels_host();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
