/* SPDX-License-Identifier: Apache-2.0
 * clip.c - see clip.h. */
#include "engine/clip.h"

#include <math.h>

enum { LANES = 8 };

/* In double: squares of floats neither overflow nor vanish there. */
static double norm_of(const float *x, size_t n)
{
    double lane[LANES] = { 0 }, sum = 0;
    size_t whole = n / LANES * LANES;

    for (size_t i = 0; i < whole; i += LANES)
        for (size_t j = 0; j < LANES; j++) lane[j] += (double)x[i + j] * (double)x[i + j];
    for (size_t i = whole; i < n; i++) lane[i - whole] += (double)x[i] * (double)x[i];
    for (size_t j = 0; j < LANES; j++) sum += lane[j];
    return sqrt(sum);
}

void clip_norm(float *grad, size_t n, double limit)
{
    double norm = norm_of(grad, n);
    float scale = (float)(limit / norm);

    if (!isfinite(norm) || norm <= limit) return;
    for (size_t i = 0; i < n; i++) grad[i] *= scale;
}
