/* SPDX-License-Identifier: Apache-2.0
 * text.c - see text.h. */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct text *text, size_t more)
{
    size_t wanted = text->length + more + 1;
    char *grown;

    if (wanted <= text->capacity) return true;
    wanted = wanted * 2 > 256 ? wanted * 2 : 256;
    grown = realloc(text->bytes, wanted);
    if (grown == NULL) {
        text->failed = true;
        return false;
    }
    text->bytes = grown;
    text->capacity = wanted;
    return true;
}

void text_add(struct text *text, const char *format, ...)
{
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0 || text->failed || !reserve(text, (size_t)length)) return;
    va_start(args, format);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, args);
    va_end(args);
    text->length += (size_t)length;
}

void text_free(struct text *text)
{
    free(text->bytes);
    *text = (struct text){ 0 };
}

unsigned text_distance(const char *a, const char *b)
{
    enum { LONGEST = 64 };
    unsigned row[LONGEST + 1];
    size_t length_b = strlen(b);

    if (length_b > LONGEST || strlen(a) > LONGEST) return LONGEST;
    for (size_t j = 0; j <= length_b; j++) row[j] = (unsigned)j;
    for (size_t i = 0; a[i] != '\0'; i++) {
        unsigned diagonal = row[0];

        row[0] = (unsigned)i + 1;
        for (size_t j = 0; j < length_b; j++) {
            unsigned best = diagonal + (a[i] != b[j]);

            diagonal = row[j + 1];
            if (row[j] + 1 < best) best = row[j] + 1;
            if (diagonal + 1 < best) best = diagonal + 1;
            row[j + 1] = best;
        }
    }
    return row[length_b];
}
