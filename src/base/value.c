/* SPDX-License-Identifier: Apache-2.0
 * value.c - one option's value: checked when it is set, written as libconfig reads it. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"

void *option_value(const struct option *option, struct strait_config *config)
{
    return (char *)config + option->offset;
}

static bool refuse_type(const struct option *option, struct text *why, const char *got)
{
    text_add(why, "%s is not what it takes; allowed: ", got);
    option_allowed(option, why);
    return false;
}

static bool in_bounds(const struct option *option, double value, struct text *why)
{
    if (value >= option->min && value <= option->max) return true;
    text_add(why, "%.15g is out of range; allowed: ", value);
    option_allowed(option, why);
    return false;
}

bool option_set_int(const struct option *option, struct strait_config *config, int64_t value,
                    struct text *why)
{
    if (option->type == OPTION_REAL) return option_set_real(option, config, (double)value, why);
    if (option->type == OPTION_LIST)
        return option_set_list(option, config, &(struct config_list){ 1, { value } }, why);
    if (option->type != OPTION_INT) return refuse_type(option, why, "an integer");
    if (!in_bounds(option, (double)value, why)) return false;
    if (option->step > 0 && value % option->step != 0) {
        text_add(why, "%lld is between two steps; allowed: ", (long long)value);
        option_allowed(option, why);
        return false;
    }
    *(int64_t *)option_value(option, config) = value;
    return true;
}

bool option_set_real(const struct option *option, struct strait_config *config, double value,
                     struct text *why)
{
    if (option->type != OPTION_REAL) return refuse_type(option, why, "a fraction");
    if (!in_bounds(option, value, why)) return false;
    *(double *)option_value(option, config) = value;
    return true;
}

bool option_set_bool(const struct option *option, struct strait_config *config, bool value,
                     struct text *why)
{
    if (option->type != OPTION_BOOL) return refuse_type(option, why, value ? "true" : "false");
    *(bool *)option_value(option, config) = value;
    return true;
}

bool option_set_list(const struct option *option, struct strait_config *config,
                     const struct config_list *value, struct text *why)
{
    if (option->type != OPTION_LIST) return refuse_type(option, why, "a list");
    for (int i = 0; i < value->count; i++)
        if (!in_bounds(option, (double)value->values[i], why)) return false;
    *(struct config_list *)option_value(option, config) = *value;
    return true;
}

static bool set_choice(const struct option *option, struct strait_config *config,
                       const char *value, struct text *why)
{
    for (int i = 0; option->choices[i] != NULL; i++) {
        if (strcmp(option->choices[i], value) != 0) continue;
        *(const char **)option_value(option, config) = option->choices[i];
        return true;
    }
    text_add(why, "\"%s\" is unknown; allowed: ", value);
    option_allowed(option, why);
    return false;
}

bool option_set_string(const struct option *option, struct strait_config *config,
                       const char *value, struct text *why)
{
    if (option->type == OPTION_CHOICE) return set_choice(option, config, value, why);
    if (option->type != OPTION_STRING && option->type != OPTION_PATH)
        return refuse_type(option, why, "a string");
    if (strlen(value) >= CONFIG_TEXT_BYTES) return refuse_type(option, why, "so long a string");
    for (const char *p = value; *p != '\0'; p++)
        if (iscntrl((unsigned char)*p) || *p == '"' || *p == '\\')
            return refuse_type(option, why, "a quote, backslash or control character");
    strcpy(option_value(option, config), value);
    return true;
}

/* "1,2" and "[1, 2]" alike. */
static bool parse_list(const char *text, struct config_list *list)
{
    bool bracket = *text == '[';

    *list = (struct config_list){ 0 };
    text += bracket;
    while (*text != '\0' && *text != ']') {
        char *end;

        if (list->count == CONFIG_LIST_MAX) return false;
        errno = 0;
        list->values[list->count++] = strtoll(text, &end, 10);
        if (end == text || errno != 0 || strchr(bracket ? ",]" : ",", *end) == NULL) return false;
        text = *end == ',' ? end + 1 : end;
    }
    return strcmp(text, bracket ? "]" : "") == 0;
}

