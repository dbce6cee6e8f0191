/* SPDX-License-Identifier: Apache-2.0
 * sampler.h - which samples a rank sees in a step.
 *
 * Every epoch has its own order of all training samples, from the seed alone. A global
 * batch is the next ranks * batch samples of it, the last one what is left; each rank
 * takes its even share of every global batch, which may be nothing at the end. So N
 * ranks see together what one rank with N times the batch sees. */
#ifndef STRAIT_TRAIN_SAMPLER_H
#define STRAIT_TRAIN_SAMPLER_H

#include <stddef.h>
#include <stdint.h>

struct share {
    size_t global_count; /* samples of the step over all ranks */
    size_t begin, count; /* this rank's, in the epoch's order */
};

/* The order of epoch `epoch`: a permutation of 0 .. n - 1. */
void sampler_shuffle(uint32_t *order, size_t n, uint64_t seed, uint64_t epoch);

size_t sampler_steps(size_t samples, size_t batch, int ranks);
struct share sampler_share(size_t samples, size_t batch, int ranks, int rank, size_t step);

#endif
