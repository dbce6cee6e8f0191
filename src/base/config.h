/* SPDX-License-Identifier: Apache-2.0
 * config.h - the configuration: every value a job can be told.
 *
 * One table (options.c) says each key's type, unit, default, bounds and meaning. It
 * drives reading files, `--set`, `config print`, the error messages and the page
 * docs/configuration.md. The struct below only holds the values. */
#ifndef STRAIT_BASE_CONFIG_H
#define STRAIT_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/text.h"

#define CONFIG_TEXT_BYTES 512  /* the longest string or path, with its end */
#define CONFIG_LIST_MAX 16     /* the longest list of numbers */
#define CONFIG_OPTIONS_MAX 64

struct config_list {
    int count;
    int64_t values[CONFIG_LIST_MAX];
};

/* Where a value came from: the default, a file's line, or the command line. */
struct config_origin {
    enum { FROM_DEFAULT, FROM_FILE, FROM_SET } kind;
    int line;
};

struct strait_config {
    struct { char name[CONFIG_TEXT_BYTES], dir[CONFIG_TEXT_BYTES]; int64_t seed; } run;
    struct {
        const char *format;
        char path[CONFIG_TEXT_BYTES];
        char images[CONFIG_TEXT_BYTES], labels[CONFIG_TEXT_BYTES];
        char test_images[CONFIG_TEXT_BYTES], test_labels[CONFIG_TEXT_BYTES];
        double holdout;
    } data;
    struct { const char *type; struct config_list hidden; } model;
    struct {
        int64_t epochs, batch, threads;
        const char *optimizer;
        double lr, momentum, beta1, beta2, epsilon, weight_decay;
    } train;
    struct {
        const char *codec, *schedule, *transport, *nonfinite, *rounding, *residual,
            *topk_values;
        char nodes[CONFIG_TEXT_BYTES];
        double bucket_mb;
        int64_t dense_below, block, check_every, warmup_steps, window, threads;
        int64_t ratio_warmup_steps, seed, powersgd_rank;
        double topk_ratio, randk_ratio, ratio_warmup_from, slice_kb;
        double momentum_correction, clip_norm;
        bool error_feedback, checksum;
    } comm;
    struct { double timeout_s; } fault;
    struct { int64_t every; const char *progress; } report;

    char file[CONFIG_TEXT_BYTES]; /* the last file read; "" when none */
    struct config_origin origin[CONFIG_OPTIONS_MAX]; /* by row of the option table */
};

enum option_type { OPTION_INT, OPTION_REAL, OPTION_BOOL, OPTION_CHOICE, OPTION_STRING,
                   OPTION_PATH, OPTION_LIST };

struct option {
    const char *key;             /* "group.name" */
    enum option_type type;
    const char *unit;            /* "" when it has none */
    const char *fallback;        /* the default, as text */
    double min, max;             /* numbers: inclusive */
    int64_t step;                /* integers: a multiple of it; 0: any */
    const char *const *choices;  /* OPTION_CHOICE: NULL-terminated */
    size_t offset;               /* in struct strait_config */
    const char *help;
};

extern const struct option config_options[];
extern const int config_option_count;

/* ---- options.c */
const struct option *option_find(const char *key);
/* The option whose name is nearest to `key`, or NULL when none is near. */
const struct option *option_nearest(const char *key);
/* What the option accepts, in words: "1 .. 4096", "fp32, int8", "true, false". */
void option_allowed(const struct option *option, struct text *out);

/* ---- value.c: text and typed values */
void *option_value(const struct option *option, struct strait_config *config);
/* Assign; on a bad value say why in `why` and leave the configuration as it was. */
bool option_set_int(const struct option *, struct strait_config *, int64_t, struct text *why);
bool option_set_real(const struct option *, struct strait_config *, double, struct text *why);
bool option_set_bool(const struct option *, struct strait_config *, bool, struct text *why);
bool option_set_list(const struct option *, struct strait_config *, const struct config_list *,
                     struct text *why);
/* For strings, paths and choices as they stand. */
bool option_set_string(const struct option *, struct strait_config *, const char *,
                       struct text *why);
/* From the text of `--set`, whatever the type. */
bool option_set_text(const struct option *, struct strait_config *, const char *,
                     struct text *why);
/* The value as a libconfig file writes it. */
void option_write(const struct option *, const struct strait_config *, struct text *out);

/* ---- config.c */
void config_defaults(struct strait_config *config);
strait_status config_assign(struct strait_config *config, const char *assignment);
/* Rules between keys; all broken ones in one message. */
strait_status config_check(const struct strait_config *config);
/* The whole configuration as one text and back: how rank 0's reaches the others. */
void config_pack(const struct strait_config *config, struct text *out);
strait_status config_unpack(struct strait_config *config, const char *packed);

/* ---- config_file.c */
strait_status config_load(struct strait_config *config, const char *path);

/* ---- config_print.c */
/* A libconfig file with every key, and behind each where its value came from. */
void config_print(const struct strait_config *config, struct text *out);
/* The reference page docs/configuration.md. */
void config_reference(struct text *out);

#endif
