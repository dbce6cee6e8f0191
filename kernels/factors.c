/* SPDX-License-Identifier: Apache-2.0
 * factors.c - products of a matrix with thin factors, and columns made orthonormal: the
 * arithmetic of low-rank codecs.
 *
 * Bound by memory while the rank is small: each product reads 4 bytes an element of the matrix
 * once for every GROUP columns. The order of every sum is fixed, whatever the vector width:
 * dot products by the lanes of block.h (element j to lane j % 16), all others by ascending row
 * or column of the factor. */
#include "block.h"

enum { GROUP = 4, CHUNK = 512 }; /* columns of a factor, elements of a row: at a time */

/* Of a loop over up to GROUP vectors: they stay in registers only where it is unrolled. */
#ifdef __clang__
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 4")
#endif

/* A register's worth of lanes: gcc keeps sums in wider vectors in memory. */
#if defined __AVX512F__
enum { WIDTH = 16 };
#elif defined __AVX__
enum { WIDTH = 8 };
#else
enum { WIDTH = 4 };
#endif
typedef float part __attribute__((vector_size(4 * WIDTH)));
enum { PARTS = LANES / WIDTH };

/* ---- products ---- */
ALWAYS_INLINE void add_product(part *sum, const float *a, const float *b)
{
    part x, y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    *sum += x * y;
}

/* sum[k] += the products of one part of the lanes, of n elements (a multiple of LANES), with
 * column k at q. Each in a variable of its own: of an array gcc would keep them in memory. */
ALWAYS_INLINE void add_part(part *sum, int count, const float *row, const float *q,
                            size_t columns, size_t n)
{
    part a = sum[0], b = sum[1], c = sum[2], d = sum[3];

    for (size_t j = 0; j < n; j += LANES) {
        add_product(&a, row + j, q + j);
        if (count == 1) continue;
        add_product(&b, row + j, q + columns + j);
        add_product(&c, row + j, q + 2 * columns + j);
        add_product(&d, row + j, q + 3 * columns + j);
    }
    sum[0] = a, sum[1] = b, sum[2] = c, sum[3] = d;
}

/* `count`, 1 or GROUP, dot products of a row with the columns at q, into every `stride`-th
 * element of p. */
ALWAYS_INLINE void dots(const float *row, size_t columns, const float *q, int count, float *p,
                        size_t stride)
{
    part sum[PARTS][GROUP] = { { { 0 } } };
    size_t whole = columns / LANES * LANES;
    float last[LANES] = { 0 }, last_q[LANES] = { 0 }, lane[LANES];

    for (size_t at = 0; at < whole; at += CHUNK)
        for (size_t i = 0; i < PARTS; i++)
            add_part(sum[i], count, row + at + i * WIDTH, q + at + i * WIDTH, columns,
                     whole - at < CHUNK ? whole - at : CHUNK);
    memcpy(last, row + whole, (columns - whole) * sizeof *last);
    for (int k = 0; k < count; k++) {
        for (size_t i = 0; i < PARTS; i++) memcpy(lane + i * WIDTH, &sum[i][k], sizeof(part));
        memcpy(last_q, q + (size_t)k * columns + whole, (columns - whole) * sizeof *last_q);
        for (int j = 0; j < LANES; j++) lane[j] += last[j] * last_q[j];
        p[(size_t)k * stride] = sum_of_lanes(lane);
    }
}

void OF_ISA(factors_times)(const float *m, size_t rows, size_t columns, const float *q,
                           size_t rank, float *p, size_t stride)
{
    for (size_t i = 0; i < rows; i++) {
        const float *row = m + i * columns;
        size_t k = 0;

        for (; k + GROUP <= rank; k += GROUP)
            dots(row, columns, q + k * columns, GROUP, p + k * stride + i, stride);
        for (; k < rank; k++)
            dots(row, columns, q + k * columns, 1, p + k * stride + i, stride);
    }
}

/* Add to each of `outs` rows at `out` the `count` rows at `in`, by ascending row, times
 * c[out][in]. Rows of either are `stride` apart. */
ALWAYS_INLINE void combine(float *restrict out, int outs, const float *restrict in, int count,
                           size_t stride, size_t n, const float (*c)[GROUP])
{
    size_t whole = n / WIDTH * WIDTH;

    for (size_t j = 0; j < whole; j += WIDTH) {
        part x[GROUP];

        UNROLLED
        for (int i = 0; i < count; i++) memcpy(&x[i], in + (size_t)i * stride + j, sizeof x[i]);
        UNROLLED
        for (int k = 0; k < outs; k++) {
            float *at = out + (size_t)k * stride + j;
            part sum;

            memcpy(&sum, at, sizeof sum);
            UNROLLED
            for (int i = 0; i < count; i++) sum += c[k][i] * x[i];
            memcpy(at, &sum, sizeof sum);
        }
    }
    UNROLLED
    for (int k = 0; k < outs; k++)
        for (size_t j = whole; j < n; j++) {
            float *at = out + (size_t)k * stride + j;

            UNROLLED
            for (int i = 0; i < count; i++) *at += c[k][i] * in[(size_t)i * stride + j];
        }
}

