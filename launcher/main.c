/* SPDX-License-Identifier: Apache-2.0
 * main.c - `strait`: find the subcommand and run it. */
#include <string.h>

#include "launcher.h"

static const struct command commands[] = {
    { "train", "train a model with the ranks of this job", cmd_train },
    { "config", "check or print a configuration, or print the reference page", cmd_config },
    { "info", "show the version, the build, and what this host offers", cmd_info },
    { "bench", "measure exchanges, codecs and transports", cmd_bench },
};

static void print_help(void)
{
    printf("Usage: strait COMMAND [ARGUMENTS]\n"
           "       mpirun -np N strait train FILE [--set group.key=value]...\n\n"
           "Distributed training whose gradients cross the network compressed.\n\n"
           "Commands:\n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        printf("  %-8s %s\n", commands[i].name, commands[i].summary);
    printf("\nOptions:\n"
           "  --help     this text; also behind any command\n"
           "  --version  the version\n\n"
           "Exit codes: 0 success, 1 the job failed, 2 wrong usage or configuration; mpirun gives\n"
           "128 + N where signal N ended a rank.\n");
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const struct command *command;

    if (argc < 2) return usage_error("", "no command was given");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        if (speaks()) print_help();
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        if (speaks()) printf("strait %s\n", strait_version());
        return 0;
    }
    command = find(argv[1]);
    if (command == NULL) return usage_error("", "unknown command %s", argv[1]);
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "--version") == 0) {
            if (speaks()) printf("strait %s\n", strait_version());
            return 0;
        }
    return command->run(argc - 2, argv + 2);
}
