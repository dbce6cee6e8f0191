/* SPDX-License-Identifier: Apache-2.0
 * test_half.c - fp16 and bf16 for every code and around every rounding boundary. */
#include <math.h>

#include "base/bytes.h"
#include "codec/reference.h"
#include "kernels.h"
#include "lib/unit.h"

struct format {
    size_t row; /* in struct kernels */
    int digits, lowest;
    double largest;
    uint16_t exponent_mask;
};

static const struct format formats[] = {
    { offsetof(struct kernels, fp16), 11, -24, 65504.0, 0x7c00 },
    { offsetof(struct kernels, bf16), 8, -133, 0x1.fep127, 0x7f80 },
};

static const struct kernels *table; /* the instruction set under test */

#define FOR_TABLES(t) \
    for (t = kernels_tables(); *t != NULL && (table = *t) != NULL; t++)

static const struct codec_kernels *row(const struct format *f)
{
    return (const struct codec_kernels *)((const char *)table + f->row);
}

static float decode_one(const struct format *f, uint16_t code, bool *good)
{
    uint8_t wire[2];
    float out;

    le16_put(wire, code);
    *good = row(f)->decode(wire, 1, NULL, &out);
    return out;
}

static uint16_t encode_one(const struct format *f, float v)
{
    uint8_t wire[2];
    float zero = 0, residual;

    row(f)->encode(&v, &zero, &residual, 1, NULL, wire);
    return le16_get(wire);
}

static void check_codes(void)
{
    for (int f = 0; f < 2; f++)
        for (uint32_t code = 0; code < 65536; code++) {
            bool good, finite = (code & formats[f].exponent_mask) != formats[f].exponent_mask;
            float v = decode_one(&formats[f], (uint16_t)code, &good);

            assert_int_equal(good, finite);
            if (!finite) continue;
            assert_true((double)v == reference_round((double)v, formats[f].digits,
                                                     formats[f].lowest, formats[f].largest));
            assert_int_equal(encode_one(&formats[f], v), code == 0x8000 ? 0 : code);
        }
}

static void every_finite_code_decodes_and_encodes_back(void **state)
{
    const struct kernels *const *t;

    (void)state;
    FOR_TABLES(t) check_codes();
}

/* Between each code and the next: just below, at and just above the middle. */
static void check_rounding(void)
{
    for (int f = 0; f < 2; f++)
        for (uint32_t code = 0; code < 0x8000; code++) {
            bool good;
            float low = decode_one(&formats[f], (uint16_t)code, &good), high, middle;

            if (!good) break;
            high = decode_one(&formats[f], (uint16_t)(code + 1), &good);
            middle = good ? low + (high - low) / 2 : low * 1.001f;
            for (int side = -1; side <= 1; side++)
                for (int sign = -1; sign <= 1; sign += 2) {
                    float v = (float)sign *
                              (side == 0 ? middle
                                         : nextafterf(middle, side < 0 ? 0.0f : INFINITY));
                    double expected = reference_round(v, formats[f].digits, formats[f].lowest,
                                                      formats[f].largest);

                    if (!isfinite(v)) continue;
                    if ((double)decode_one(&formats[f], encode_one(&formats[f], v), &good) !=
                        expected)
                        fail_msg("format %d: %a is not rounded to %a", f, (double)v, expected);
                }
        }
}

static void rounding_is_to_nearest_even_everywhere(void **state)
{
    const struct kernels *const *t;

    (void)state;
    FOR_TABLES(t) check_rounding();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_finite_code_decodes_and_encodes_back),
        cmocka_unit_test(rounding_is_to_nearest_even_everywhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
