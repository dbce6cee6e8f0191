/* SPDX-License-Identifier: Apache-2.0
 * launcher.h - what the subcommands of `strait` share. */
#ifndef STRAIT_LAUNCHER_LAUNCHER_H
#define STRAIT_LAUNCHER_LAUNCHER_H

#include "base/config.h"

/* A subcommand gets what stands behind its name and returns the exit code. */
struct command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
};

int cmd_train(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_bench(int argc, char **argv);

enum { EXIT_USAGE = 2 };

/* Where many ranks run the same command, the first one speaks for all. Known before MPI
 * is started, from the variables of Open MPI, PMIx and Slurm. */
bool speaks(void);
/* Ranks of the job that this process was started in; 1 when by hand. */
int job_size(void);

/* "strait CMD: message" and a pointer to --help, once for all ranks; returns EXIT_USAGE. */
int usage_error(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Print an error's message, once for all ranks; returns its exit code. */
int report_error(strait_status status);

/* FILE and any number of --set: the arguments of train and config. */
struct config_arguments {
    const char *file;
    const char *sets[256];
    int set_count;
    bool help;
};

/* False: a usage error was reported. */
bool parse_config_arguments(const char *command, int argc, char **argv,
                            struct config_arguments *out);

/* Defaults, the file, then --set, then the rules between keys. */
strait_status load_config(const struct config_arguments *arguments, struct strait_config *config);

#endif
