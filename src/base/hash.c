/* SPDX-License-Identifier: Apache-2.0
 * hash.c - see hash.h. */
#include "base/hash.h"

#include <xxhash.h>

uint64_t hash_bytes(const void *bytes, size_t count, uint64_t seed)
{
    return XXH64(bytes, count, seed);
}
