/* SPDX-License-Identifier: Apache-2.0
 * bench.h - what the benchmarks share: options, sizes, data and tables. */
#ifndef STRAIT_LAUNCHER_BENCH_H
#define STRAIT_LAUNCHER_BENCH_H

#include <mpi.h>

#include "cluster/cluster.h"
#include "codec/codec.h"
#include "launcher.h"

int bench_allreduce(int argc, char **argv);
int bench_codec(int argc, char **argv);
int bench_p2p(int argc, char **argv);

/* ---- bench_options.c ---- */
enum { BENCH_SETS_MAX = 64, BENCH_CODECS_MAX = 32 };

/* A row: `--name VALUE` or `--name=VALUE` into *value, or `--name` alone into *flag. */
struct bench_option {
    const char *name;
    const char **value;
    bool *flag;
};

/* The values of all --set, in order. */
struct bench_sets {
    const char *values[BENCH_SETS_MAX];
    int count;
};

/* `options` ends with a row without a name; `sets` may be NULL where --set means nothing.
 * False: a usage error was reported. Here and below `command` is "bench allreduce" and
 * its like. */
bool bench_parse(const char *command, int argc, char **argv, const struct bench_option *options,
                 struct bench_sets *sets);
bool bench_wants_help(int argc, char **argv);
bool bench_integer(const char *command, const char *name, const char *text, long min, long max,
                   long *out);

/* first, first * factor, ... up to last, in bytes. */
struct bench_sizes {
    size_t first, last, factor;
};

/* "4K", "4K:256M" or "4K:256M:2"; sizes are 4 bytes to 8 GiB. */
bool bench_sizes(const char *command, const char *text, struct bench_sizes *out);

/* A codec and what stands behind its colon: "topk:0.01". */
struct bench_codec_choice {
    const struct codec *codec;
    char label[32];
    char set[64]; /* the assignment that the parameter means; "" without one */
};

/* "int8,topk:0.01", or "all". Returns the number, 0 after a usage error. */
int bench_codecs(const char *command, const char *text,
                 struct bench_codec_choice out[BENCH_CODECS_MAX]);

/* The element at `index` of a rank's gradient: nearly normal, alike in no two ranks. */
float bench_value(uint64_t key, uint64_t index);
uint64_t bench_key(int rank);

double bench_median(double *values, int count); /* sorts them */

/* ---- bench_tensors.c ---- */
enum { BENCH_TENSORS_MAX = 10000 };

struct bench_tensor {
    char name[64];
    int ndim;
    size_t shape[STRAIT_MAX_DIMS], elements;
    size_t begin; /* of its first element in the gradient */
};

/* In forward order. Zeroed, it is empty. */
struct bench_tensors {
    struct bench_tensor *items;
    int count;
    size_t elements;
    bool failed; /* memory ran out while it was made */
};

/* Of "resnet50", "bert-large", "gpt2", or the file of that name. Local. */
strait_status bench_tensors_load(const char *text, struct bench_tensors *out);
/* Matrices near to squares, as equal as can be; fewer than `count` where there are fewer
 * elements. */
strait_status bench_tensors_even(size_t elements, int count, struct bench_tensors *out);
void bench_tensors_free(struct bench_tensors *tensors);

/* ---- bench_link.c ---- */
/* What one node can send to another while it receives as much. Collective; all ranks get the
 * same status. There are two nodes at least. */
strait_status bench_link_rate(const struct cluster *cluster, const char *transport,
                              double *bytes_s);

/* ---- bench_table.c: rows as text, CSV or JSON, on standard output ---- */
struct bench_column {
    const char *name;
    int width;    /* as text */
    int decimals; /* of a number, or one of these */
};
enum { TEXT_COLUMN = -1, EXPONENT_COLUMN = -2 };

union bench_cell {
    const char *text;
    double number; /* NaN: there is none */
};

struct bench_table;

/* "text", "csv" or "json". */
bool bench_format_known(const char *format);
struct bench_table *bench_table_open(const char *format, const char *benchmark,
                                     const struct bench_column *columns, int count);
void bench_table_row(struct bench_table *table, const union bench_cell *cells);
/* About the whole run: before the first row, or behind the last. */
void bench_table_text(struct bench_table *table, const char *name, const char *text);
void bench_table_note(struct bench_table *table, const char *name, double value, int decimals);
/* Prints what is still due and frees; false: standard output cannot be written. */
bool bench_table_close(struct bench_table *table);

#endif
