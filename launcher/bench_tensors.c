/* SPDX-License-Identifier: Apache-2.0
 * bench_tensors.c - the tensors that a gradient is made of: a number of equal ones, those of
 * a known model, or those that a file lists. All in forward order, from published dimensions. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "schedule/schedule.h"

/* ---- a list that grows ---- */
static bool add(struct bench_tensors *list, const struct bench_tensor *tensor)
{
    if (list->count % 256 == 0) {
        size_t bytes = ((size_t)list->count + 256) * sizeof *list->items;
        struct bench_tensor *grown = realloc(list->items, bytes);

        if (grown == NULL) {
            list->failed = true;
            return false;
        }
        list->items = grown;
    }
    list->items[list->count] = *tensor;
    list->items[list->count++].begin = list->elements;
    list->elements += tensor->elements;
    return true;
}

/* A tensor of `ndim` dimensions (size_t each); its name is `place` and `what`. */
static void put(struct bench_tensors *list, const char *place, const char *what, int ndim, ...)
{
    struct bench_tensor tensor = { .ndim = ndim, .elements = 1 };
    va_list dims;

    snprintf(tensor.name, sizeof tensor.name, "%s%s", place, what);
    va_start(dims, ndim);
    for (int i = 0; i < ndim; i++) {
        tensor.shape[i] = va_arg(dims, size_t);
        tensor.elements *= tensor.shape[i];
    }
    va_end(dims);
    if (!list->failed) add(list, &tensor);
}

/* The scale and shift of a normalisation. */
static void put_norm(struct bench_tensors *list, const char *place, size_t width)
{
    put(list, place, ".weight", 1, width);
    put(list, place, ".bias", 1, width);
}

static void put_linear(struct bench_tensors *list, const char *place, size_t out, size_t in)
{
    put(list, place, ".weight", 2, out, in);
    put(list, place, ".bias", 1, out);
}

/* ---- ResNet-50: He et al. 2016, arXiv 1512.03385 ---- */

/* A convolution without bias, and the normalisation behind it. */
static void put_convolution(struct bench_tensors *list, const char *place, int number, size_t out,
                            size_t in, size_t side)
{
    char name[32];

    snprintf(name, sizeof name, "%sconv%d", place, number);
    put(list, name, ".weight", 4, out, in, side, side);
    snprintf(name, sizeof name, "%sbn%d", place, number);
    put_norm(list, name, out);
}

static void resnet50(struct bench_tensors *list)
{
    static const int blocks[] = { 3, 4, 6, 3 };
    size_t in = 64;

    put_convolution(list, "", 1, 64, 3, 7);
    for (int stage = 0; stage < 4; stage++) {
        size_t width = (size_t)64 << stage;

        for (int b = 0; b < blocks[stage]; b++) {
            char place[32];

            snprintf(place, sizeof place, "layer%d.%d.", stage + 1, b);
            put_convolution(list, place, 1, width, in, 1);
            put_convolution(list, place, 2, width, width, 3);
            put_convolution(list, place, 3, 4 * width, width, 1);
            if (b == 0) put_convolution(list, place, 4, 4 * width, in, 1); /* past the block */
            in = 4 * width;
        }
    }
    put_linear(list, "fc", 1000, in);
}

/* ---- BERT-large, uncased, with its pooler: Devlin et al. 2019, arXiv 1810.04805 ---- */
static void bert_large(struct bench_tensors *list)
{
    const size_t width = 1024, inner = 4096, words = 30522, places = 512, kinds = 2;
    static const char *const attention[] = { "query", "key", "value", "output" };

    put(list, "embeddings.word", "", 2, words, width);
    put(list, "embeddings.position", "", 2, places, width);
    put(list, "embeddings.type", "", 2, kinds, width);
    put_norm(list, "embeddings.norm", width);
    for (int layer = 0; layer < 24; layer++) {
        char name[48];

        for (int i = 0; i < 4; i++) {
            snprintf(name, sizeof name, "layer.%d.attention.%s", layer, attention[i]);
            put_linear(list, name, width, width);
        }
        snprintf(name, sizeof name, "layer.%d.attention.norm", layer);
        put_norm(list, name, width);
        snprintf(name, sizeof name, "layer.%d.intermediate", layer);
        put_linear(list, name, inner, width);
        snprintf(name, sizeof name, "layer.%d.output", layer);
        put_linear(list, name, width, inner);
        snprintf(name, sizeof name, "layer.%d.norm", layer);
        put_norm(list, name, width);
    }
    put_linear(list, "pooler", width, width);
}

/* ---- GPT-2, the smallest, whose output shares the word embedding: Radford et al. 2019,
 * "Language Models are Unsupervised Multitask Learners" ---- */
