/* SPDX-License-Identifier: Apache-2.0
 * plan.h - which tensors travel together: fixed before the first step, the same on all
 * ranks. */
#ifndef STRAIT_ENGINE_PLAN_H
#define STRAIT_ENGINE_PLAN_H

#include "base/config.h"
#include "codec/codec.h"

struct tensor {
    char *name;
    int ndim;
    size_t shape[STRAIT_MAX_DIMS], elements;
    int bucket;      /* set by plan_build() */
    size_t offset;   /* of its first element in the bucket */
    int part;        /* which of the bucket's tensors it is */
};

struct tensor_list {
    struct tensor *items; /* by id */
    int count, capacity;
};

struct bucket_plan {
    size_t elements;
    int tensors;
    int first_id;    /* its tensor that a backward pass makes first */
    const struct codec *codec;
};

/* A bucket's exchange, or one of the two that factors take. */
struct leg {
    int bucket;
    bool second; /* of the other factor, when the first is known */
};

struct plan {
    struct bucket_plan *buckets; /* in the order in which they become whole */
    int count;
    struct leg *legs;            /* in the order in which they are started, on every rank */
    int leg_count;
};

strait_status tensor_list_add(struct tensor_list *list, const strait_tensor *tensor, int *id);
void tensor_list_free(struct tensor_list *list);

/* Fill buckets from the last tensor to the first, up to comm.bucket_mb each; tensors
 * below comm.dense_below, and those that factors would not make smaller, go to buckets of
 * their own kind, as fp32. */
strait_status plan_build(struct plan *plan, struct tensor_list *tensors,
                         const struct strait_config *config);
void plan_free(struct plan *plan);

/* Everything that ranks must agree on, a line each: settings first, then tensors. */
void plan_describe_settings(const struct strait_config *config, struct text *out);
void plan_describe_tensors(const struct plan *plan, const struct tensor_list *tensors,
                           struct text *out);

/* Do factors of `rank` columns have fewer elements than the tensor, as a matrix of its first
 * dimension by all others? */
bool plan_can_factor(const struct tensor *tensor, uint32_t rank);

#endif
