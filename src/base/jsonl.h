/* SPDX-License-Identifier: Apache-2.0
 * jsonl.h - a file of JSON records, one a line, each written whole. */
#ifndef STRAIT_BASE_JSONL_H
#define STRAIT_BASE_JSONL_H

#include <cjson/cJSON.h>

#include "base/error.h"

struct jsonl;

/* Create `path` for writing; *out is the caller's. */
strait_status jsonl_open(struct jsonl **out, const char *path);
/* Append the record as one line and free it, also when writing fails. */
strait_status jsonl_write(struct jsonl *file, cJSON *record);
/* NULL is allowed. Reports what an earlier write could not. */
strait_status jsonl_close(struct jsonl *file);

#endif
