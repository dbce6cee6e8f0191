/* SPDX-License-Identifier: Apache-2.0
 * dataset.c - load what the configuration names, split it, scale it. */
#include "train/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

strait_status dataset_allocate(struct dataset *set, size_t count, size_t features)
{
    size_t values;

    if (__builtin_mul_overflow(count, features, &values) || values > SIZE_MAX / sizeof(float))
        return error_set(STRAIT_ERR_DATA, "%zu samples of %zu features are too many", count,
                         features);
    set->count = count;
    set->features = features;
    set->x = malloc(values * sizeof *set->x + 1);
    set->labels = malloc(count * sizeof *set->labels + 1);
    if (set->x != NULL && set->labels != NULL) return STRAIT_OK;
    dataset_free(set);
    return error_memory("the data set");
}

void dataset_free(struct dataset *set)
{
    free(set->x);
    free(set->labels);
    *set = (struct dataset){ 0 };
}

static void copy_sample(struct dataset *to, size_t at, const struct dataset *from, size_t i)
{
    memmove(to->x + at * to->features, from->x + i * from->features,
            from->features * sizeof *from->x);
    to->labels[at] = from->labels[i];
}

strait_status dataset_hold_out(struct dataset *set, double share, struct dataset *test)
{
    size_t wanted = (size_t)llround(share * (double)set->count), held = 0, kept = 0;
    strait_status st = dataset_allocate(test, wanted, set->features);

    if (st != STRAIT_OK) return st;
    for (size_t i = 0; i < set->count; i++) {
        /* the i-th sample is held out where the line wanted/count crosses an integer */
        if ((size_t)((double)(i + 1) * (double)wanted / (double)set->count) > held && held < wanted)
            copy_sample(test, held++, set, i);
        else
            copy_sample(set, kept++, set, i);
    }
    set->count = kept;
    test->count = held;
    return STRAIT_OK;
}

/* Bring features to -1 .. 1 by the largest magnitude of the training set. */
static void scale(struct data *data)
{
    size_t train = data->train.count * data->train.features;
    size_t test = data->test.count * data->test.features;
    float largest = 0.0f;

    for (size_t i = 0; i < train; i++) largest = fmaxf(largest, fabsf(data->train.x[i]));
    if (largest == 0.0f) return;
    for (size_t i = 0; i < train; i++) data->train.x[i] /= largest;
    for (size_t i = 0; i < test; i++) data->test.x[i] /= largest;
}

static strait_status count_classes(struct data *data)
{
    int classes = 0;

    for (size_t i = 0; i < data->train.count; i++)
        classes = data->train.labels[i] >= classes ? data->train.labels[i] + 1 : classes;
    for (size_t i = 0; i < data->test.count; i++)
        if (data->test.labels[i] >= classes)
            return error_set(STRAIT_ERR_DATA, "class %d occurs among the held-out samples only; "
                             "the file has too few samples, or lower data.holdout",
                             data->test.labels[i]);
    if (classes < 2)
        return error_set(STRAIT_ERR_DATA, "the training samples are of %d class; at least 2 are "
                         "needed", classes);
    data->train.classes = data->test.classes = classes;
    return STRAIT_OK;
}

static strait_status load_idx(struct data *data, const struct strait_config *config, bool *split)
{
    strait_status st = dataset_read_idx(&data->train, config->data.images, config->data.labels);

    *split = config->data.test_images[0] == '\0';
    if (st != STRAIT_OK || *split) return st;
    st = dataset_read_idx(&data->test, config->data.test_images, config->data.test_labels);
    if (st == STRAIT_OK && data->test.features != data->train.features)
        st = error_set(STRAIT_ERR_DATA, "%s: %zu pixels an image, but %zu in %s",
                       config->data.test_images, data->test.features, data->train.features,
                       config->data.images);
    return st;
}

strait_status data_load(struct data *data, const struct strait_config *config)
{
    bool csv = strcmp(config->data.format, "csv") == 0, split = true;
    strait_status st = csv ? dataset_read_csv(&data->train, config->data.path)
                           : load_idx(data, config, &split);

    if (st == STRAIT_OK && data->train.count == 0)
        st = error_set(STRAIT_ERR_DATA, "%s: no samples",
                       csv ? config->data.path : config->data.images);
    if (st == STRAIT_OK && split)
        st = dataset_hold_out(&data->train, config->data.holdout, &data->test);
    if (st == STRAIT_OK) st = count_classes(data);
    if (st == STRAIT_OK) scale(data);
    if (st == STRAIT_OK) return STRAIT_OK;
    data_free(data);
    return error_set(st, "%s: %s", csv ? "data.path" : "data.images and data.labels",
                     strait_error_message());
}

void data_free(struct data *data)
{
    dataset_free(&data->train);
    dataset_free(&data->test);
}