/* A path on the command line is relative to where the command was given. */
static bool set_path(const struct option *option, struct strait_config *config,
                     const char *value, struct text *why)
{
    struct text path = { 0 };
    char *here = *value != '\0' && *value != '/' ? getcwd(NULL, 0) : NULL;
    bool ok;

    text_add(&path, "%s%s%s", here != NULL ? here : "", here != NULL ? "/" : "", value);
    ok = option_set_string(option, config, text_string(&path), why);
    free(here);
    text_free(&path);
    return ok;
}

/* A string may stand in quotes, as option_write() puts it. */
static bool set_text(const struct option *option, struct strait_config *config,
                     const char *value, struct text *why)
{
    size_t length = strlen(value);
    char plain[CONFIG_TEXT_BYTES + 2];

    if (length >= 2 && length < sizeof plain && value[0] == '"' && value[length - 1] == '"') {
        snprintf(plain, sizeof plain, "%.*s", (int)length - 2, value + 1);
        value = plain;
    }
    return option->type == OPTION_PATH ? set_path(option, config, value, why)
                                       : option_set_string(option, config, value, why);
}

bool option_set_text(const struct option *option, struct strait_config *config,
                     const char *value, struct text *why)
{
    struct config_list list;
    long long integer;
    double real;
    char *end;

    errno = 0;
    switch (option->type) {
    case OPTION_BOOL:
        if (strcmp(value, "true") == 0) return option_set_bool(option, config, true, why);
        if (strcmp(value, "false") == 0) return option_set_bool(option, config, false, why);
        break;
    case OPTION_INT:
        integer = strtoll(value, &end, 10);
        if (end != value && (*end == '\0' || strcmp(end, "L") == 0) && errno == 0)
            return option_set_int(option, config, integer, why);
        break;
    case OPTION_REAL:
        real = strtod(value, &end);
        if (*value != '\0' && *end == '\0' && isfinite(real))
            return option_set_real(option, config, real, why);
        break;
    case OPTION_LIST:
        if (parse_list(value, &list)) return option_set_list(option, config, &list, why);
        break;
    case OPTION_PATH:
    case OPTION_CHOICE:
    case OPTION_STRING:
        return set_text(option, config, value, why);
    }
    text_add(why, "\"%s\" is not what it takes; allowed: ", value);
    option_allowed(option, why);
    return false;
}

/* A short text that reads back as the same number, always with a point or an exponent:
 * libconfig tells numbers with fractions from integers by that. */
static void write_real(double value, struct text *out)
{
    char digits[40];

    for (int precision = 6; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value) break;
    }
    text_add(out, "%s%s", digits, strpbrk(digits, ".e") != NULL ? "" : ".0");
}

void option_write(const struct option *option, const struct strait_config *config,
                  struct text *out)
{
    const void *value = (const char *)config + option->offset;
    const struct config_list *list = value;

    switch (option->type) {
    case OPTION_INT:
        text_add(out, "%lld%s", *(const long long *)value,
                 llabs(*(const long long *)value) > INT32_MAX ? "L" : "");
        break;
    case OPTION_REAL:
        write_real(*(const double *)value, out);
        break;
    case OPTION_BOOL:
        text_add(out, "%s", *(const bool *)value ? "true" : "false");
        break;
    case OPTION_CHOICE:
        text_add(out, "\"%s\"", *(const char *const *)value);
        break;
    case OPTION_STRING:
    case OPTION_PATH:
        text_add(out, "\"%s\"", (const char *)value);
        break;
    case OPTION_LIST:
        text_add(out, "[");
        for (int i = 0; i < list->count; i++)
            text_add(out, "%s%lld", i > 0 ? ", " : "", (long long)list->values[i]);
        text_add(out, "]");
        break;
    }
}
