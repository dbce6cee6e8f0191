/* SPDX-License-Identifier: Apache-2.0
 * test_golden.c - the exact bytes of docs/wire-format.md: a change here is a new format. */
#include <xxhash.h>

#include "base/bytes.h"
#include "codec/codec.h"
#include "lib/unit.h"
#include "schedule/payload.h"

static const float values[8] = { 0.0f, 1.0f, -1.0f, 0.5f, -3.25f, 1e-3f, 100.0f, -65536.0f };
static const struct codec_settings settings = { .block = 8, .topk_ratio = 0.3, .randk_ratio = 0.3 };

static const struct codec_draw draw = { .key = 0x0123456789abcdef, .noise = 0x0123456789abcdef,
                                        .first = 0xfffffffc };

static void expect_of(const struct codec *codec, const struct codec_settings *with,
                      const float *x, const uint8_t *golden, size_t bytes)
{
    struct codec_shape shape = codec_shape(codec, with, 8);
    float zero[8] = { 0 }, residual[8], back[8];
    uint8_t wire[64];

    assert_int_equal(shape.wire_bytes, bytes);
    assert_ok(codec_encode(&shape, kernels_host(), draw, x, zero, residual, wire));
    assert_memory_equal(wire, golden, bytes);
    assert_ok(codec_decode(&shape, kernels_host(), draw, golden, bytes, DECODE_WRITE, back));
}

static void expect(const struct codec *codec, const uint8_t *golden, size_t bytes)
{
    expect_of(codec, &settings, values, golden, bytes);
}

static void fp32_bytes(void **state)
{
    static const uint8_t golden[32] = {
        0, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0x80, 0xbf, 0, 0, 0, 0x3f,
        0, 0, 0x50, 0xc0, 0x6f, 0x12, 0x83, 0x3a, 0, 0, 0xc8, 0x42, 0, 0, 0x80, 0xc7,
    };

    (void)state;
    expect(&codec_fp32, golden, sizeof golden);
    expect(&codec_powersgd, golden, sizeof golden); /* an element of a factor */
}

static void bf16_bytes(void **state)
{
    static const uint8_t golden[16] = { 0, 0, 0x80, 0x3f, 0x80, 0xbf, 0, 0x3f,
                                        0x50, 0xc0, 0x83, 0x3a, 0xc8, 0x42, 0x80, 0xc7 };

    (void)state;
    expect(&codec_bf16, golden, sizeof golden);
}

static void fp16_bytes(void **state) /* the last value saturates */
{
    static const uint8_t golden[16] = { 0, 0, 0, 0x3c, 0, 0xbc, 0, 0x38,
                                        0x80, 0xc2, 0x19, 0x14, 0x40, 0x56, 0xff, 0xfb };

    (void)state;
    expect(&codec_fp16, golden, sizeof golden);
}

static void int8_bytes(void **state) /* scale 65536 / 127 = 516.03..., then the codes */
{
    static const uint8_t golden[12] = { 0x04, 0x02, 0x01, 0x44, 0, 0, 0, 0, 0, 0, 0, 0x81 };

    (void)state;
    expect(&codec_int8, golden, sizeof golden);
}

static void topk_bytes(void **state) /* k = ceil(0.3 * 8) = 3 */
{
    static const uint8_t golden[13] = { 0xd0, /* a bitmap is shorter: elements 4, 6 and 7 */
                                        0, 0, 0x50, 0xc0, 0, 0, 0xc8, 0x42, 0, 0, 0x80, 0xc7 };

    (void)state;
    expect(&codec_topk, golden, sizeof golden);
}

static void randk_bytes(void **state) /* one each of elements 0-1, 2-4 and 5-7 */
{
    static const uint8_t golden[12] = { 0, 0, 0, 0, 0, 0, 0, 0x3f, 0x6f, 0x12, 0x83, 0x3a };

    (void)state;
    expect(&codec_randk, golden, sizeof golden);
}

