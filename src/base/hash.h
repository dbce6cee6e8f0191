/* SPDX-License-Identifier: Apache-2.0
 * hash.h - xxHash64 of bytes: fingerprints and plans, never secrets. */
#ifndef STRAIT_BASE_HASH_H
#define STRAIT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *bytes, size_t count, uint64_t seed);

#endif
