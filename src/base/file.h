/* SPDX-License-Identifier: Apache-2.0
 * file.h - whole files: read with a bound, written so that they are there or not. */
#ifndef STRAIT_BASE_FILE_H
#define STRAIT_BASE_FILE_H

#include <stddef.h>

#include "base/error.h"

/* Read all of `path`; *out (with a zero byte behind it) is the caller's to free().
 * STRAIT_ERR_DATA: larger than `limit`. */
strait_status file_read(const char *path, size_t limit, char **out, size_t *bytes);

/* Write aside, fsync, rename: the file appears complete or not at all. */
strait_status file_write(const char *path, const void *bytes, size_t count);

/* Write all of `bytes` to `fd`; `path` is for the message. */
strait_status file_write_all(int fd, const void *bytes, size_t count, const char *path);

#endif
