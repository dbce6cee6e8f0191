/* SPDX-License-Identifier: Apache-2.0
 * plan.c - see plan.h. */
#include "engine/plan.h"

#include <stdlib.h>
#include <string.h>

#include "schedule/payload.h"
#include "schedule/schedule.h"

static strait_status check_tensor(const struct tensor_list *list, const strait_tensor *tensor,
                                  size_t *elements)
{
    *elements = 1;
    if (tensor->name == NULL || tensor->name[0] == '\0' || strlen(tensor->name) > 255)
        return error_set(STRAIT_ERR_USAGE, "a tensor needs a name of 1 to 255 bytes");
    if (strchr(tensor->name, '\n') != NULL)
        return error_set(STRAIT_ERR_USAGE, "a tensor's name has no line break");
    if (tensor->dtype != STRAIT_FLOAT32)
        return error_set(STRAIT_ERR_USAGE, "tensor '%s': its type is not STRAIT_FLOAT32",
                         tensor->name);
    if (tensor->ndim < 1 || tensor->ndim > STRAIT_MAX_DIMS)
        return error_set(STRAIT_ERR_USAGE, "tensor '%s' has %d dimensions; allowed: 1 .. %d",
                         tensor->name, tensor->ndim, STRAIT_MAX_DIMS);
    for (int i = 0; i < tensor->ndim; i++)
        if (tensor->shape[i] == 0 ||
            __builtin_mul_overflow(*elements, tensor->shape[i], elements) ||
            *elements > UINT32_MAX)
            return error_set(STRAIT_ERR_USAGE, "tensor '%s': its shape gives no element count "
                             "from 1 to 2^32-1", tensor->name);
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, tensor->name) == 0)
            return error_set(STRAIT_ERR_USAGE, "tensor '%s' is registered already", tensor->name);
    return STRAIT_OK;
}

strait_status tensor_list_add(struct tensor_list *list, const strait_tensor *tensor, int *id)
{
    size_t elements;
    strait_status st = check_tensor(list, tensor, &elements);
    struct tensor *item;

    if (st != STRAIT_OK) return st;
    if (list->count == list->capacity) {
        int capacity = list->capacity > 0 ? 2 * list->capacity : 64;
        struct tensor *grown = realloc(list->items, (size_t)capacity * sizeof *grown);

        if (grown == NULL) return error_memory("tensors");
        list->items = grown;
        list->capacity = capacity;
    }
    item = &list->items[list->count];
    *item = (struct tensor){ .name = strdup(tensor->name), .ndim = tensor->ndim,
                             .elements = elements };
    if (item->name == NULL) return error_memory("tensors");
    memcpy(item->shape, tensor->shape, (size_t)tensor->ndim * sizeof item->shape[0]);
    *id = list->count++;
    return STRAIT_OK;
}

void tensor_list_free(struct tensor_list *list)
{
    for (int i = 0; i < list->count; i++) free(list->items[i].name);
    free(list->items);
    *list = (struct tensor_list){ 0 };
}

bool plan_can_factor(const struct tensor *tensor, uint32_t rank)
{
    size_t rows = tensor->shape[0], columns = tensor->elements / rows;

    return rank * (rows + columns) < tensor->elements;
}

/* A bucket that is still being filled; -1: none. */
struct filling {
    int bucket;
    const struct codec *codec;
};

static void place_tensor(struct plan *plan, struct filling *filling, struct tensor *tensor, int id,
                         size_t limit)
{
    struct bucket_plan *bucket = filling->bucket >= 0 ? &plan->buckets[filling->bucket] : NULL;

    if (bucket == NULL || bucket->elements + tensor->elements > limit) {
        filling->bucket = plan->count;
        bucket = &plan->buckets[plan->count++];
        *bucket = (struct bucket_plan){ .codec = filling->codec, .first_id = id };
    }
    tensor->bucket = filling->bucket;
    tensor->offset = bucket->elements;
    tensor->part = bucket->tensors;
    bucket->elements += tensor->elements;
    bucket->tensors++;
}

/* A backward pass makes a bucket whole with the tensor that was registered first; put
 * the buckets in the order in which they become whole. */
