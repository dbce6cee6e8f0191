/* SPDX-License-Identifier: Apache-2.0
 * ranks.c - see ranks.h. */
#include "lib/ranks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int ranks_rank, ranks_size;
static int checks, failures;

void ranks_begin(void)
{
    int level;

    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &ranks_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_size);
}

int ranks_end(void)
{
    if (ranks_rank == 0) printf("1..%d\n", checks);
    fflush(stdout);
    MPI_Finalize();
    return failures > 0;
}

void ranks_check(bool ok, const char *name, const char *format, ...)
{
    int mine = ok, all;
    va_list args;

    if (!ok) {
        fprintf(stderr, "# rank %d: %s: ", ranks_rank, name);
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fprintf(stderr, "\n");
    }
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    checks++;
    failures += !all;
    if (ranks_rank == 0) printf("%s - %s (%d ranks)\n", all ? "ok" : "not ok", name, ranks_size);
    fflush(stdout);
}

void ranks_must(strait_status status, const char *what)
{
    if (status == STRAIT_OK) return;
    fprintf(stderr, "# rank %d: %s: %s\n", ranks_rank, what, strait_error_message());
    MPI_Abort(MPI_COMM_WORLD, 1);
}

strait_config *ranks_config(const char *const *assignments)
{
    strait_config *config;

    ranks_must(strait_config_create(&config), "configuration");
    for (; *assignments != NULL; assignments++)
        ranks_must(strait_config_set(config, *assignments), *assignments);
    return config;
}
