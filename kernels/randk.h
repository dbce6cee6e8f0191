/* SPDX-License-Identifier: Apache-2.0
 * randk.h - which elements randk sends: for its loops and whoever needs to know. */
#ifndef STRAIT_KERNELS_RANDK_H
#define STRAIT_KERNELS_RANDK_H

#include <stddef.h>
#include <stdint.h>

#include "base/random.h"

/* Of n elements in k runs whose lengths differ by at most one, the element drawn from run j. */
static inline size_t randk_position(size_t n, uint32_t k, uint32_t j, uint64_t key, uint64_t first)
{
    uint64_t begin = j * (uint64_t)n / k, length = (j + (uint64_t)1) * n / k - begin;

    return (size_t)(begin + ((random_mix(key ^ (first + begin)) >> 32) * length >> 32));
}

#endif
