/* SPDX-License-Identifier: Apache-2.0
 * factors.c - see factors.h. */
#include "engine/factors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/random.h"

/* Apart from all other sequences of comm.seed. */
#define FACTORS_STREAM 0x666163746f7273u

enum { ROWS_ELEMENTS = 16384 }; /* 64 KiB */

/* A tensor of the bucket. */
struct matrix {
    int id, part;
    size_t rows, columns, begin; /* begin: in the bucket */
    size_t p, q;                 /* of its factors in the arrays of all */
};

/* What a schedule sees of a bucket. */
struct extent {
    size_t elements, tile;
    int tiles;
    struct view view;
};

struct factors {
    struct bucket *bucket;
    const struct exchange_env *env;
    const struct factor_kernels *kernels;
    size_t rank, residual_size; /* of an element, in bytes */
    struct matrix *matrices;
    int count;
    float *p;            /* of all matrices, one behind the other */
    float *q[2];         /* likewise; rows as those of bucket->residual: 1 is written */
    uint8_t *residual[2]; /* by element, as the bucket keeps them; NULL without error feedback */
    float *rows;         /* rows_elements: the residual of some rows before it becomes bf16 */
    size_t rows_elements; /* as many rows at a time, one at least */
    enum { WHOLE, FIRST, SECOND } leg;
    struct extent whole, first, second;
    struct view_part first_parts[2], second_parts[2]; /* all in one piece, and its end */
};

void factors_draw(uint64_t seed, uint32_t step, int id, uint32_t column, float *q, size_t n)
{
    uint64_t key = random_u64(random_u64(seed, FACTORS_STREAM, (uint64_t)id), step, column);

    for (size_t i = 0; i < n; i++)
        q[i] = (float)((int32_t)random_u32(key, (uint32_t)i) >> 8 | 1) * 0x1p-23f;
}

/* ---- set-up ---- */
static void add_matrix(struct factors *f, const struct tensor *tensor, int id)
{
    struct matrix *m = &f->matrices[f->count++];
    size_t rows = tensor->shape[0], columns = tensor->elements / rows;

    *m = (struct matrix){ .id = id, .part = tensor->part, .rows = rows, .columns = columns,
                          .begin = tensor->offset, .p = f->first.elements,
                          .q = f->second.elements };
    f->first.elements += f->rank * rows;
    f->second.elements += f->rank * columns;
    if (columns > f->rows_elements) f->rows_elements = columns; /* one row at least */
}

static void cut(const struct factors *f, struct extent *e, struct view_part *parts)
{
    size_t tile = f->env->slice * (size_t)f->bucket->schedule->slices(f->env->cluster);

    e->tile = tile < e->elements ? tile : e->elements;
    e->tiles = (int)((e->elements + e->tile - 1) / e->tile);
    e->view = (struct view){ .parts = parts, .count = 1 };
    parts[1].begin = e->elements;
}

static strait_status allocate(struct factors *f)
{
    const struct device *device = f->env->device;
    int copies = f->env->may_skip ? 2 : 1;

    f->p = device->allocate(f->first.elements * sizeof(float));
    for (int row = 0; row < copies; row++)
        f->q[row] = device->allocate(f->second.elements * sizeof(float));
    for (int row = 0; row < copies && f->env->error_feedback; row++) {
        f->residual[row] = device->allocate(f->bucket->elements * f->residual_size);
        if (f->residual[row] == NULL) return error_memory("residuals");
        f->bucket->residual_bytes += f->bucket->elements * f->residual_size;
    }
    if (f->env->residual_bf16) f->rows = device->allocate(f->rows_elements * sizeof(float));
    if ((f->env->residual_bf16 && f->rows == NULL) || f->p == NULL || f->q[0] == NULL ||
        (copies == 2 && f->q[1] == NULL))
        return error_memory("factors");
    if (copies == 2) return STRAIT_OK;
    f->q[1] = f->q[0];
    f->residual[1] = f->residual[0];
    return STRAIT_OK;
}

