/* SPDX-License-Identifier: Apache-2.0
 * reference.c - see reference.h. */
#include "codec/reference.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

double reference_round(double v, int digits, int lowest, double largest)
{
    double rounded;
    int exponent;

    if (v == 0) return v;
    frexp(v, &exponent); /* |v| = m * 2^exponent, m in [0.5, 1) */
    exponent = exponent - digits > lowest ? exponent - digits : lowest;
    rounded = ldexp(nearbyint(ldexp(v, -exponent)), exponent);
    if (fabs(rounded) > largest) rounded = copysign(largest, v);
    return copysign(rounded, v);
}

/* How element i of a block is rounded. */
struct rule {
    bool stochastic;
    uint64_t key, first;
};

static uint32_t drawn(const struct rule *rule, size_t i)
{
    return random_u32(rule->key, (uint32_t)(rule->first + i));
}

/* One of 2^24 numbers around 0, 2^-24 apart. */
static double noise(const struct rule *rule, size_t i)
{
    uint32_t u = (drawn(rule, i) + 0x80000000u) >> 8;

    return rule->stochastic ? (2.0 * u + 1) * 0x1p-25 - 0.5 : 0;
}

static double whole(double v, const struct rule *rule, size_t i)
{
    return nearbyint((double)(float)(v + noise(rule, i)));
}

/* e4m3 by chance: 20 bits of chance decide about 20 dropped bits. */
static double e4m3(double v, const struct rule *rule, size_t i)
{
    double unit, m = fabs(v);
    int exponent;

    if (!rule->stochastic) return reference_round(v, 4, -9, 448);
    if (m < 0x1p-6) return copysign(whole(m * 512, rule, i) / 512, v);
    frexp(m, &exponent);
    unit = ldexp(1, exponent - 4);
    return copysign(floor(m / unit + (drawn(rule, i) >> 12) * 0x1p-20) * unit, v);
}

static float scale_of(const float *v, size_t n, double top)
{
    double largest = 0;
    float scale;

    for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs((double)v[i]));
    scale = (float)(largest / top);
    if (scale < FLT_MIN) scale = 0;
    while (top * (double)scale > FLT_MAX) scale = nextafterf(scale, 0);
    return scale;
}

/* v / scale as `round` has it; scale is largest / top. */
static void rounded_block(const float *v, size_t n, double top, const struct rule *rule,
                          double (*round)(double, const struct rule *, size_t), float *out)
{
    float scale = scale_of(v, n, top), inverse = scale > 0 ? 1.0f / scale : 0;

    for (size_t i = 0; i < n; i++)
        out[i] = (float)fmin(top, fmax(-top, round((double)(v[i] * inverse), rule, i))) * scale;
}

static void int2_by_chance(const float *v, size_t n, const struct rule *rule, float *out)
{
    float scale = scale_of(v, n, 3), inverse = scale > 0 ? 1.0f / scale : 0;

    for (size_t i = 0; i < n; i++) {
        double q = whole((double)((v[i] * inverse + 3) * 0.5f), rule, i);

        out[i] = (float)(2 * fmin(3, fmax(0, q)) - 3) * scale;
    }
}

/* The mean of the magnitudes of the elements of one sign, times 2^-17, in the order of
 * docs/wire-format.md. */
static float lane_mean(const float *v, size_t n, int sign)
{
    float lane[16] = { 0 };
    int count = 0;

    for (size_t i = 0; i < n; i++) {
        if ((v[i] < 0) != (sign < 0)) continue;
        lane[i % 16] += fabsf(v[i]) * 0x1p-17f;
        count++;
    }
    for (int h = 8; h > 0; h /= 2)
        for (int j = 0; j < h; j++) lane[j] += lane[j + h];
    return count > 0 ? lane[0] / (float)count : 0;
}

static float scaled_up(double mean, double most)
{
    double scale = fmin(mean, most) * 0x1p17;

    return scale < FLT_MIN ? 0 : (float)scale;
}

static void int2_block(const float *v, size_t n, float *out)
{
    float lane[16] = { 0 }, largest = 0, unit, scale;

    for (size_t i = 0; i < n; i++) largest = fmaxf(largest, fabsf(v[i]));
    unit = largest < 0x1p126f ? 1 / largest : 0x1p-126f;
    for (size_t i = 0; i < n; i++) lane[i % 16] += (v[i] * unit) * (v[i] * unit);
    for (int h = 8; h > 0; h /= 2)
        for (int j = 0; j < h; j++) lane[j] += lane[j + h];
    scale = fminf(0.5f * sqrtf(lane[0] / (float)n) / unit, 0x1.5p126f);
    if (largest < FLT_MIN || scale < FLT_MIN) scale = 0;

    for (size_t i = 0; i < n; i++) {
        double outer = fabs((double)v[i]) > 2.0 * (double)scale ||
                       (double)v[i] == 2.0 * (double)scale ? 3 : 1;

        out[i] = (float)(v[i] < 0 ? -outer : outer) * scale;
    }
}

static void onebit_block(const float *v, size_t n, float *out)
{
    float above = scaled_up((double)lane_mean(v, n, 1), (double)FLT_MAX * 0x1p-17);
    float below = scaled_up((double)lane_mean(v, n, -1), (double)FLT_MAX * 0x1p-17);

    for (size_t i = 0; i < n; i++) out[i] = v[i] < 0 ? -below : above;
}