/* Elements 97 and 98 of 100: low bits 1 and 2, of 5 each; then bits 3 + 0 and 3 + 1 of 5. */
static void topk_index_and_value_bytes(void **state)
{
    static const struct { enum topk_values values; size_t bytes; uint8_t golden[13]; } row[] = {
        { TOPK_FP32, 10, { 0x41, 0x60, 0, 0, 0xc0, 0x3f, 0, 0, 0, 0xbf } },
        { TOPK_FP16, 6, { 0x41, 0x60, 0, 0x3e, 0, 0xb8 } },
        { TOPK_INT8, 8, { 0x41, 0x60, 0x06, 0x83, 0x41, 0x3c, 127, 0xd6 } },
        { TOPK_INT2, 11, { 0x41, 0x60, 0, 0, 0, 0x3f, 0, 0, 0xc0, 0x3f, 0x06 } },
    };
    static float x[100], zero[100], residual[100];

    (void)state;
    x[97] = 1.5f;
    x[98] = -0.5f;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct codec_settings two = { .topk_ratio = 0.02, .topk_values = row[i].values };
        struct codec_shape shape = codec_shape(&codec_topk, &two, 100);
        uint8_t wire[13];

        assert_int_equal(shape.wire_bytes, row[i].bytes);
        assert_int_equal(shape.variant, i << 1);
        assert_ok(codec_encode(&shape, kernels_host(), draw, x, zero, residual, wire));
        assert_memory_equal(wire, row[i].golden, row[i].bytes);
    }
}

static void fp8_bytes(void **state) /* scale 65536 / 448 = 146.28... */
{
    static const uint8_t golden[12] = { 0x25, 0x49, 0x12, 0x43,
                                        0, 0x03, 0x83, 0x02, 0x8b, 0, 0x33, 0xfe };

    (void)state;
    expect(&codec_fp8, golden, sizeof golden);
}

static void int4_bytes(void **state) /* scale 65536 / 7 = 9362.28... */
{
    static const uint8_t golden[8] = { 0x25, 0x49, 0x12, 0x46, 0, 0, 0, 0x90 };

    (void)state;
    expect(&codec_int4, golden, sizeof golden);
}

static void int2_bytes(void **state) /* scale 0.5 * sqrt(4294977308.8 / 8) */
{
    static const uint8_t golden[6] = { 0x01, 0x05, 0x35, 0x46, 0x9a, 0x29 };

    (void)state;
    expect(&codec_int2, golden, sizeof golden);
}

static void onebit_bytes(void **state) /* P 101.501 / 5, N 65540.25 / 3 */
{
    static const uint8_t golden[9] = { 0xcf, 0x66, 0xa2, 0x41, 0x80, 0xad, 0xaa, 0x46, 0x94 };

    (void)state;
    expect(&codec_onebit, golden, sizeof golden);
}

/* 7 is the largest: scales 7 / 448, 7 / 127, 7 / 7 and 7 / 3. */
static void bytes_by_chance(void **state)
{
    static const float x[8] = { 0.0f, 1.3f, -1.3f, 0.5f, -3.25f, 0.7f, 2.6f, -7.0f };
    static const struct codec_settings chance = { .block = 8, .stochastic = true };
    static const uint8_t fp8[12] = { 0, 0, 0x80, 0x3c,
                                     0, 0x6b, 0xea, 0x60, 0xf5, 0x63, 0x73, 0xfe };
    static const uint8_t int8[12] = { 0x87, 0xc3, 0x61, 0x3d, 0, 23, 0xe9, 9, 0xc5, 13, 47, 0x81 };
    static const uint8_t int4[8] = { 0, 0, 0x80, 0x3f, 0x10, 0x1f, 0x1d, 0x92 };
    static const uint8_t int2[6] = { 0x55, 0x55, 0x15, 0x40, 0xa5, 0x29 };

    (void)state;
    expect_of(&codec_fp8, &chance, x, fp8, sizeof fp8);
    expect_of(&codec_int8, &chance, x, int8, sizeof int8);
    expect_of(&codec_int4, &chance, x, int4, sizeof int4);
    expect_of(&codec_int2, &chance, x, int2, sizeof int2);
}

static const struct payload_header header = { .codec = 4, .leg = LEG_FROM_OWNER,
                                              .step = 0x01020304, .bucket = 0x0506,
                                              .owner = 0x0708, .tile = 0x11121314,
                                              .elements = 0x090a0b0c, .param = 0x0d0e0f10,
                                              .variant = 0x15 };
