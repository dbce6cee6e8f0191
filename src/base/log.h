/* SPDX-License-Identifier: Apache-2.0
 * log.h - lines on standard error that say who speaks.
 *
 * The only global state of the library: the rank and host to print. Quiet below the
 * level in STRAIT_LOG (error, warn, info, debug; default warn). */
#ifndef STRAIT_BASE_LOG_H
#define STRAIT_BASE_LOG_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* From now on lines start with this rank and host. */
void log_identity(int rank, const char *host);

/* One line, or several when the message has line breaks; written in one piece so that
 * lines of different ranks do not mix. */
void log_write(enum log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
