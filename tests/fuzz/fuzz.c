/* SPDX-License-Identifier: Apache-2.0
 * fuzz.c - libFuzzer's entry: the target that the variable STRAIT_FUZZ names. Built and run by
 * bench/fuzz. */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz/target.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const char *name = getenv("STRAIT_FUZZ");

    (void)argc;
    (void)argv;
    if (name != NULL && target_choose(name)) return 0;
    fprintf(stderr, "STRAIT_FUZZ names no target; there are:\n");
    for (int i = 0; target_name(i) != NULL; i++) fprintf(stderr, "target %s\n", target_name(i));
    exit(2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    target_run(data, size);
    return 0;
}
