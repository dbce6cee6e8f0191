/* SPDX-License-Identifier: Apache-2.0
 * log.c - see log.h. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

static const char *const level_names[] = { "error", "warn", "info", "debug" };
static char identity[160];

static enum log_level threshold(void)
{
    const char *wanted = getenv("STRAIT_LOG");

    for (int i = 0; wanted != NULL && i <= LOG_DEBUG; i++)
        if (strcmp(wanted, level_names[i]) == 0) return (enum log_level)i;
    return LOG_WARN;
}

void log_identity(int rank, const char *host)
{
    snprintf(identity, sizeof identity, " rank %d on %s:", rank, host);
}

void log_write(enum log_level level, const char *format, ...)
{
    char line[ERROR_MESSAGE_BYTES + 256];
    va_list args;
    size_t used;

    if (level > threshold()) return;
    used = (size_t)snprintf(line, sizeof line, "strait:%s %s%s", identity,
                            level == LOG_ERROR ? "" : level_names[level],
                            level == LOG_ERROR ? "" : ": ");
    va_start(args, format);
    vsnprintf(line + used, sizeof line - used - 1, format, args);
    va_end(args);
    strcat(line, "\n");
    /* Nothing better can be done when standard error itself is gone. */
    if (write(STDERR_FILENO, line, strlen(line)) < 0) return;
}
