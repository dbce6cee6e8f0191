/* SPDX-License-Identifier: Apache-2.0
 * host.c - the CPU as a device. */
#include <stdlib.h>
#include <string.h>

#include "device/device.h"

enum { ALIGNMENT = 64 }; /* one cache line, one AVX-512 register */

static void *host_allocate(size_t bytes)
{
    size_t rounded = (bytes / ALIGNMENT + 1) * ALIGNMENT;
    void *memory = aligned_alloc(ALIGNMENT, rounded);

    if (memory != NULL) memset(memory, 0, rounded);
    return memory;
}

const struct device device_host = {
    .name = "host",
    .kernels = &kernels_host,
    .allocate = host_allocate,
    .release = free,
};