static void order_by_completion(struct plan *plan, struct tensor_list *tensors)
{
    int *last = calloc((size_t)plan->count, sizeof *last); /* lowest id in each bucket */
    int *place = calloc((size_t)plan->count, sizeof *place);
    struct bucket_plan *ordered = calloc((size_t)plan->count, sizeof *ordered);
    int next = 0;

    if (last == NULL || place == NULL || ordered == NULL) goto done; /* any order is right */
    for (int id = tensors->count - 1; id >= 0; id--) last[tensors->items[id].bucket] = id;
    for (int id = tensors->count - 1; id >= 0; id--) {
        int bucket = tensors->items[id].bucket;

        if (last[bucket] != id) continue;
        place[bucket] = next;
        ordered[next++] = plan->buckets[bucket];
    }
    memcpy(plan->buckets, ordered, (size_t)plan->count * sizeof *ordered);
    for (int id = 0; id < tensors->count; id++)
        tensors->items[id].bucket = place[tensors->items[id].bucket];
done:
    free(last);
    free(place);
    free(ordered);
}

/* The first factor of the next bucket goes before the second of this one, which has to wait for
 * all of its first: the link is not idle meanwhile. It is where the next bucket takes longer to
 * become whole; an order that depended on that would differ from rank to rank. */
static strait_status order_legs(struct plan *plan)
{
    int waiting = -1;

    plan->legs = calloc(2 * (size_t)plan->count, sizeof *plan->legs);
    if (plan->legs == NULL) return error_memory("the plan");
    for (int b = 0; b < plan->count; b++) {
        plan->legs[plan->leg_count++] = (struct leg){ b, false };
        if (waiting >= 0) plan->legs[plan->leg_count++] = (struct leg){ waiting, true };
        waiting = plan->buckets[b].codec->factored ? b : -1;
    }
    if (waiting >= 0) plan->legs[plan->leg_count++] = (struct leg){ waiting, true };
    return STRAIT_OK;
}

strait_status plan_build(struct plan *plan, struct tensor_list *tensors,
                         const struct strait_config *config)
{
    struct filling dense = { -1, &codec_fp32 };
    struct filling usual = { -1, codec_find(config->comm.codec) };
    size_t limit = (size_t)(config->comm.bucket_mb * 1048576.0 / sizeof(float));

    if (tensors->count == 0)
        return error_set(STRAIT_ERR_USAGE, "no tensor was registered before strait_commit()");
    plan->buckets = calloc((size_t)tensors->count, sizeof *plan->buckets);
    if (plan->buckets == NULL) return error_memory("the plan");
    for (int id = tensors->count - 1; id >= 0; id--) {
        struct tensor *tensor = &tensors->items[id];
        bool small = tensor->elements < (uint64_t)config->comm.dense_below ||
                     (usual.codec->factored &&
                      !plan_can_factor(tensor, (uint32_t)config->comm.powersgd_rank));

        place_tensor(plan, small ? &dense : &usual, tensor, id, limit);
    }
    order_by_completion(plan, tensors);
    if (plan->count > SCHEDULE_MAX_BUCKETS)
        return error_set(STRAIT_ERR_USAGE, "%d buckets are too many (at most %d); raise "
                         "comm.bucket_mb", plan->count, SCHEDULE_MAX_BUCKETS);
    return order_legs(plan);
}

void plan_free(struct plan *plan)
{
    free(plan->buckets);
    free(plan->legs);
    *plan = (struct plan){ 0 };
}

void plan_describe_settings(const struct strait_config *config, struct text *out)
{
    text_add(out, "version %s\npayload version %d\n", strait_version(), PAYLOAD_VERSION);
    for (int i = 0; i < config_option_count; i++) {
        const struct option *option = &config_options[i];

        if (strncmp(option->key, "comm.", 5) != 0) continue;
        text_add(out, "%s = ", option->key);
        option_write(option, config, out);
        text_add(out, "\n");
    }
}

void plan_describe_tensors(const struct plan *plan, const struct tensor_list *tensors,
                           struct text *out)
{
    text_add(out, "%d tensors in %d buckets\n", tensors->count, plan->count);
    for (int id = 0; id < tensors->count; id++) {
        const struct tensor *tensor = &tensors->items[id];

        text_add(out, "tensor %d '%s' float32", id, tensor->name);
        for (int i = 0; i < tensor->ndim; i++)
            text_add(out, "%c%zu", i > 0 ? 'x' : ' ', tensor->shape[i]);
        text_add(out, " in bucket %d\n", tensor->bucket);
    }
}
