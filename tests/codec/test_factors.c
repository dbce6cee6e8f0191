/* SPDX-License-Identifier: Apache-2.0
 * test_factors.c - the loops of low-rank factors against plain ones in double, and the same
 * bits from every instruction set. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/random.h"
#include "kernels.h"
#include "lib/unit.h"

static const size_t shapes[][2] = { { 1, 1 }, { 3, 2 }, { 2, 3 }, { 7, 5 }, { 16, 16 }, { 33, 100 },
                                    { 5, 1030 }, { 130, 17 }, { 64, 512 } };
enum { SHAPES = sizeof shapes / sizeof shapes[0], LARGEST = 64 * 512, LONGEST = 1030, RANKS = 9 };

static float m[LARGEST], left[LARGEST], rest[LARGEST], p[RANKS * LONGEST], q[RANKS * LONGEST],
    out[RANKS * LONGEST], first[LARGEST];

static void draw(float *x, size_t n, uint64_t stream)
{
    for (size_t i = 0; i < n; i++) x[i] = (float)(2 * random_unit(1, stream, i) - 1);
}

struct trial {
    const struct factor_kernels *kernels;
    size_t rows, columns, rank;
    bool reference; /* the first instruction set: the others must give its bits */
};

static void same_bits(const struct trial *t, const float *x, size_t n)
{
    if (t->reference) memcpy(first, x, n * sizeof *x);
    else assert_memory_equal(first, x, n * sizeof *x);
}

static void for_all(void (*check)(const struct trial *))
{
    for (size_t s = 0; s < SHAPES; s++)
        for (size_t rank = 1; rank <= RANKS; rank++)
            for (const struct kernels *const *k = kernels_tables(); *k != NULL; k++) {
                struct trial t = { &(*k)->factors, shapes[s][0], shapes[s][1], rank,
                                   k == kernels_tables() };

                draw(m, t.rows * t.columns, 1);
                draw(p, rank * t.rows, 2);
                draw(q, rank * t.columns, 3);
                check(&t);
            }
}

static void check_times(const struct trial *t)
{
    t->kernels->times(m, t->rows, t->columns, q, t->rank, out, t->rows);
    for (size_t i = 0; i < t->rows; i++)
        for (size_t k = 0; k < t->rank; k++) {
            double sum = 0;

            for (size_t j = 0; j < t->columns; j++)
                sum += (double)m[i * t->columns + j] * (double)q[k * t->columns + j];
            assert_true(fabs(sum - (double)out[k * t->rows + i]) < 1e-6 * (double)(t->columns + 1));
        }
    same_bits(t, out, t->rank * t->rows);
}

static void check_transposed(const struct trial *t)
{
    t->kernels->transposed_times(m, t->rows, t->columns, p, t->rank, out);
    for (size_t j = 0; j < t->columns; j++)
        for (size_t k = 0; k < t->rank; k++) {
            double sum = 0;

            for (size_t i = 0; i < t->rows; i++)
                sum += (double)m[i * t->columns + j] * (double)p[k * t->rows + i];
            assert_true(fabs(sum - (double)out[k * t->columns + j]) < 1e-6 * (double)(t->rows + 1));
        }
    same_bits(t, out, t->rank * t->columns);
}

/* `left` is m before, `rest` what is left of it. */
static void check_rebuild(const struct trial *t)
{
    size_t n = t->rows * t->columns;
    uint32_t largest, due = 0;

    memcpy(left, m, n * sizeof *m);
    largest = t->kernels->rebuild(m, t->rows, t->columns, p, t->rows, q, t->rank, rest);
    for (size_t i = 0; i < n; i++) {
        double sum = 0;

        for (size_t k = 0; k < t->rank; k++)
            sum += (double)p[k * t->rows + i / t->columns] *
                   (double)q[k * t->columns + i % t->columns];
        assert_true(fabs(sum - (double)m[i]) < 1e-5);
        assert_true(rest[i] == left[i] - m[i]);
        if ((float_bits(m[i]) & 0x7fffffffu) > due) due = float_bits(m[i]) & 0x7fffffffu;
    }
    assert_int_equal(largest, due);
    same_bits(t, m, n);
    /* row by row, and without a residual, it is the same */
    for (size_t i = 0; i < t->rows; i++)
        t->kernels->rebuild(left + i * t->columns, 1, t->columns, p + i, t->rows, q, t->rank, NULL);
    assert_memory_equal(left, m, n * sizeof *m);
}

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* Columns beyond the number of rows depend on those before them. */
static void check_orthonormal(const struct trial *t)
{
    t->kernels->orthonormalise(p, t->rows, t->rank);
    for (size_t k = 0; k < t->rank; k++) {
        bool whole = k < t->rows;

        assert_true(fabs(dot(p + k * t->rows, p + k * t->rows, t->rows) - whole) < 1e-6);
        for (size_t other = 0; other < k; other++)
            assert_true(fabs(dot(p + k * t->rows, p + other * t->rows, t->rows)) < 1e-6);
    }
    same_bits(t, p, t->rank * t->rows);
}

