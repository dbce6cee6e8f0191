/* SPDX-License-Identifier: Apache-2.0
 * optimizer.c - see optimizer.h. */
#include "train/optimizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct optimizer {
    const struct strait_config *config;
    struct mlp *model;
    bool adam;
    double power1, power2; /* adam: beta1 and beta2 to the number of steps */
    float *first, *second; /* momentum or first moment; second moment (adam) */
};

static size_t total_elements(struct mlp *model)
{
    size_t total = 0;

    for (int id = 0; id < mlp_parameter_count(model); id++)
        total += mlp_parameter(model, id)->rows * mlp_parameter(model, id)->columns;
    return total;
}

strait_status optimizer_open(struct optimizer **out, const struct strait_config *config,
                             struct mlp *model)
{
    struct optimizer *o = calloc(1, sizeof *o);

    if (o == NULL) return error_memory("the optimizer");
    o->config = config;
    o->model = model;
    o->power1 = o->power2 = 1.0;
    o->adam = strcmp(config->train.optimizer, "adam") == 0;
    o->first = calloc(total_elements(model), sizeof(float));
    o->second = o->adam ? calloc(total_elements(model), sizeof(float)) : NULL;
    if (o->first == NULL || (o->adam && o->second == NULL)) {
        optimizer_close(o);
        return error_memory("the optimizer");
    }
    *out = o;
    return STRAIT_OK;
}

void optimizer_close(struct optimizer *o)
{
    if (o == NULL) return;
    free(o->first);
    free(o->second);
    free(o);
}

static void sgd(const struct optimizer *o, const struct parameter *p, float *momentum, float decay)
{
    float lr = (float)o->config->train.lr, keep = (float)o->config->train.momentum;

    for (size_t i = 0; i < p->rows * p->columns; i++) {
        momentum[i] = keep * momentum[i] + (p->grad[i] + decay * p->value[i]);
        p->value[i] -= lr * momentum[i];
    }
}

static void adam(const struct optimizer *o, const struct parameter *p, float *first, float *second,
                 float decay)
{
    float keep1 = (float)o->config->train.beta1, keep2 = (float)o->config->train.beta2;
    float epsilon = (float)o->config->train.epsilon;
    float rate = (float)(o->config->train.lr * sqrt(1.0 - o->power2) / (1.0 - o->power1));

    for (size_t i = 0; i < p->rows * p->columns; i++) {
        float g = p->grad[i] + decay * p->value[i];

        first[i] = keep1 * first[i] + (1.0f - keep1) * g;
        second[i] = keep2 * second[i] + (1.0f - keep2) * g * g;
        p->value[i] -= rate * first[i] / (sqrtf(second[i]) + epsilon);
    }
}

void optimizer_apply(struct optimizer *o)
{
    size_t at = 0;

    o->power1 *= o->config->train.beta1;
    o->power2 *= o->config->train.beta2;
    for (int id = 0; id < mlp_parameter_count(o->model); id++) {
        const struct parameter *p = mlp_parameter(o->model, id);
        float decay = p->rows > 1 ? (float)o->config->train.weight_decay : 0.0f;

        if (o->adam) adam(o, p, o->first + at, o->second + at, decay);
        else sgd(o, p, o->first + at, decay);
        at += p->rows * p->columns;
    }
}
