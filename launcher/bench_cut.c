/* SPDX-License-Identifier: Apache-2.0
 * bench_cut.c - how a gradient is cut into tensors: evenly, or as a model's. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "schedule/schedule.h"

/* The tensors of ResNet-50 (He et al. 2016, arXiv 1512.03385) in forward order: 161 with
 * 25557032 elements. */
enum { RESNET50_TENSORS = 161 };

struct sizes {
    size_t values[RESNET50_TENSORS];
    int count;
};

static void add(struct sizes *s, size_t elements)
{
    s->values[s->count++] = elements;
}

/* A convolution without bias, and the scale and shift behind it. */
static void add_convolution(struct sizes *s, size_t in, size_t out, size_t side)
{
    add(s, in * out * side * side);
    add(s, out);
    add(s, out);
}

static struct sizes resnet50(void)
{
    static const int blocks[] = { 3, 4, 6, 3 };
    struct sizes s = { .count = 0 };
    size_t in = 64;

    add_convolution(&s, 3, 64, 7);
    for (int stage = 0; stage < 4; stage++) {
        size_t width = (size_t)64 << stage;

        for (int b = 0; b < blocks[stage]; b++) {
            add_convolution(&s, in, width, 1);
            add_convolution(&s, width, width, 3);
            add_convolution(&s, width, 4 * width, 1);
            if (b == 0) add_convolution(&s, in, 4 * width, 1);
            in = 4 * width;
        }
    }
    add(&s, in * 1000);
    add(&s, 1000);
    return s;
}

/* In the proportions of the model; what would be empty at this size is left out. */
static int cut_as_model(size_t elements, size_t *bounds)
{
    struct sizes s = resnet50();
    double total = 0, before = 0;
    int count = 0;

    for (int i = 0; i < s.count; i++) total += (double)s.values[i];
    bounds[0] = 0;
    for (int i = 0; i < s.count; i++) {
        size_t bound;

        before += (double)s.values[i];
        bound = i + 1 == s.count ? elements : (size_t)((double)elements * before / total + 0.5);
        if (bound > bounds[count]) bounds[++count] = bound;
    }
    return count;
}

bool bench_cut_known(const char *command, const char *text)
{
    long count;

    return strcmp(text, "resnet50") == 0 ||
           bench_integer(command, "--tensors", text, 1, BENCH_TENSORS_MAX, &count);
}

int bench_cut(const char *text, size_t elements, size_t **out)
{
    bool model = strcmp(text, "resnet50") == 0;
    size_t count = model ? RESNET50_TENSORS : strtoul(text, NULL, 10);
    size_t *bounds;

    if (count > elements && !model) count = elements;
    bounds = calloc(count + 1, sizeof *bounds);
    if (bounds == NULL) return 0;
    *out = bounds;
    if (model) return cut_as_model(elements, bounds);
    for (size_t t = 0; t <= count; t++) bounds[t] = slice_begin(elements, (int)count, (int)t);
    return (int)count;
}
