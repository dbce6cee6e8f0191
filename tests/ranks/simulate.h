/* SPDX-License-Identifier: Apache-2.0
 * simulate.h - all ranks' exchanges of one bucket on one rank, without any transport:
 * the plain reference for schedules. Codecs are trusted here; their own tests are in
 * tests/codec. */
#ifndef STRAIT_TESTS_SIMULATE_H
#define STRAIT_TESTS_SIMULATE_H

#include <stdbool.h>
#include <stddef.h>

#include "codec/codec.h"

/* comm.seed of what is simulated. */
#define SIMULATION_SEED 1

struct simulation;

struct simulation *simulation_new(const struct codec *codec, const struct codec_settings *settings,
                                  size_t elements, int ranks, int bucket);
void simulation_free(struct simulation *s);

/* The node of each rank, for hierarchical: the array outlives the simulation. */
void simulation_place(struct simulation *s, const int *nodes);
/* From the next step on. */
void simulation_settings(struct simulation *s, const struct codec_settings *settings);

/* From the first step on, residuals are kept as bf16. */
void simulation_keep_bf16(struct simulation *s);

/* From the first step on, every rank keeps a velocity; where it sent an element, that starts
 * at 0 again if the codec is sparse. */
void simulation_momentum(struct simulation *s, float momentum, bool sparse);

/* A step that all ranks skip. */
void simulation_skip(struct simulation *s);

/* The next step by the named schedule with slices of that many elements: grads[r] are rank r's
 * n floats; `average` receives what all ranks must get. Of dense, the sum is exact. */
void simulation_step(struct simulation *s, const char *schedule, size_t slice,
                     float *const *grads, float *average);

#endif
