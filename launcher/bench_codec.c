/* SPDX-License-Identifier: Apache-2.0
 * bench_codec.c - `strait bench codec`: one core's rate of encoding and of decode-and-add,
 * with memcpy of as many bytes between every two measurements: the share of memcpy says
 * how far a kernel is from what the memory gives, whatever else the machine does. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench.h"
#include "device/device.h"

enum { SLICE = 65536 }; /* elements at a time: fits the second-level cache */

struct arena {
    size_t elements, slices;
    float *x, *residual, *sum;
    uint8_t *wire, *from, *to; /* from, to: for memcpy */
    size_t wire_stride;        /* bytes from slice to slice */
};

static const struct bench_column columns[] = {
    { "codec", 14, TEXT_COLUMN },  { "wire_bytes", 12, 0 },     { "encode_gbs", 10, 2 },
    { "encode_percent", 14, 0 },   { "encode_ns", 9, 3 },       { "decode_gbs", 10, 2 },
    { "decode_percent", 14, 0 },   { "decode_ns", 9, 3 },       { "memcpy_gbs", 10, 2 },
};

static void print_help(void)
{
    printf("Usage: strait bench codec [OPTIONS]\n\n"
           "The rate of each codec's kernels on one core, in slices of %d elements, and\n"
           "memcpy of as many bytes, measured in turn. GB/s count bytes read and written.\n\n"
           "  --codec LIST   codecs, as int8,topk:0.01 (default all)\n"
           "  --size BYTES   gradient, as fp32 (default 100M)\n"
           "  --repeat N     measurements, of which the median counts (default 7)\n"
           "  --format F     text, csv or json (default text)\n"
           "  --set KEY=VALUE  a comm.* value of the codecs, as comm.rounding=stochastic\n\n"
           "encode reads the gradient, reads and writes the residual of a lossy codec, and writes\n"
           "the encoded bytes; decode reads those and adds to a sum. percent: of memcpy's rate;\n"
           "ns: nanoseconds an element.\n", SLICE);
}

static size_t slice_elements(const struct arena *a, size_t slice)
{
    return slice + 1 < a->slices ? SLICE : a->elements - slice * SLICE;
}

static void arena_free(struct arena *a)
{
    free(a->x);
    free(a->residual);
    free(a->sum);
    free(a->wire);
    free(a->from);
    free(a->to);
}

static strait_status arena_open(struct arena *a, size_t elements,
                                const struct bench_codec_choice *choices, int count,
                                const struct codec_settings *settings)
{
    size_t bytes = elements * sizeof(float), copied = bytes * 2;

    *a = (struct arena){ .elements = elements, .slices = (elements + SLICE - 1) / SLICE };
    for (int i = 0; i < count; i++) {
        size_t wire = codec_shape(choices[i].codec, &settings[i], SLICE).wire_bytes;

        if (wire > a->wire_stride) a->wire_stride = wire;
    }
    a->wire_stride = (a->wire_stride + 63) / 64 * 64;
    copied += a->slices * a->wire_stride; /* more than half of what any kernel moves */
    a->x = device_host_open()->allocate(bytes);
    a->residual = device_host_open()->allocate(bytes);
    a->sum = device_host_open()->allocate(bytes);
    a->wire = device_host_open()->allocate(a->slices * a->wire_stride);
    a->from = device_host_open()->allocate(copied);
    a->to = device_host_open()->allocate(copied);
    if (!a->x || !a->residual || !a->sum || !a->wire || !a->from || !a->to)
        return error_memory("the gradient; try a smaller --size");
    for (size_t i = 0; i < elements; i++) a->x[i] = bench_value(bench_key(0), i);
    return STRAIT_OK;
}

/* All slices once; `decode` or encode. The wire bytes go to *wire_bytes. */
static strait_status pass(struct arena *a, const struct bench_codec_choice *choice,
                          const struct codec_settings *settings, bool decode, size_t *wire_bytes)
{
    const struct kernels *kernels = device_host_open()->kernels;
    struct codec_draw draw = { .key = bench_key(0), .noise = bench_key(1) };
    strait_status st = STRAIT_OK;

    *wire_bytes = 0;
    for (size_t s = 0; s < a->slices && st == STRAIT_OK; s++) {
        struct codec_shape shape = codec_shape(choice->codec, settings, slice_elements(a, s));
        size_t at = draw.first = s * SLICE;
        float *residual = choice->codec->lossy ? a->residual + at : NULL;
        uint8_t *wire = a->wire + s * a->wire_stride;

        if (decode)
            st = codec_decode(&shape, kernels, draw, wire, shape.wire_bytes, DECODE_ADD,
                              a->sum + at);
        else
            st = codec_encode(&shape, kernels, draw, a->x + at, residual, residual, wire);
        *wire_bytes += shape.wire_bytes;
    }
    return st;
}

/* Bytes read and written by one pass. */
static double bytes_moved(const struct arena *a, const struct bench_codec_choice *choice,
                          bool decode, size_t wire_bytes)
{
    int floats = decode ? 2 : choice->codec->lossy ? 3 : 1;

    return (double)(a->elements * sizeof(float)) * floats + (double)wire_bytes;
}

/* memcpy that reads and writes `bytes` together, in as many slices. */
static double copy_seconds(struct arena *a, double bytes)
{
    size_t part = (size_t)(bytes / 2) / a->slices;
    double begin = clock_s();

    for (size_t s = 0; s < a->slices; s++) {
        memcpy(a->to + s * part, a->from + s * part, part);
        __asm__ volatile("" ::: "memory"); /* nobody reads it: it must happen all the same */
    }
    return clock_s() - begin;
}

