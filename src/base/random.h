/* SPDX-License-Identifier: Apache-2.0
 * random.h - numbers that depend on seed, stream and index alone.
 *
 * A counter-based generator (the finaliser of SplitMix64, Steele, Lea and Flood 2014,
 * over a keyed counter): no state to save, and the same bits on every rank, whatever its
 * libc, because only integers and exact divisions are used. */
#ifndef STRAIT_BASE_RANDOM_H
#define STRAIT_BASE_RANDOM_H

#include <stdint.h>

static inline uint64_t random_mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline uint64_t random_u64(uint64_t seed, uint64_t stream, uint64_t index)
{
    return random_mix(random_mix(random_mix(seed) ^ stream) ^ index);
}

/* Uniform in [0, 1), 53 bits. */
static inline double random_unit(uint64_t seed, uint64_t stream, uint64_t index)
{
    return (double)(random_u64(seed, stream, index) >> 11) * 0x1p-53;
}

/* 32 bits, from 32-bit products alone: what loops over many elements vectorise. The mixer
 * lowbias32 (C. Wellons, "Prospecting for hash functions", 2018) with half the key before
 * and half within. */
static inline uint32_t random_u32(uint64_t key, uint32_t index)
{
    uint32_t h = index ^ (uint32_t)key;

    h = (h ^ h >> 16) * 0x7feb352du;
    h = ((h ^ h >> 15) + (uint32_t)(key >> 32)) * 0x846ca68bu;
    return h ^ h >> 16;
}

#endif
