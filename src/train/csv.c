/* SPDX-License-Identifier: Apache-2.0
 * csv.c - samples from lines of numbers, the class last; no header line. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "train/dataset.h"

enum { LARGEST_CLASS = 99999 };

static size_t count_lines(const char *text)
{
    size_t lines = 0;

    for (; *text != '\0'; text++)
        lines += *text == '\n' || text[1] == '\0'; /* the last line may lack its end */
    return lines;
}

static size_t count_columns(const char *line)
{
    size_t columns = 1;

    for (; *line != '\0' && *line != '\n'; line++) columns += *line == ',';
    return columns;
}

static strait_status bad(const char *path, size_t line, const char *what)
{
    return error_set(STRAIT_ERR_DATA, "%s:%zu: %s", path, line, what);
}

/* One number and the separator behind it; `last` in the line or not. */
static bool take_number(const char **at, bool last, double *value)
{
    char *end;

    errno = 0;
    *value = strtod(*at, &end);
    if (end == *at || errno != 0 || !isfinite(*value)) return false;
    if (*end == '\r') end++;
    if (last ? *end != '\n' && *end != '\0' : *end != ',') return false;
    *at = *end == '\0' ? end : end + 1;
    return true;
}

static strait_status read_line(struct dataset *set, size_t row, const char **at, const char *path)
{
    double value;

    if (count_columns(*at) != set->features + 1)
        return error_set(STRAIT_ERR_DATA,
                         "%s:%zu: %zu columns where the first line has %zu; is the file cut short?",
                         path, row + 1, count_columns(*at), set->features + 1);
    for (size_t i = 0; i < set->features; i++) {
        if (!take_number(at, false, &value)) return bad(path, row + 1, "a column is not a number");
        set->x[row * set->features + i] = (float)value;
    }
    if (!take_number(at, true, &value) || value != floor(value) || value < 0 ||
        value > LARGEST_CLASS)
        return bad(path, row + 1, "the last column is not a class, 0 .. 99999");
    set->labels[row] = (int32_t)value;
    return STRAIT_OK;
}

strait_status dataset_read_csv(struct dataset *set, const char *path)
{
    char *text = NULL;
    const char *at;
    size_t bytes, columns;
    strait_status st = file_read(path, (size_t)4 << 30, &text, &bytes);

    if (st != STRAIT_OK) return st;
    at = text;
    columns = count_columns(text);
    if (memchr(text, '\0', bytes) != NULL) st = bad(path, 1, "a binary file, not lines of numbers");
    else if (bytes == 0) st = error_set(STRAIT_ERR_DATA, "%s: the file is empty", path);
    else if (columns < 2) st = bad(path, 1, "one column only; features and a class are needed");
    else st = dataset_allocate(set, count_lines(text), columns - 1);
    for (size_t row = 0; st == STRAIT_OK && row < set->count; row++)
        st = read_line(set, row, &at, path);
    if (st != STRAIT_OK) dataset_free(set);
    free(text);
    return st;
}
