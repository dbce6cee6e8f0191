/* SPDX-License-Identifier: Apache-2.0
 * target.h - what is fuzzed: one decoder, or the check of payload headers, given any bytes. */
#ifndef STRAIT_TESTS_TARGET_H
#define STRAIT_TESTS_TARGET_H

#include <stddef.h>
#include <stdint.h>

enum { TARGET_INPUT_MAX = 4096 };

/* From here on, by name: that of a codec, or "header". False: there is none. */
int target_choose(const char *name);

/* Abort if something is wrong with how this is taken. */
void target_run(const uint8_t *data, size_t size);

/* The names, one after the other; NULL at the end. */
const char *target_name(int i);

#endif
