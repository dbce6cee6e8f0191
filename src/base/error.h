/* SPDX-License-Identifier: Apache-2.0
 * error.h - statuses and the message that goes with the last one.
 *
 * The first function to decide an error calls error_set() with the facts it has;
 * its callers pass the status on and add nothing. Messages are kept per thread. */
#ifndef STRAIT_BASE_ERROR_H
#define STRAIT_BASE_ERROR_H

#include "strait.h"

#define ERROR_MESSAGE_BYTES 4096

/* Record the message of this thread and return `status`, so that a failing function
 * can say `return error_set(STRAIT_ERR_IO, ...)`. */
strait_status error_set(strait_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

strait_status error_memory(const char *what);

/* "STRAIT_ERR_IO" and its kin: for tests and logs. */
const char *error_name(strait_status status);

/* The exit code of a program that ends on `status`. */
int error_exit_code(strait_status status);

#endif