static void gpt2(struct bench_tensors *list)
{
    const size_t width = 768, words = 50257, places = 1024;

    put(list, "wte", "", 2, words, width);
    put(list, "wpe", "", 2, places, width);
    for (int layer = 0; layer < 12; layer++) {
        char name[32];

        snprintf(name, sizeof name, "h.%d.ln_1", layer);
        put_norm(list, name, width);
        snprintf(name, sizeof name, "h.%d.attention.in", layer);
        put_linear(list, name, 3 * width, width);
        snprintf(name, sizeof name, "h.%d.attention.out", layer);
        put_linear(list, name, width, width);
        snprintf(name, sizeof name, "h.%d.ln_2", layer);
        put_norm(list, name, width);
        snprintf(name, sizeof name, "h.%d.mlp.in", layer);
        put_linear(list, name, 4 * width, width);
        snprintf(name, sizeof name, "h.%d.mlp.out", layer);
        put_linear(list, name, width, 4 * width);
    }
    put_norm(list, "ln_f", width);
}

static const struct { const char *name; void (*make)(struct bench_tensors *); } models[] = {
    { "resnet50", resnet50 }, { "bert-large", bert_large }, { "gpt2", gpt2 },
};

/* ---- a file: a tensor a line, as `name 64 3 7 7`; # begins a comment ---- */

/* Read the name and the dimensions of `line`. False: it is no tensor. */
static bool parse_tensor(char *line, struct bench_tensor *tensor)
{
    char *rest = NULL, *word = strtok_r(line, " \t\r\n", &rest);

    *tensor = (struct bench_tensor){ .elements = 1 };
    if (strlen(word) >= sizeof tensor->name) return false;
    strcpy(tensor->name, word);
    while ((word = strtok_r(NULL, " \t\r\n", &rest)) != NULL) {
        char *end;
        unsigned long long size;

        errno = 0;
        size = word[0] == '-' ? 0 : strtoull(word, &end, 10);
        if (size == 0 || *end != '\0' || errno != 0 || tensor->ndim == STRAIT_MAX_DIMS ||
            __builtin_mul_overflow(tensor->elements, size, &tensor->elements) ||
            tensor->elements > UINT32_MAX)
            return false;
        tensor->shape[tensor->ndim++] = (size_t)size;
    }
    return tensor->ndim > 0;
}

static strait_status read_lines(const char *path, FILE *file, struct bench_tensors *out)
{
    char line[1024];

    for (int number = 1; fgets(line, sizeof line, file) != NULL; number++) {
        struct bench_tensor tensor;

        line[strcspn(line, "#")] = '\0';
        if (line[strspn(line, " \t\r\n")] == '\0') continue;
        if (out->count == BENCH_TENSORS_MAX)
            return error_set(STRAIT_ERR_FORMAT, "%s:%d: at most %d tensors", path, number,
                             BENCH_TENSORS_MAX);
        if (!parse_tensor(line, &tensor))
            return error_set(STRAIT_ERR_FORMAT, "%s:%d: no tensor; write a name of up to %zu bytes "
                             "and 1 to %d dimensions, as conv1 64 3 7 7; at most 2^32-1 elements",
                             path, number, sizeof tensor.name - 1, STRAIT_MAX_DIMS);
        if (!add(out, &tensor)) return error_memory("tensors");
    }
    if (ferror(file)) return error_set(STRAIT_ERR_IO, "%s: cannot be read: %m", path);
    return out->count > 0 ? STRAIT_OK
                          : error_set(STRAIT_ERR_FORMAT, "%s: lists no tensor", path);
}

strait_status bench_tensors_load(const char *text, struct bench_tensors *out)
{
    FILE *file;
    strait_status st;

    *out = (struct bench_tensors){ 0 };
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        if (strcmp(models[i].name, text) != 0) continue;
        models[i].make(out);
        return out->failed ? error_memory("tensors") : STRAIT_OK;
    }
    file = fopen(text, "re");
    if (file == NULL)
        return error_set(STRAIT_ERR_IO, "%s is neither resnet50, bert-large nor gpt2, and no file "
                         "that can be read: %m", text);
    st = read_lines(text, file, out);
    fclose(file);
    return st;
}

/* Rows of the matrix with that many elements that is nearest to a square, the wide one. */
static size_t rows_of(size_t elements)
{
    size_t rows = (size_t)sqrt((double)elements);

    while (rows > 1 && elements % rows != 0) rows--;
    return rows > 0 ? rows : 1;
}

strait_status bench_tensors_even(size_t elements, int count, struct bench_tensors *out)
{
    *out = (struct bench_tensors){ 0 };
    if ((size_t)count > elements) count = (int)elements;
    for (int t = 0; t < count; t++) {
        size_t each = slice_begin(elements, count, t + 1) - slice_begin(elements, count, t);
        char name[32];

        snprintf(name, sizeof name, "tensor%d", t);
        put(out, name, "", 2, rows_of(each), each / rows_of(each));
    }
    return out->failed ? error_memory("tensors") : STRAIT_OK;
}

void bench_tensors_free(struct bench_tensors *tensors)
{
    free(tensors->items);
    *tensors = (struct bench_tensors){ 0 };
}
