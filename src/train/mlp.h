/* SPDX-License-Identifier: Apache-2.0
 * mlp.h - a multi-layer perceptron: dense layers, ReLU between, softmax cross-entropy.
 *
 * Parameters are numbered in forward order: weight 0, bias 0, weight 1, ... The backward
 * pass tells its caller as soon as each gradient is final, last layer first. */
#ifndef STRAIT_TRAIN_MLP_H
#define STRAIT_TRAIN_MLP_H

#include "base/config.h"

struct parameter {
    char name[32];        /* "fc1.weight", "fc1.bias" */
    size_t rows, columns; /* a bias: 1 row */
    float *value, *grad;  /* rows * columns, row-major */
};

struct mlp;

/* `largest_batch` bounds the samples of every later call. Weights are uniform within
 * +-sqrt(6 / inputs) (He et al. 2015, arXiv 1502.01852), biases 0; the same on all ranks. */
strait_status mlp_open(struct mlp **out, size_t features, const struct config_list *hidden,
                       int classes, size_t largest_batch, uint64_t seed);
/* NULL is allowed. */
void mlp_close(struct mlp *m);

int mlp_parameter_count(const struct mlp *m);
struct parameter *mlp_parameter(struct mlp *m, int id);

/* Predict n samples (x: n rows); the logits stay in the model. */
void mlp_forward(struct mlp *m, const float *x, size_t n);

/* After mlp_forward() of the same x: the sum of the samples' losses, and in *correct how
 * many were predicted right. */
double mlp_loss(const struct mlp *m, const int32_t *labels, size_t n, size_t *correct);

/* After mlp_forward(): gradients of `scale` times the sum of losses. `ready` is called
 * with each parameter's id when its gradient is final; a status other than STRAIT_OK ends
 * the pass and is returned. n = 0 is allowed: all gradients are zero. */
strait_status mlp_backward(struct mlp *m, const float *x, const int32_t *labels, size_t n,
                           float scale, strait_status (*ready)(void *arg, int id), void *arg);

#endif