strait_status factors_open(struct factors **out, struct bucket *bucket,
                           const struct exchange_env *env, const struct tensor_list *tensors,
                           uint32_t rank)
{
    struct factors *f = calloc(1, sizeof *f);
    strait_status st = STRAIT_ERR_MEMORY;

    if (f == NULL) return error_memory("factors");
    *f = (struct factors){ .bucket = bucket, .env = env, .rank = rank,
                           .residual_size = env->residual_bf16 ? 2 : sizeof(float),
                           .rows_elements = ROWS_ELEMENTS,
                           .kernels = &env->device->kernels->factors };
    f->whole = (struct extent){ bucket->elements, bucket->tile, bucket->tiles, bucket->view };
    f->matrices = calloc((size_t)bucket->view.count, sizeof *f->matrices);
    if (f->matrices == NULL) {
        error_memory("factors");
        goto done;
    }
    for (int id = 0; id < tensors->count; id++)
        if (tensors->items[id].bucket == bucket->index) add_matrix(f, &tensors->items[id], id);
    cut(f, &f->first, f->first_parts);
    cut(f, &f->second, f->second_parts);
    if ((st = allocate(f))) goto done;
    for (int i = 0; i < f->count; i++)
        for (uint32_t k = 0; k < rank; k++)
            factors_draw(env->seed, 0, f->matrices[i].id, k,
                         f->q[0] + f->matrices[i].q + k * f->matrices[i].columns,
                         f->matrices[i].columns);
    *out = f;
    f = NULL;
done:
    factors_close(f);
    return st;
}

static void show(struct factors *f, const struct extent *e)
{
    struct bucket *b = f->bucket;

    b->elements = e->elements;
    b->tile = e->tile;
    b->tiles = e->tiles;
    b->view = e->view;
}

void factors_close(struct factors *f)
{
    if (f == NULL) return;
    show(f, &f->whole); /* a step may have been given up on its way */
    for (int row = 0; row < (f->env->may_skip ? 2 : 1); row++) {
        f->env->device->release(f->q[row]);
        f->env->device->release(f->residual[row]);
    }
    f->env->device->release(f->p);
    f->env->device->release(f->rows);
    free(f->matrices);
    free(f);
}

/* ---- a step ---- */
static float *gradient_of(const struct factors *f, const struct matrix *m)
{
    return f->whole.view.parts[m->part].at;
}

/* A few rows of a matrix, which a cache holds from one loop to the next. */
struct rows {
    size_t count, begin, elements; /* begin: in the bucket */
    float *grad;
};

/* The first rows from row `at` on; false: there are none. */
static bool rows_at(const struct factors *f, const struct matrix *m, size_t at, struct rows *r)
{
    size_t most = f->rows_elements / m->columns, left = m->rows - at;

    *r = (struct rows){ .count = left < most ? left : most,
                        .begin = m->begin + at * m->columns,
                        .grad = gradient_of(f, m) + at * m->columns };
    r->elements = r->count * m->columns;
    return left > 0;
}

static uint8_t *residual_of(const struct factors *f, const struct rows *r, int row)
{
    return f->residual[0] != NULL ? f->residual[row] + r->begin * f->residual_size : NULL;
}

/* M, in the gradient's place. */
static void add_what_is_kept(struct factors *f, const struct rows *r)
{
    const struct kernels *kernels = f->env->device->kernels;
    const uint8_t *kept = residual_of(f, r, 0);
    const float *values = bucket_momentum(f->bucket, f->env, r->begin, r->elements, r->grad);

    if (values != r->grad) memcpy(r->grad, values, r->elements * sizeof *values);
    if (kept == NULL) return;
    if (f->env->residual_bf16) kernels->bf16.decode_add(kept, r->elements, NULL, r->grad);
    else kernels->add(r->grad, (const float *)kept, r->elements);
}

