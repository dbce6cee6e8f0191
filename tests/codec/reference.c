/* SPDX-License-Identifier: Apache-2.0
 * reference.c - see reference.h. */
#include "codec/reference.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static float int8_scale(const float *v, size_t n)
{
    double largest = 0;
    float scale;

    for (size_t i = 0; i < n; i++) largest = fmax(largest, fabs((double)v[i]));
    scale = (float)(largest / 127.0);
    if (scale < FLT_MIN) return 0;
    while (127.0 * (double)scale > FLT_MAX) scale = nextafterf(scale, 0);
    return scale;
}

static void int8_block(const float *v, size_t n, float *out)
{
    float scale = int8_scale(v, n), inverse = scale > 0 ? 1.0f / scale : 0;

    for (size_t i = 0; i < n; i++) {
        double code = nearbyint((double)(v[i] * inverse));

        code = fmin(127, fmax(-127, code));
        out[i] = (float)code * scale;
    }
}

struct item { float v; size_t index; };

static int by_magnitude_then_index(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (fabsf(x->v) != fabsf(y->v)) return fabsf(x->v) < fabsf(y->v) ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

static void topk(const float *v, size_t n, uint32_t k, float *out)
{
    struct item *items = malloc((n + 1) * sizeof *items);

    for (size_t i = 0; i < n; i++) items[i] = (struct item){ v[i], i };
    qsort(items, n, sizeof *items, by_magnitude_then_index);
    memset(out, 0, n * sizeof *out);
    for (uint32_t j = 0; j < k; j++) out[items[j].index] += items[j].v;
    free(items);
}

void reference_decoded(const char *codec, const float *v, size_t n, uint32_t param, float *out)
{
    if (strcmp(codec, "topk") == 0) {
        topk(v, n, param, out);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (strcmp(codec, "fp32") == 0) out[i] = v[i];
        if (strcmp(codec, "bf16") == 0)
            out[i] = (float)reference_round(v[i], 8, -133, 0x1.fep127);
        if (strcmp(codec, "fp16") == 0)
            out[i] = (float)reference_round(v[i], 11, -24, 65504.0);
        if (strcmp(codec, "int8") == 0 && i % param == 0)
            int8_block(v + i, n - i < param ? n - i : param, out + i);
    }
}
