/* SPDX-License-Identifier: Apache-2.0
 * error.c - status names, texts and exit codes from one list; one message a thread. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char message[ERROR_MESSAGE_BYTES];

static const struct status_row {
    strait_status status;
    int exit_code;
    const char *name, *text;
} status_rows[] = {
#define STATUS_ROW(name, number, exit_code, text) \
    { STRAIT_##name, exit_code, "STRAIT_" #name, text },
    STRAIT_STATUS_LIST(STATUS_ROW)
#undef STATUS_ROW
};

static const struct status_row *find(strait_status status)
{
    static const struct status_row unknown = { STRAIT_OK, 1, "STRAIT_?", "unknown status" };

    for (size_t i = 0; i < sizeof status_rows / sizeof status_rows[0]; i++)
        if (status_rows[i].status == status) return &status_rows[i];
    return &unknown;
}

strait_status error_set(strait_status status, const char *format, ...)
{
    char text[ERROR_MESSAGE_BYTES]; /* an argument may be the old message itself */
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(message, sizeof message, "%s", text);
    return status;
}

strait_status error_memory(const char *what)
{
    return error_set(STRAIT_ERR_MEMORY, "out of memory for %s", what);
}

const char *error_name(strait_status status)
{
    return find(status)->name;
}

int error_exit_code(strait_status status)
{
    return find(status)->exit_code;
}

const char *strait_status_text(strait_status status)
{
    return find(status)->text;
}

const char *strait_error_message(void)
{
    return message;
}
