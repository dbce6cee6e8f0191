/* SPDX-License-Identifier: Apache-2.0
 * ranks.h - checks in programs of many ranks: a check holds when it holds on all. */
#ifndef STRAIT_TESTS_RANKS_H
#define STRAIT_TESTS_RANKS_H

#include <stdbool.h>

#include "strait.h"

extern int ranks_rank, ranks_size;

/* MPI_Init_thread with MPI_THREAD_MULTIPLE. */
void ranks_begin(void);
/* Print the plan, finalise; returns the exit code. */
int ranks_end(void);

/* Collective. Rank 0 prints "ok - NAME" or "not ok - NAME"; a rank where it fails says
 * what it saw: a printf format and its arguments. */
void ranks_check(bool ok, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* End the job when something that no test is about goes wrong. */
void ranks_must(strait_status status, const char *what);

/* A configuration from "key=value" words, NULL at the end. */
strait_config *ranks_config(const char *const *assignments);

#endif