static const uint8_t golden_header[PAYLOAD_HEADER_BYTES] = {
    'S', 'T', 'R', 'P', 3, 4, 0, 128, 4, 3, 2, 1, 6, 5, 8, 7, 0x14, 0x13, 0x12, 0x11,
    12, 11, 10, 9, 16, 15, 14, 13, 0x15, 0, 0, 0,
};

static void header_bytes(void **state)
{
    uint8_t bytes[PAYLOAD_HEADER_BYTES];
    bool poisoned = true;

    (void)state;
    payload_put(bytes, &header, sizeof bytes);
    assert_memory_equal(bytes, golden_header, sizeof bytes);
    assert_ok(payload_check(bytes, sizeof bytes, &header, &poisoned));
    assert_false(poisoned);
}

static void every_changed_byte_of_a_header_is_refused(void **state)
{
    bool poisoned;

    (void)state;
    for (size_t at = 0; at < PAYLOAD_HEADER_BYTES; at++)
        for (int bit = 0; bit < 8; bit++) {
            uint8_t bytes[PAYLOAD_HEADER_BYTES];
            strait_status st;

            memcpy(bytes, golden_header, sizeof bytes);
            bytes[at] ^= (uint8_t)(1 << bit);
            st = payload_check(bytes, sizeof bytes, &header, &poisoned);
            if (at == 6 && bit == 0) assert_true(st == STRAIT_OK && poisoned);
            else assert_int_equal(st, STRAIT_ERR_FORMAT);
        }
    for (size_t bytes = 0; bytes < PAYLOAD_HEADER_BYTES; bytes++)
        assert_int_equal(payload_check(golden_header, bytes, &header, &poisoned),
                         STRAIT_ERR_FORMAT);
}

/* The body's, seeded by the header's: 3 bytes here. */
static void every_changed_bit_shows_in_the_checksum(void **state)
{
    uint8_t bytes[PAYLOAD_HEADER_BYTES + 3] = { [PAYLOAD_HEADER_BYTES] = 1, 2, 3 };
    struct payload_header checked = header;
    bool poisoned;

    (void)state;
    checked.checked = true;
    payload_put(bytes, &checked, sizeof bytes);
    assert_int_equal(bytes[6], 2);
    assert_true(le64_get(bytes + 32) == XXH64(bytes + 40, 3, XXH64(bytes, 32, 0)));
    assert_ok(payload_check(bytes, sizeof bytes, &checked, &poisoned));
    assert_int_equal(payload_check(bytes, sizeof bytes, &header, &poisoned), STRAIT_ERR_FORMAT);
    for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(payload_check(bytes, sizeof bytes, &checked, &poisoned),
                         STRAIT_ERR_FORMAT);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_int_equal(payload_check(bytes, sizeof bytes - 1, &checked, &poisoned),
                     STRAIT_ERR_FORMAT);
}

static void a_poisoned_payload_has_no_body(void **state)
{
    uint8_t bytes[PAYLOAD_HEADER_BYTES + 1] = { 0 };
    struct payload_header bad = header;
    bool poisoned = false;

    (void)state;
    bad.poisoned = true;
    payload_put(bytes, &bad, PAYLOAD_HEADER_BYTES);
    assert_ok(payload_check(bytes, PAYLOAD_HEADER_BYTES, &header, &poisoned));
    assert_true(poisoned);
    assert_int_equal(payload_check(bytes, sizeof bytes, &header, &poisoned), STRAIT_ERR_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fp32_bytes), cmocka_unit_test(bf16_bytes), cmocka_unit_test(fp16_bytes),
        cmocka_unit_test(int8_bytes), cmocka_unit_test(topk_bytes),
        cmocka_unit_test(topk_index_and_value_bytes), cmocka_unit_test(randk_bytes),
        cmocka_unit_test(fp8_bytes),
        cmocka_unit_test(int4_bytes), cmocka_unit_test(int2_bytes), cmocka_unit_test(onebit_bytes),
        cmocka_unit_test(bytes_by_chance), cmocka_unit_test(header_bytes),
        cmocka_unit_test(every_changed_byte_of_a_header_is_refused),
        cmocka_unit_test(every_changed_bit_shows_in_the_checksum),
        cmocka_unit_test(a_poisoned_payload_has_no_body),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
