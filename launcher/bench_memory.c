/* SPDX-License-Identifier: Apache-2.0
 * bench_memory.c - what a variant makes this process hold: its resident memory before and
 * after, and the largest in between, which the kernel keeps and forgets on request. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench_variant.h"

/* A line of /proc/self/status, in bytes; NaN: there is none. */
static double status_bytes(const char *name)
{
    char line[128];
    double kib = NAN;
    FILE *file = fopen("/proc/self/status", "re");

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0) sscanf(line + strlen(name), ": %lf", &kib);
    if (file != NULL) fclose(file);
    return kib * 1024;
}

/* 5: forget the largest resident memory so far (proc(5)). */
static bool forget_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "we");
    bool written = file != NULL && fputs("5", file) >= 0;

    return file != NULL && fclose(file) == 0 && written;
}

void bench_memory_begin(struct bench_memory *m)
{
    m->before = forget_peak() ? status_bytes("VmRSS") : NAN;
}

void bench_memory_end(struct bench_memory *m)
{
    double peak = m->held + status_bytes("VmHWM") - m->before;

    m->held += status_bytes("VmRSS") - m->before;
    if (!(peak <= m->peak)) m->peak = peak; /* NaN stays: nothing was measured */
}
