/* SPDX-License-Identifier: Apache-2.0
 * select.c - which of the compiled instruction sets this processor runs. */
#include <stdbool.h>
#include <string.h>

#include "kernels.h"

enum { TABLES_MAX = 3 };

const struct kernels *const *kernels_tables(void)
{
    static const struct kernels *const with[][TABLES_MAX + 1] = {
        { &kernels_baseline },
#ifdef HAVE_X86_KERNELS
        { &kernels_baseline, &kernels_avx2 },
        { &kernels_baseline, &kernels_avx2, &kernels_avx512 },
#endif
    };
    int level = 0;

#ifdef HAVE_X86_KERNELS
    bool avx2 = __builtin_cpu_supports("avx2");
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");

    level = avx2 ? avx512 ? 2 : 1 : 0;
#endif
    return with[level];
}

const struct kernels *kernels_host(void)
{
    const struct kernels *const *table = kernels_tables();

    while (table[1] != NULL) table++;
    return *table;
}

const struct kernels *kernels_by_name(const char *name)
{
    for (const struct kernels *const *table = kernels_tables(); *table != NULL; table++)
        if (strcmp((*table)->name, name) == 0) return *table;
    return NULL;
}