struct item { float v; size_t index; };

static int by_magnitude_then_index(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (fabsf(x->v) != fabsf(y->v)) return fabsf(x->v) < fabsf(y->v) ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

static void choose(const float *v, size_t n, uint32_t k, bool *chosen)
{
    struct item *items = malloc((n + 1) * sizeof *items);

    for (size_t i = 0; i < n; i++) items[i] = (struct item){ v[i], i };
    qsort(items, n, sizeof *items, by_magnitude_then_index);
    memset(chosen, 0, n * sizeof *chosen);
    for (uint32_t j = 0; j < k; j++) chosen[items[j].index] = true;
    free(items);
}

/* Signs, and the mean of the magnitudes up to the mean of all, or of those above. */
static void two_levels(const float *v, size_t n, float *out)
{
    double mean = 0, sum[2] = { 0, 0 }, level[2] = { 0, 0 };
    int count[2] = { 0, 0 };

    for (size_t i = 0; i < n; i++) mean += fabs((double)v[i]);
    mean /= (double)n;
    for (size_t i = 0; i < n; i++) {
        sum[fabs((double)v[i]) > mean] += fabs((double)v[i]);
        count[fabs((double)v[i]) > mean]++;
    }
    for (int b = 0; b < 2; b++) {
        level[b] = count[b] > 0 ? (double)(float)(sum[b] / count[b]) : level[0];
        if (level[b] < (double)FLT_MIN) level[b] = 0;
    }
    for (size_t i = 0; i < n; i++) {
        double m = fabs((double)v[i]);

        out[i] = copysignf((float)level[m > 0.5 * level[0] + 0.5 * level[1]], v[i]);
    }
}

/* Code what is chosen, by ascending index, 256 values at a time; the others are 0. */
static void topk(const float *v, size_t n, uint32_t k, int coding, float *out)
{
    static const struct rule nearest;
    struct { float v[256], coded[256]; size_t index[256], count; } b = { .count = 0 };
    bool *chosen = malloc(n + 1);

    choose(v, n, k, chosen);
    for (size_t i = 0; i <= n; i++) {
        if (i < n) out[i] = 0;
        if (i < n && chosen[i]) {
            b.v[b.count] = b.coded[b.count] = v[i];
            b.index[b.count++] = i;
        }
        if (b.count == 0 || (b.count < 256 && i < n)) continue;
        for (size_t j = 0; coding == TOPK_FP16 && j < b.count; j++)
            b.coded[j] = (float)reference_round(b.v[j], 11, -24, 65504.0);
        if (coding == TOPK_INT8) rounded_block(b.v, b.count, 127, &nearest, whole, b.coded);
        if (coding == TOPK_INT2) two_levels(b.v, b.count, b.coded);
        for (size_t j = 0; j < b.count; j++) out[b.index[j]] = b.coded[j];
        b.count = 0;
    }
    free(chosen);
}

/* The element of each run whose part of the run is the generator's part of 2^32. */
static void randk(const float *v, size_t n, uint32_t k, struct codec_draw draw, float *out)
{
    memset(out, 0, n * sizeof *out);
    for (uint64_t j = 0; j < k; j++) {
        uint64_t begin = j * n / k, end = (j + 1) * n / k;
        double part = (double)(random_mix(draw.key ^ (draw.first + begin)) >> 32) / 0x1p32;
        size_t at = begin + (size_t)floor(part * (double)(end - begin));

        out[at] = v[at];
    }
}

static void block(const char *codec, const float *v, size_t n, const struct rule *rule, float *out)
{
    if (strcmp(codec, "fp8") == 0) rounded_block(v, n, 448, rule, e4m3, out);
    if (strcmp(codec, "int8") == 0) rounded_block(v, n, 127, rule, whole, out);
    if (strcmp(codec, "int4") == 0) rounded_block(v, n, 7, rule, whole, out);
    if (strcmp(codec, "int2") == 0 && rule->stochastic) int2_by_chance(v, n, rule, out);
    if (strcmp(codec, "int2") == 0 && !rule->stochastic) int2_block(v, n, out);
    if (strcmp(codec, "onebit") == 0) onebit_block(v, n, out);
}

void reference_decoded(const struct codec_shape *shape, struct codec_draw draw, const float *v,
                       float *out)
{
    const char *codec = shape->codec->name;
    size_t n = shape->elements, param = shape->param;

    if (strcmp(codec, "topk") == 0) {
        topk(v, n, shape->param, shape->variant >> 1, out);
        return;
    }
    if (strcmp(codec, "randk") == 0) {
        randk(v, n, shape->param, draw, out);
        return;
    }
    if (strcmp(codec, "fp32") == 0 || shape->codec->factored) {
        memcpy(out, v, n * sizeof *out);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (strcmp(codec, "bf16") == 0)
            out[i] = (float)reference_round(v[i], 8, -133, 0x1.fep127);
        if (strcmp(codec, "fp16") == 0)
            out[i] = (float)reference_round(v[i], 11, -24, 65504.0);
        if (param > 0 && i % param == 0) {
            struct rule rule = { shape->stochastic, draw.noise, draw.first + i };

            block(codec, v + i, n - i < param ? n - i : param, &rule, out + i);
        }
    }
}
