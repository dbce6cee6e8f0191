/* SPDX-License-Identifier: Apache-2.0
 * host.c - the CPU as a device. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/device.h"

enum { ALIGNMENT = 64 }; /* one cache line, one AVX-512 register */

static void *host_allocate(size_t bytes)
{
    size_t rounded = (bytes / ALIGNMENT + 1) * ALIGNMENT;
    void *memory = aligned_alloc(ALIGNMENT, rounded);

    if (memory != NULL) memset(memory, 0, rounded);
    return memory;
}

static struct device host = { .name = "host", .allocate = host_allocate, .release = free };

static void choose_kernels(void)
{
    const char *name = getenv("STRAIT_KERNELS");

    host.kernels = name != NULL ? kernels_by_name(name) : kernels_host();
    if (host.kernels != NULL) return;
    host.kernels = kernels_host();
    log_write(LOG_WARN, "STRAIT_KERNELS=%s does not run on this processor; taking %s", name,
              host.kernels->name);
}

const struct device *device_host_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, choose_kernels);
    return &host;
}