/* `count` rows' share in `outs` of Q's columns. */
ALWAYS_INLINE void add_rows(float *restrict q, int outs, const float *restrict row, int count,
                            size_t columns, size_t n, const float *p, size_t rows)
{
    float c[GROUP][GROUP];

    UNROLLED
    for (int k = 0; k < outs; k++)
        UNROLLED
        for (int i = 0; i < count; i++) c[k][i] = p[(size_t)k * rows + (size_t)i];
    combine(q, outs, row, count, columns, n, c);
}

ALWAYS_INLINE void add_to_all(float *q, const float *row, int count, size_t columns, size_t n,
                              const float *p, size_t rows, size_t rank)
{
    size_t k = 0;

    for (; k + GROUP <= rank; k += GROUP)
        add_rows(q + k * columns, GROUP, row, count, columns, n, p + k * rows, rows);
    for (; k < rank; k++)
        add_rows(q + k * columns, 1, row, count, columns, n, p + k * rows, rows);
}

void OF_ISA(factors_transposed_times)(const float *m, size_t rows, size_t columns, const float *p,
                                      size_t rank, float *q)
{
    memset(q, 0, rank * columns * sizeof *q);
    for (size_t at = 0; at < columns; at += CHUNK) {
        size_t n = columns - at < CHUNK ? columns - at : CHUNK, i = 0;

        for (; i + GROUP <= rows; i += GROUP)
            add_to_all(q + at, m + i * columns + at, GROUP, columns, n, p + i, rows, rank);
        for (; i < rows; i++)
            add_to_all(q + at, m + i * columns + at, 1, columns, n, p + i, rows, rank);
    }
}

/* sum = some elements of row i of P Q'. */
ALWAYS_INLINE void product_of_row(const float *p, size_t stride, const float *q, size_t columns,
                                  size_t rank, float *sum, size_t n)
{
    float c[1][GROUP];
    size_t k = 0;

    memset(sum, 0, n * sizeof *sum);
    for (; k + GROUP <= rank; k += GROUP) {
        for (size_t g = 0; g < GROUP; g++) c[0][g] = p[(k + g) * stride];
        combine(sum, 1, q + k * columns, GROUP, columns, n, c);
    }
    for (; k < rank; k++) {
        c[0][0] = p[k * stride];
        combine(sum, 1, q + k * columns, 1, columns, n, c);
    }
}

uint32_t OF_ISA(factors_rebuild)(float *m, size_t rows, size_t columns, const float *p,
                                 size_t stride, const float *q, size_t rank, float *residual)
{
    float sum[CHUNK], nowhere[CHUNK];
    int32_t largest = 0;

    for (size_t i = 0; i < rows; i++)
        for (size_t at = 0; at < columns; at += CHUNK) {
            size_t n = columns - at < CHUNK ? columns - at : CHUNK;
            float *row = m + i * columns + at;
            float *rest = residual != NULL ? residual + i * columns + at : nowhere;

            product_of_row(p + i, stride, q + at, columns, rank, sum, n);
            INDEPENDENT
            for (size_t j = 0; j < n; j++) {
                int32_t magnitude = (int32_t)(float_bits(sum[j]) & 0x7fffffffu);
                float left = row[j] - sum[j]; /* infinite, it would stay so for ever */

                left = left > FLT_MAX ? FLT_MAX : left;
                rest[j] = left < -FLT_MAX ? -FLT_MAX : left;
                row[j] = sum[j];
                largest = magnitude > largest ? magnitude : largest;
            }
        }
    return (uint32_t)largest;
}

/* ---- columns ---- */
/* In double: products of floats neither overflow nor vanish there. */
ALWAYS_INLINE double wide_dot(const float *a, const float *b, size_t n)
{
    double lane[LANES] = { 0 };
    size_t whole = n / LANES * LANES;

    for (size_t i = 0; i < whole; i += LANES)
        for (size_t j = 0; j < LANES; j++) lane[j] += (double)a[i + j] * (double)b[i + j];
    for (size_t i = whole; i < n; i++) lane[i - whole] += (double)a[i] * (double)b[i];
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++) lane[j] += lane[j + half];
    return lane[0];
}

/* Gram-Schmidt, each column against those before it, and once more: what is left of a nearly
 * dependent column is rounding noise that need not be orthogonal to anything. Below 2^-16 of
 * its length it is noise alone, and the column is set to 0. */
void OF_ISA(factors_orthonormalise)(float *p, size_t rows, size_t rank)
{
    for (size_t k = 0; k < rank; k++) {
        float *restrict column = p + k * rows;
        double before = sqrt(wide_dot(column, column, rows)), norm, scale;

        for (size_t other = 0; other < 2 * k; other++) {
            const float *restrict earlier = p + other % k * rows;
            double share = wide_dot(column, earlier, rows);

            for (size_t i = 0; i < rows; i++)
                column[i] = (float)((double)column[i] - share * (double)earlier[i]);
        }
        norm = sqrt(wide_dot(column, column, rows));
        scale = norm > before * 0x1p-16 ? 1.0 / norm : 0.0;
        for (size_t i = 0; i < rows; i++)
            column[i] = scale > 0.0 ? (float)((double)column[i] * scale) : 0.0f;
    }
}
