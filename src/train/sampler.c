/* SPDX-License-Identifier: Apache-2.0
 * sampler.c - see sampler.h. */
#include "train/sampler.h"

#include "base/random.h"

void sampler_shuffle(uint32_t *order, size_t n, uint64_t seed, uint64_t epoch)
{
    for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    for (size_t i = n; i > 1; i--) { /* Fisher and Yates */
        size_t j = (size_t)(random_unit(seed, epoch + 1, i) * (double)i);
        uint32_t held = order[i - 1];

        order[i - 1] = order[j];
        order[j] = held;
    }
}

size_t sampler_steps(size_t samples, size_t batch, int ranks)
{
    size_t global = batch * (size_t)ranks;

    return (samples + global - 1) / global;
}

struct share sampler_share(size_t samples, size_t batch, int ranks, int rank, size_t step)
{
    size_t n = (size_t)ranks, r = (size_t)rank, first = step * batch * n;
    size_t count = samples - first < batch * n ? samples - first : batch * n;

    return (struct share){ .global_count = count, .begin = first + count * r / n,
                           .count = count * (r + 1) / n - count * r / n };
}