static void products_equal_plain_ones(void **state)
{
    (void)state;
    for_all(check_times);
    for_all(check_transposed);
}

static void what_is_rebuilt_and_what_is_left_make_the_whole(void **state)
{
    (void)state;
    for_all(check_rebuild);
}

static void columns_become_orthonormal(void **state)
{
    (void)state;
    for_all(check_orthonormal);
}

/* Of the span of one column, the second is 0 and the third, apart from both, is kept. */
static void a_dependent_column_becomes_zero(void **state)
{
    enum { N = 50 };

    (void)state;
    for (const struct kernels *const *k = kernels_tables(); *k != NULL; k++) {
        draw(p, 3 * N, 2);
        for (size_t i = 0; i < N; i++) {
            p[i] *= 1e30f;
            p[N + i] = -1e-30f * p[i];
        }
        (*k)->factors.orthonormalise(p, N, 3);
        assert_true(fabs(dot(p, p, N) - 1) < 1e-6);
        assert_true(dot(p + N, p + N, N) == 0);
        assert_true(fabs(dot(p + 2 * N, p + 2 * N, N) - 1) < 1e-6);
    }
}

static void values_that_are_not_finite_show(void **state)
{
    static const float bad[] = { NAN, INFINITY, -INFINITY };
    enum { ROWS = 6, COLUMNS = 20, RANK = 5 };

    (void)state;
    for (const struct kernels *const *k = kernels_tables(); *k != NULL; k++)
        for (size_t b = 0; b < 3; b++)
            for (size_t at = 0; at < ROWS * COLUMNS; at++) {
                draw(m, ROWS * COLUMNS, 1);
                draw(q, RANK * COLUMNS, 3);
                q[at % COLUMNS] = 0; /* a product with it is not 0 all the same */
                m[at] = bad[b];
                (*k)->factors.times(m, ROWS, COLUMNS, q, RANK, out, ROWS);
                for (size_t i = 0; i < ROWS * RANK; i++)
                    assert_true(isfinite(out[i]) == (i % ROWS != at / COLUMNS));
                draw(p, RANK * ROWS, 2);
                (*k)->factors.transposed_times(m, ROWS, COLUMNS, p, RANK, out);
                for (size_t j = 0; j < COLUMNS * RANK; j++)
                    assert_true(isfinite(out[j]) == (j % COLUMNS != at % COLUMNS));
            }
}

static void a_product_that_overflows_shows(void **state)
{
    float one = 3e38f, factor = 1e30f;

    (void)state;
    for (const struct kernels *const *k = kernels_tables(); *k != NULL; k++) {
        m[0] = one;
        assert_true((*k)->factors.rebuild(m, 1, 1, &factor, 1, &factor, 1, NULL) >=
                    NONFINITE_BITS);
    }
}

/* It would stay infinite, and no later step could be exchanged. */
static void a_residual_that_overflows_stays_finite(void **state)
{
    static const float minus_one = -1;

    (void)state;
    for (const struct kernels *const *k = kernels_tables(); *k != NULL; k++)
        for (float sign = -1; sign <= 1; sign += 2) {
            float large = 3e38f * sign;

            m[0] = large;
            (*k)->factors.rebuild(m, 1, 1, &minus_one, 1, &large, 1, rest);
            assert_true(m[0] == -large && rest[0] == FLT_MAX * sign);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_equal_plain_ones),
        cmocka_unit_test(what_is_rebuilt_and_what_is_left_make_the_whole),
        cmocka_unit_test(columns_become_orthonormal),
        cmocka_unit_test(a_dependent_column_becomes_zero),
        cmocka_unit_test(values_that_are_not_finite_show),
        cmocka_unit_test(a_product_that_overflows_shows),
        cmocka_unit_test(a_residual_that_overflows_stays_finite),
    };

    return cmocka_run_group_tests_name("factors", tests, NULL, NULL);
}
