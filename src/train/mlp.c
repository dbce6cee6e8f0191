/* SPDX-License-Identifier: Apache-2.0
 * mlp.c - see mlp.h. Layer l turns activations of width[l] into width[l + 1]. */
#include "train/mlp.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

enum { LAYERS_MAX = CONFIG_LIST_MAX + 1 };

struct mlp {
    int layers;
    size_t width[LAYERS_MAX + 1];
    struct parameter parameters[2 * LAYERS_MAX];
    float *values, *grads;             /* all parameters in one piece each */
    float *outputs[LAYERS_MAX];        /* of each layer, after ReLU; the last: logits */
    float *delta[2];                   /* gradient of a layer's output and of its input */
};

static size_t parameter_elements(const struct parameter *p)
{
    return p->rows * p->columns;
}

static void lay_out(struct mlp *m)
{
    for (int l = 0; l < m->layers; l++) {
        struct parameter *weight = &m->parameters[2 * l], *bias = weight + 1;

        *weight = (struct parameter){ .rows = m->width[l], .columns = m->width[l + 1] };
        *bias = (struct parameter){ .rows = 1, .columns = m->width[l + 1] };
        snprintf(weight->name, sizeof weight->name, "fc%d.weight", l + 1);
        snprintf(bias->name, sizeof bias->name, "fc%d.bias", l + 1);
    }
}

static strait_status allocate(struct mlp *m, size_t batch)
{
    size_t total = 0, widest = 0, at = 0;

    for (int id = 0; id < 2 * m->layers; id++) total += parameter_elements(&m->parameters[id]);
    for (int l = 0; l <= m->layers; l++) widest = m->width[l] > widest ? m->width[l] : widest;
    m->values = calloc(total, sizeof(float));
    m->grads = calloc(total, sizeof(float));
    if (m->values == NULL || m->grads == NULL) return error_memory("the model");
    for (int id = 0; id < 2 * m->layers; id++) {
        m->parameters[id].value = m->values + at;
        m->parameters[id].grad = m->grads + at;
        at += parameter_elements(&m->parameters[id]);
    }
    for (int l = 0; l < m->layers; l++)
        if ((m->outputs[l] = calloc(batch * m->width[l + 1], sizeof(float))) == NULL)
            return error_memory("activations");
    for (int i = 0; i < 2; i++)
        if ((m->delta[i] = calloc(batch * widest, sizeof(float))) == NULL)
            return error_memory("activations");
    return STRAIT_OK;
}

static void initialise(struct mlp *m, uint64_t seed)
{
    for (int l = 0; l < m->layers; l++) {
        struct parameter *weight = &m->parameters[2 * l];
        double bound = sqrt(6.0 / (double)weight->rows);

        for (size_t i = 0; i < parameter_elements(weight); i++)
            weight->value[i] =
                (float)(bound * (2.0 * random_unit(seed, UINT64_MAX - (uint64_t)l, i) - 1.0));
    }
}

strait_status mlp_open(struct mlp **out, size_t features, const struct config_list *hidden,
                       int classes, size_t largest_batch, uint64_t seed)
{
    struct mlp *m = calloc(1, sizeof *m);
    strait_status st;

    if (m == NULL) return error_memory("the model");
    m->layers = hidden->count + 1;
    m->width[0] = features;
    for (int i = 0; i < hidden->count; i++) m->width[i + 1] = (size_t)hidden->values[i];
    m->width[m->layers] = (size_t)classes;
    lay_out(m);
    if ((st = allocate(m, largest_batch))) goto done;
    initialise(m, seed);
    *out = m;
    m = NULL;
done:
    mlp_close(m);
    return st;
}

void mlp_close(struct mlp *m)
{
    if (m == NULL) return;
    free(m->values);
    free(m->grads);
    for (int l = 0; l < m->layers; l++) free(m->outputs[l]);
    free(m->delta[0]);
    free(m->delta[1]);
    free(m);
}

int mlp_parameter_count(const struct mlp *m)
{
    return 2 * m->layers;
}

struct parameter *mlp_parameter(struct mlp *m, int id)
{
    return &m->parameters[id];
}

