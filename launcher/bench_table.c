/* SPDX-License-Identifier: Apache-2.0
 * bench_table.c - rows of results. Text and CSV appear as they are measured, JSON at the
 * end, as one object. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

struct bench_table {
    enum { AS_TEXT, AS_CSV, AS_JSON } format;
    const struct bench_column *columns;
    int count;
    bool headed; /* the names of the columns are printed */
    cJSON *root, *rows;
};

static const char *const formats[] = { "text", "csv", "json" };

bool bench_format_known(const char *format)
{
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i], format) == 0) return true;
    return false;
}

static void print_head(struct bench_table *t)
{
    if (t->headed || t->format == AS_JSON) return;
    t->headed = true;
    for (int i = 0; i < t->count; i++) {
        const struct bench_column *c = &t->columns[i];

        if (t->format == AS_CSV) printf("%s%s", i > 0 ? "," : "", c->name);
        else printf("%s%*s", i > 0 ? "  " : "", c->width, c->name);
    }
    printf("\n");
    fflush(stdout);
}

struct bench_table *bench_table_open(const char *format, const char *benchmark,
                                     const struct bench_column *columns, int count)
{
    struct bench_table *t = calloc(1, sizeof *t);

    if (t == NULL) return NULL;
    t->columns = columns;
    t->count = count;
    while (strcmp(formats[t->format], format) != 0) t->format++;
    if (t->format != AS_JSON) return t;
    t->root = cJSON_CreateObject();
    cJSON_AddStringToObject(t->root, "benchmark", benchmark);
    cJSON_AddStringToObject(t->root, "version", strait_version());
    t->rows = cJSON_AddArrayToObject(t->root, "rows");
    return t;
}

static void print_cell(const struct bench_table *t, int i, union bench_cell cell)
{
    const struct bench_column *c = &t->columns[i];
    const char *gap = i == 0 ? "" : t->format == AS_CSV ? "," : "  ";
    int width = t->format == AS_CSV ? 0 : c->width;

    if (c->decimals == TEXT_COLUMN) printf("%s%*s", gap, width, cell.text);
    else if (isnan(cell.number)) printf("%s%*s", gap, width, t->format == AS_CSV ? "" : "-");
    else if (c->decimals == EXPONENT_COLUMN) printf("%s%*.2e", gap, width, cell.number);
    else printf("%s%*.*f", gap, width, c->decimals, cell.number);
}

static void add_number(cJSON *object, const char *name, double value)
{
    if (isfinite(value)) cJSON_AddNumberToObject(object, name, value);
    else cJSON_AddNullToObject(object, name);
}

void bench_table_row(struct bench_table *t, const union bench_cell *cells)
{
    cJSON *row = t->format == AS_JSON ? cJSON_CreateObject() : NULL;

    print_head(t);
    for (int i = 0; i < t->count; i++) {
        if (row == NULL) print_cell(t, i, cells[i]);
        else if (t->columns[i].decimals != TEXT_COLUMN)
            add_number(row, t->columns[i].name, cells[i].number);
        else cJSON_AddStringToObject(row, t->columns[i].name, cells[i].text);
    }
    if (row != NULL) {
        cJSON_AddItemToArray(t->rows, row);
        return;
    }
    printf("\n");
    fflush(stdout);
}

void bench_table_text(struct bench_table *t, const char *name, const char *text)
{
    if (t->format == AS_JSON) cJSON_AddStringToObject(t->root, name, text);
    else printf("# %s %s\n", name, text);
}

void bench_table_note(struct bench_table *t, const char *name, double value, int decimals)
{
    if (t->format == AS_JSON) add_number(t->root, name, value);
    else printf("# %s %.*f\n", name, decimals, value);
}

bool bench_table_close(struct bench_table *t)
{
    char *text = t->format == AS_JSON ? cJSON_Print(t->root) : NULL;
    bool lost = t->format == AS_JSON && text == NULL;

    print_head(t);
    if (text != NULL) printf("%s\n", text);
    cJSON_free(text);
    cJSON_Delete(t->root);
    free(t);
    if (!lost && fflush(stdout) == 0 && !ferror(stdout)) return true;
    fprintf(stderr, "strait bench: cannot write to standard output\n");
    return false;
}
