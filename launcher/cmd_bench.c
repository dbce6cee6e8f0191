/* SPDX-License-Identifier: Apache-2.0
 * cmd_bench.c - `strait bench allreduce|codec|p2p`: find the benchmark and run it. */
#include <string.h>

#include "bench.h"

static const struct command benchmarks[] = {
    { "allreduce", "averaging over the ranks, by codec, schedule and size, beside MPI_Allreduce",
      bench_allreduce },
    { "codec", "encoding and decoding on one core, beside memcpy", bench_codec },
    { "p2p", "latency and bandwidth between rank 0 and every other rank", bench_p2p },
};

static void print_help(void)
{
    printf("Usage: mpirun -np N strait bench allreduce [OPTIONS]\n"
           "       strait bench codec [OPTIONS]\n"
           "       mpirun -np N strait bench p2p [OPTIONS]\n\n");
    for (size_t i = 0; i < sizeof benchmarks / sizeof benchmarks[0]; i++)
        printf("  %-10s %s\n", benchmarks[i].name, benchmarks[i].summary);
    printf("\n`strait bench NAME --help` tells the options.\n");
}

int cmd_bench(int argc, char **argv)
{
    const char *name = argc > 0 ? argv[0] : "";

    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        if (speaks()) print_help();
        return 0;
    }
    for (size_t i = 0; i < sizeof benchmarks / sizeof benchmarks[0]; i++)
        if (strcmp(benchmarks[i].name, name) == 0)
            return benchmarks[i].run(argc - 1, argv + 1);
    return usage_error("bench", "say allreduce, codec or p2p");
}
