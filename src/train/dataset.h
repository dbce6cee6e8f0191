/* SPDX-License-Identifier: Apache-2.0
 * dataset.h - labelled samples in memory: features and a class each.
 *
 * Every rank reads the whole set and trains on its share. Readers check all that a file
 * says before they believe it and name file and place in every error. */
#ifndef STRAIT_TRAIN_DATASET_H
#define STRAIT_TRAIN_DATASET_H

#include "base/config.h"

struct dataset {
    size_t count, features;
    int classes;      /* labels are 0 .. classes - 1 */
    float *x;         /* count rows of features */
    int32_t *labels;
};

struct data {
    struct dataset train, test; /* test may be empty */
};

strait_status data_load(struct data *data, const struct strait_config *config);
void data_free(struct data *data);

/* ---- readers: fill in all but `classes` */
strait_status dataset_read_csv(struct dataset *set, const char *path);
strait_status dataset_read_idx(struct dataset *set, const char *images, const char *labels);

/* Allocate rows; dataset_free() frees. */
strait_status dataset_allocate(struct dataset *set, size_t count, size_t features);
void dataset_free(struct dataset *set);

/* Keep every sample whose place in the file does not fall to `test`, and move the others
 * there: round(share * count) of them, evenly spread. */
strait_status dataset_hold_out(struct dataset *set, double share, struct dataset *test);

#endif
