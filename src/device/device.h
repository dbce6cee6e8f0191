/* SPDX-License-Identifier: Apache-2.0
 * device.h - where tensors live: memory and the kernels that work on it. */
#ifndef STRAIT_DEVICE_DEVICE_H
#define STRAIT_DEVICE_DEVICE_H

#include <stddef.h>

#include "kernels.h"

struct device {
    const char *name;
    const struct kernels *kernels;
    /* Zeroed memory, aligned for any vector load; NULL when there is none left. */
    void *(*allocate)(size_t bytes);
    void (*release)(void *memory); /* NULL is allowed */
};

/* The CPU, with the best kernels that it runs, or those that STRAIT_KERNELS names. A name
 * that does not run here gets a warning and the best. */
const struct device *device_host_open(void);

#endif