/* C (rows x columns) = A B, with either transposed. */
static void product(enum CBLAS_TRANSPOSE ta, enum CBLAS_TRANSPOSE tb, size_t rows, size_t columns,
                    size_t inner, const float *a, const float *b, float *c)
{
    int lda = (int)(ta == CblasNoTrans ? inner : rows);
    int ldb = (int)(tb == CblasNoTrans ? columns : inner);

    cblas_sgemm(CblasRowMajor, ta, tb, (int)rows, (int)columns, (int)inner, 1.0f, a, lda, b, ldb,
                0.0f, c, (int)columns);
}

void mlp_forward(struct mlp *m, const float *x, size_t n)
{
    for (int l = 0; l < m->layers && n > 0; l++) {
        const float *input = l == 0 ? x : m->outputs[l - 1], *bias = m->parameters[2 * l + 1].value;
        size_t width = m->width[l + 1];
        float *output = m->outputs[l];

        product(CblasNoTrans, CblasNoTrans, n, width, m->width[l], input,
                m->parameters[2 * l].value, output);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < width; j++) {
                float v = output[i * width + j] + bias[j];

                output[i * width + j] = l + 1 < m->layers && v < 0.0f ? 0.0f : v;
            }
    }
}

/* log(sum(exp(z))) of one row, without overflow. */
static double log_sum_exp(const float *z, size_t n)
{
    double largest = z[0], sum = 0;

    for (size_t j = 1; j < n; j++) largest = z[j] > largest ? z[j] : largest;
    for (size_t j = 0; j < n; j++) sum += exp((double)z[j] - largest);
    return largest + log(sum);
}

double mlp_loss(const struct mlp *m, const int32_t *labels, size_t n, size_t *correct)
{
    size_t classes = m->width[m->layers];
    double loss = 0;

    *correct = 0;
    for (size_t i = 0; i < n; i++) {
        const float *z = m->outputs[m->layers - 1] + i * classes;
        size_t best = 0;

        for (size_t j = 1; j < classes; j++) best = z[j] > z[best] ? j : best;
        *correct += best == (size_t)labels[i];
        loss += log_sum_exp(z, classes) - (double)z[labels[i]];
    }
    return loss;
}

/* Gradient of the loss by the logits: scale * (softmax - one hot). */
static void delta_of_logits(struct mlp *m, const int32_t *labels, size_t n, float scale)
{
    size_t classes = m->width[m->layers];

    for (size_t i = 0; i < n; i++) {
        const float *z = m->outputs[m->layers - 1] + i * classes;
        double norm = log_sum_exp(z, classes);

        for (size_t j = 0; j < classes; j++)
            m->delta[0][i * classes + j] =
                scale * (float)(exp((double)z[j] - norm) - (j == (size_t)labels[i]));
    }
}

static void bias_gradient(const struct mlp *m, int l, size_t n)
{
    size_t width = m->width[l + 1];
    float *grad = m->parameters[2 * l + 1].grad;

    memset(grad, 0, width * sizeof *grad);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < width; j++) grad[j] += m->delta[0][i * width + j];
}

/* From the gradient of layer l's output to that of its input, through the ReLU before. */
static void delta_of_input(struct mlp *m, int l, size_t n)
{
    size_t width = m->width[l];
    float *delta = m->delta[1];

    product(CblasNoTrans, CblasTrans, n, width, m->width[l + 1], m->delta[0],
            m->parameters[2 * l].value, delta);
    for (size_t i = 0; i < n * width; i++)
        if (m->outputs[l - 1][i] <= 0.0f) delta[i] = 0.0f;
    m->delta[1] = m->delta[0];
    m->delta[0] = delta;
}

strait_status mlp_backward(struct mlp *m, const float *x, const int32_t *labels, size_t n,
                           float scale, strait_status (*ready)(void *arg, int id), void *arg)
{
    delta_of_logits(m, labels, n, scale);
    for (int l = m->layers - 1; l >= 0; l--) {
        struct parameter *weight = &m->parameters[2 * l];
        strait_status st;

        bias_gradient(m, l, n);
        if ((st = ready(arg, 2 * l + 1))) return st;
        if (n > 0)
            product(CblasTrans, CblasNoTrans, m->width[l], m->width[l + 1], n,
                    l == 0 ? x : m->outputs[l - 1], m->delta[0], weight->grad);
        else
            memset(weight->grad, 0, parameter_elements(weight) * sizeof(float));
        if ((st = ready(arg, 2 * l))) return st;
        if (l > 0 && n > 0) delta_of_input(m, l, n);
    }
    return STRAIT_OK;
}