struct rate {
    double gbs, copy_gbs, ns;
    size_t wire_bytes;
};

static strait_status measure(struct arena *a, const struct bench_codec_choice *choice,
                             const struct codec_settings *settings, bool decode, int repeats,
                             struct rate *out)
{
    double times[repeats], copies[repeats], bytes = 0;
    strait_status st = pass(a, choice, settings, decode, &out->wire_bytes); /* warm up */

    for (int r = 0; r < repeats && st == STRAIT_OK; r++) {
        double begin;

        /* an element that is never sent must not grow for ever */
        if (!decode) memset(a->residual, 0, a->elements * sizeof(float));
        begin = clock_s();
        st = pass(a, choice, settings, decode, &out->wire_bytes);
        times[r] = clock_s() - begin;
        bytes = bytes_moved(a, choice, decode, out->wire_bytes);
        copies[r] = copy_seconds(a, bytes);
    }
    if (st != STRAIT_OK) return st;
    out->ns = bench_median(times, repeats) * 1e9 / (double)a->elements;
    out->gbs = bytes * 1e-9 / bench_median(times, repeats);
    out->copy_gbs = bytes * 1e-9 / bench_median(copies, repeats);
    return STRAIT_OK;
}

/* The defaults, what stands behind the codec's colon, then --set. */
static strait_status settings_of(const struct bench_codec_choice *choice,
                                 const struct bench_sets *sets, struct codec_settings *out)
{
    struct strait_config config;
    strait_status st = STRAIT_OK;

    config_defaults(&config);
    if (choice->set[0] != '\0') st = config_assign(&config, choice->set);
    for (int i = 0; i < sets->count && st == STRAIT_OK; i++)
        st = config_assign(&config, sets->values[i]);
    *out = codec_settings_of(&config);
    return st;
}

/* Leave out of `all` what is no loop over a slice; alone, it is an error. */
static int only_slices(const char *command, struct bench_codec_choice *choices, int count)
{
    int kept = 0;

    for (int i = 0; i < count; i++)
        if (!choices[i].codec->factored) choices[kept++] = choices[i];
    if (kept == 0 && count > 0)
        usage_error(command, "%s works on whole matrices: see strait bench allreduce",
                    choices[0].label);
    return kept;
}

static strait_status run(const struct bench_codec_choice *choices, int count,
                         const struct codec_settings *settings, size_t elements, int repeats,
                         struct bench_table *table)
{
    struct arena arena;
    strait_status st;

    st = arena_open(&arena, elements, choices, count, settings);
    for (int i = 0; i < count && st == STRAIT_OK; i++) {
        struct rate e, d;

        if ((st = measure(&arena, &choices[i], &settings[i], false, repeats, &e))) break;
        if ((st = measure(&arena, &choices[i], &settings[i], true, repeats, &d))) break;
        bench_table_row(table, (union bench_cell[]){
            { .text = choices[i].label }, { .number = (double)e.wire_bytes },
            { .number = e.gbs }, { .number = 100 * e.gbs / e.copy_gbs }, { .number = e.ns },
            { .number = d.gbs }, { .number = 100 * d.gbs / d.copy_gbs }, { .number = d.ns },
            { .number = e.copy_gbs } });
    }
    arena_free(&arena);
    return st;
}

int bench_codec(int argc, char **argv)
{
    static const char command[] = "bench codec";
    const char *codec = "all", *size = "100M", *repeat = "7", *format = "text";
    const struct bench_option options[] = {
        { "--codec", &codec, NULL }, { "--size", &size, NULL }, { "--repeat", &repeat, NULL },
        { "--format", &format, NULL }, { 0 },
    };
    struct bench_codec_choice choices[BENCH_CODECS_MAX];
    struct codec_settings settings[BENCH_CODECS_MAX];
    struct bench_sets sets = { 0 };
    struct bench_sizes sizes;
    struct bench_table *table;
    long repeats;
    int count;
    strait_status st;

    if (bench_wants_help(argc, argv)) {
        if (speaks()) print_help();
        return 0;
    }
    if (!bench_parse(command, argc, argv, options, &sets)) return EXIT_USAGE;
    count = only_slices(command, choices, bench_codecs(command, codec, choices));
    if (count == 0) return EXIT_USAGE;
    for (int i = 0; i < count; i++)
        if (settings_of(&choices[i], &sets, &settings[i]))
            return usage_error(command, "%s", strait_error_message());
    if (!bench_sizes(command, size, &sizes)) return EXIT_USAGE;
    if (sizes.first != sizes.last) return usage_error(command, "--size takes one size");
    if (!bench_integer(command, "--repeat", repeat, 1, 1000, &repeats)) return EXIT_USAGE;
    if (!bench_format_known(format))
        return usage_error(command, "--format takes text, csv or json, not %s", format);
    if (!speaks()) return 0; /* one core's measurement: the other ranks would only disturb it */
    table = bench_table_open(format, "codec", columns, sizeof columns / sizeof columns[0]);
    if (table == NULL) return report_error(error_memory("a table"));
    st = run(choices, count, settings, sizes.first / sizeof(float), (int)repeats, table);
    if (!bench_table_close(table)) return 1;
    return st != STRAIT_OK ? report_error(st) : 0;
}
