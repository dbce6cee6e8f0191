/* SPDX-License-Identifier: Apache-2.0
 * text.h - a string that grows, for messages of unknown length. */
#ifndef STRAIT_BASE_TEXT_H
#define STRAIT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Zero-initialise; text_free() when done. `bytes` is NULL until something was added. */
struct text {
    char *bytes;
    size_t length, capacity;
    bool failed; /* memory ran out: what follows was dropped */
};

void text_add(struct text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void text_free(struct text *text);

static inline const char *text_string(const struct text *text)
{
    return text->bytes != NULL ? text->bytes : "";
}

/* Edit distance (Levenshtein) between two words, for "did you mean". */
unsigned text_distance(const char *a, const char *b);

#endif
