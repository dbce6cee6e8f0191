/* SPDX-License-Identifier: Apache-2.0
 * clock.h - monotonic time in seconds. */
#ifndef STRAIT_BASE_CLOCK_H
#define STRAIT_BASE_CLOCK_H

#include <time.h>

static inline double clock_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline void clock_sleep_us(long us)
{
    struct timespec pause = { us / 1000000, us % 1000000 * 1000 };

    nanosleep(&pause, NULL);
}

#endif
