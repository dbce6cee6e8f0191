/* SPDX-License-Identifier: Apache-2.0
 * bench_options.c - the command line of the benchmarks, and the data that they exchange. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "bench.h"

bool bench_wants_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    return false;
}

/* The row of `word`, or NULL; *behind is what stands after its '=', or NULL. */
static const struct bench_option *find(const struct bench_option *options, const char *word,
                                       const char **behind)
{
    size_t length = strcspn(word, "=");

    *behind = word[length] == '=' ? word + length + 1 : NULL;
    for (; options->name != NULL; options++)
        if (strlen(options->name) == length && strncmp(options->name, word, length) == 0)
            return options;
    return NULL;
}

bool bench_parse(const char *command, int argc, char **argv, const struct bench_option *options,
                 struct bench_sets *sets)
{
    const char *set = NULL, *behind;
    const struct bench_option set_option[] = { { "--set", &set, NULL }, { 0 } };

    for (int i = 0; i < argc; i++) {
        const struct bench_option *option = find(options, argv[i], &behind);

        if (option == NULL && sets != NULL) option = find(set_option, argv[i], &behind);
        if (option == NULL || (option->flag != NULL && behind != NULL)) {
            usage_error(command, "unknown option %s", argv[i]);
            return false;
        }
        if (option->flag != NULL) {
            *option->flag = true;
            continue;
        }
        if (behind == NULL && i + 1 < argc) behind = argv[++i];
        if (behind == NULL || behind[0] == '\0') {
            usage_error(command, "%s wants a value", option->name);
            return false;
        }
        *option->value = behind;
        if (option->value == &set && sets->count == BENCH_SETS_MAX) {
            usage_error(command, "--set at most %d times", BENCH_SETS_MAX);
            return false;
        }
        if (option->value == &set) sets->values[sets->count++] = set;
    }
    return true;
}

bool bench_integer(const char *command, const char *name, const char *text, long min, long max,
                   long *out)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (end != text && *end == '\0' && errno == 0 && value >= min && value <= max) {
        *out = value;
        return true;
    }
    usage_error(command, "%s takes an integer, %ld .. %ld, not %s", name, min, max, text);
    return false;
}

/* Digits and at most one of K, M, G; *end is what follows. 0: no such number. */
static size_t read_size(const char *text, const char **end)
{
    static const char units[] = "KMG";
    char *rest;
    unsigned long value = isdigit((unsigned char)*text) ? strtoul(text, &rest, 10) : 0;
    const char *unit;

    if (value == 0 || value > 8ul << 30) return 0;
    unit = *rest != '\0' ? strchr(units, toupper((unsigned char)*rest)) : NULL;
    if (unit != NULL) value <<= 10 * (unit - units + 1);
    *end = rest + (unit != NULL);
    return value;
}

bool bench_sizes(const char *command, const char *text, struct bench_sizes *out)
{
    const char *end = "";

    *out = (struct bench_sizes){ .factor = 4 };
    out->first = out->last = read_size(text, &end);
    if (*end == ':') out->last = read_size(end + 1, &end);
    if (*end == ':') out->factor = read_size(end + 1, &end);
    if (*end == '\0' && out->first >= sizeof(float) && out->first <= out->last &&
        out->last <= 8ul << 30 && out->factor >= 2)
        return true;
    usage_error(command, "%s is no size: write 1M, 4K:256M or 4K:256M:2 (bytes of fp32, "
                "4 .. 8G, the smaller first)", text);
    return false;
}

/* ---- codecs ---- */
static const struct { const char *codec, *key; } parameters[] = {
    { "fp8", "comm.block" },  { "int8", "comm.block" },   { "int4", "comm.block" },
    { "int2", "comm.block" }, { "onebit", "comm.block" },
    { "topk", "comm.topk_ratio" }, { "randk", "comm.randk_ratio" },
    { "powersgd", "comm.powersgd_rank" },
};

static bool set_parameter(const char *command, struct bench_codec_choice *choice,
                          const char *value)
{
    struct strait_config scratch;

    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++)
        if (strcmp(parameters[i].codec, choice->codec->name) == 0)
            snprintf(choice->set, sizeof choice->set, "%s=%s", parameters[i].key, value);
    if (choice->set[0] == '\0') {
        usage_error(command, "%s takes no parameter", choice->codec->name);
        return false;
    }
    config_defaults(&scratch);
    if (config_assign(&scratch, choice->set) == STRAIT_OK) return true;
    usage_error(command, "%s", strait_error_message());
    return false;
}

static bool choose(const char *command, const char *word, struct bench_codec_choice *choice)
{
    char name[sizeof choice->label];

    *choice = (struct bench_codec_choice){ 0 };
    snprintf(choice->label, sizeof choice->label, "%s", word);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, ":"), word);
    choice->codec = strlen(word) < sizeof name ? codec_find(name) : NULL;
    if (choice->codec != NULL)
        return strchr(word, ':') == NULL ||
               set_parameter(command, choice, strchr(word, ':') + 1);
    usage_error(command, "unknown codec %s; `strait info` lists them", word);
    return false;
}

int bench_codecs(const char *command, const char *text,
                 struct bench_codec_choice out[BENCH_CODECS_MAX])
{
    struct text all = { 0 };
    char *word, *rest = NULL;
    int count = 0;
    bool ok;

    if (strcmp(text, "all") != 0) text_add(&all, "%s", text);
    else for (int i = 0; codec_table[i] != NULL; i++) text_add(&all, "%s,", codec_table[i]->name);
    ok = !all.failed;
    for (word = strtok_r(all.bytes, ",", &rest); ok && word != NULL;
         word = strtok_r(NULL, ",", &rest)) {
        ok = count < BENCH_CODECS_MAX && choose(command, word, &out[count]);
        if (!ok && count == BENCH_CODECS_MAX)
            usage_error(command, "at most %d codecs", BENCH_CODECS_MAX);
        count++;
    }
    if (ok && count == 0) usage_error(command, "--codec names no codec");
    text_free(&all);
    return ok ? count : 0;
}

/* ---- data ---- */
uint64_t bench_key(int rank)
{
    return random_mix(random_mix(1) ^ (uint64_t)rank);
}

float bench_value(uint64_t key, uint64_t index)
{
    uint64_t bits = random_mix(key ^ index);
    /* four uniform numbers of 16 bits: their sum is close to a normal one */
    uint64_t sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);

    return ((float)sum - 131070.0f) * 2.3e-7f;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