void factors_begin(struct factors *f)
{
    double begin = clock_s();
    struct rows r;

    for (int i = 0; i < f->count; i++) {
        const struct matrix *m = &f->matrices[i];

        for (size_t at = 0; rows_at(f, m, at, &r); at += r.count) {
            add_what_is_kept(f, &r);
            f->kernels->times(r.grad, r.count, m->columns, f->q[0] + m->q, f->rank,
                              f->p + m->p + at, m->rows);
        }
    }
    f->leg = FIRST;
    f->first_parts[0].at = f->p;
    show(f, &f->first);
    f->bucket->factor = 0;
    f->bucket->encode_s += clock_s() - begin;
}

static void begin_second(struct factors *f)
{
    double begin = clock_s();

    for (int i = 0; i < f->count; i++) {
        const struct matrix *m = &f->matrices[i];

        f->kernels->orthonormalise(f->p + m->p, m->rows, f->rank);
        f->kernels->transposed_times(gradient_of(f, m), m->rows, m->columns, f->p + m->p, f->rank,
                                     f->q[1] + m->q);
    }
    f->leg = SECOND;
    f->second_parts[0].at = f->q[1];
    show(f, &f->second);
    f->bucket->factor = 1;
    f->bucket->tiles_done = 0;
    f->bucket->encode_s += clock_s() - begin;
}

/* The next step needs a column's direction alone. With a largest element of 0.5 to 1 it makes
 * P neither overflow, but for a huge gradient, nor vanish; a power of two changes no digit. A
 * column that is 0, for want of a gradient or of rank, would stay 0: one drawn anew takes its
 * place. */
static void prepare_column(const struct factors *f, int id, uint32_t column, float *q, size_t n)
{
    float largest = bits_float(f->env->device->kernels->largest(q, n));
    int exponent;

    if (largest == 0.0f) {
        factors_draw(f->env->seed, f->bucket->step + 1, id, column, q, n);
        return;
    }
    frexpf(largest, &exponent);
    for (size_t i = 0; i < n; i++) q[i] = ldexpf(q[i], -exponent);
}

/* The gradient and what it lacks; returns the largest magnitude bits of the former. */
static uint32_t rebuild_matrix(const struct factors *f, const struct matrix *m)
{
    uint32_t largest = 0;
    struct rows r;

    for (size_t at = 0; rows_at(f, m, at, &r); at += r.count) {
        uint8_t *residual = residual_of(f, &r, 1);
        bool as_bf16 = residual != NULL && f->env->residual_bf16;
        uint32_t bits = f->kernels->rebuild(r.grad, r.count, m->columns, f->p + m->p + at, m->rows,
                                            f->q[1] + m->q, f->rank,
                                            as_bf16 ? f->rows : (float *)residual);

        if (as_bf16) f->env->device->kernels->to_bf16(f->rows, r.elements, residual);
        if (bits > largest) largest = bits;
    }
    return largest;
}

static void rebuild(struct factors *f)
{
    double begin = clock_s();

    for (int i = 0; i < f->count; i++) {
        const struct matrix *m = &f->matrices[i];

        /* factors that are finite may have a product that is not: the same on all ranks */
        f->bucket->poisoned |= rebuild_matrix(f, m) >= NONFINITE_BITS;
        for (uint32_t k = 0; k < f->rank; k++)
            prepare_column(f, m->id, k, f->q[1] + m->q + k * m->columns, m->columns);
    }
    f->bucket->decode_s += clock_s() - begin;
}

bool factors_go_on(struct factors *f)
{
    bool first = f->leg == FIRST;

    /* on all ranks alike: nothing is left to exchange for a step that will not count */
    if (first && !f->bucket->poisoned) {
        begin_second(f);
        return true;
    }
    if (!f->bucket->poisoned) rebuild(f);
    f->leg = WHOLE;
    show(f, &f->whole);
    return false;
}

bool factors_may_start_second(const struct factors *f, bool *over)
{
    *over = f->leg == WHOLE;
    return f->leg == SECOND;
}

void factors_commit(struct factors *f)
{
    float *q;
    uint8_t *residual;

    if (!f->bucket->codec->factored) return; /* a warm-up step in fp32 leaves all as it is */
    q = f->q[0];
    f->q[0] = f->q[1];
    f->q[1] = q;
    residual = f->residual[0];
    f->residual[0] = f->residual[1];
    f->residual[1] = residual;
}
