/* SPDX-License-Identifier: Apache-2.0
 * config.c - the configuration as a whole: defaults, assignments, rules between keys,
 * and the text form in which rank 0 hands it to the others. */
#include "base/config.h"

#include <stdlib.h>
#include <string.h>

void config_defaults(struct strait_config *config)
{
    struct text why = { 0 };

    memset(config, 0, sizeof *config);
    for (int i = 0; i < config_option_count; i++)
        option_set_text(&config_options[i], config, config_options[i].fallback, &why);
    if (why.length > 0) abort(); /* a default out of its own bounds: a test walks the table */
    text_free(&why);
}

/* Split "key=value"; the key is copied to `key`. Returns the value or NULL. */
static const char *split(const char *assignment, char *key, size_t key_bytes)
{
    const char *equals = strchr(assignment, '=');

    if (equals == NULL || equals == assignment || (size_t)(equals - assignment) >= key_bytes)
        return NULL;
    memcpy(key, assignment, (size_t)(equals - assignment));
    key[equals - assignment] = '\0';
    return equals + 1;
}

strait_status config_assign(struct strait_config *config, const char *assignment)
{
    char key[128];
    const char *value = split(assignment, key, sizeof key);
    const struct option *option, *nearest;
    struct text why = { 0 };
    strait_status st = STRAIT_OK;

    if (value == NULL)
        return error_set(STRAIT_ERR_CONFIG, "--set %s: expected group.key=value", assignment);
    option = option_find(key);
    if (option == NULL) {
        nearest = option_nearest(key);
        return error_set(STRAIT_ERR_CONFIG, "--set %s: unknown key%s%s%s", key,
                         nearest != NULL ? "; did you mean " : "",
                         nearest != NULL ? nearest->key : "", nearest != NULL ? "?" : "");
    }
    if (option_set_text(option, config, value, &why))
        config->origin[option - config_options] = (struct config_origin){ FROM_SET, 0 };
    else
        st = error_set(STRAIT_ERR_CONFIG, "--set %s: %s", key, text_string(&why));
    text_free(&why);
    return st;
}

/* Say where `key` was set, so that an error can be found. */
static void complain(const struct strait_config *config, struct text *errors, const char *key,
                     const char *what)
{
    const struct config_origin *origin = &config->origin[option_find(key) - config_options];

    if (errors->length > 0) text_add(errors, "\n");
    if (origin->kind == FROM_FILE) text_add(errors, "%s:%d: ", config->file, origin->line);
    else if (config->file[0] != '\0') text_add(errors, "%s: ", config->file);
    text_add(errors, "%s: %s", key, what);
}

strait_status config_check(const struct strait_config *config)
{
    struct text errors = { 0 };
    bool idx = strcmp(config->data.format, "idx") == 0;
    strait_status st = STRAIT_OK;

    if (!idx && config->data.path[0] == '\0')
        complain(config, &errors, "data.path", "missing; allowed: the file of samples");
    if (idx && config->data.images[0] == '\0')
        complain(config, &errors, "data.images", "missing; allowed: an idx file of images");
    if (idx && config->data.labels[0] == '\0')
        complain(config, &errors, "data.labels", "missing; allowed: an idx file of labels");
    if (idx && (config->data.test_images[0] == '\0') != (config->data.test_labels[0] == '\0'))
        complain(config, &errors, "data.test_images",
                 "goes with data.test_labels; allowed: both or none");
    if (strchr(config->run.name, '/') != NULL || config->run.name[0] == '\0')
        complain(config, &errors, "run.name", "is part of a folder's name; allowed: no slash, "
                 "at least one character");
    if (config->comm.momentum_correction > 0 &&
        (strcmp(config->train.optimizer, "sgd") != 0 || config->train.momentum > 0))
        complain(config, &errors, "comm.momentum_correction", "momentum would be applied twice; "
                 "allowed: 0, or train.optimizer = \"sgd\" with train.momentum = 0");
    if (errors.length > 0) st = error_set(STRAIT_ERR_CONFIG, "%s", text_string(&errors));
    text_free(&errors);
    return st;
}

void config_pack(const struct strait_config *config, struct text *out)
{
    text_add(out, "%s\n", config->file);
    for (int i = 0; i < config_option_count; i++) {
        text_add(out, "%d %d ", (int)config->origin[i].kind, config->origin[i].line);
        option_write(&config_options[i], config, out);
        text_add(out, "\n");
    }
}

/* One line of config_pack(): "kind line value". */
static bool unpack_option(struct strait_config *config, int row, const char *line,
                          struct text *why)
{
    int kind, at, used;

    if (sscanf(line, "%d %d %n", &kind, &at, &used) != 2 || kind < FROM_DEFAULT || kind > FROM_SET)
        return false;
    config->origin[row].kind = (unsigned)kind;
    config->origin[row].line = at;
    return option_set_text(&config_options[row], config, line + used, why);
}

strait_status config_unpack(struct strait_config *config, const char *packed)
{
    char line[CONFIG_TEXT_BYTES + 64];
    struct text why = { 0 };

    config_defaults(config);
    for (int row = -1; row < config_option_count; row++) {
        const char *end = strchr(packed, '\n');

        if (end == NULL)
            return error_set(STRAIT_ERR_FORMAT, "configuration from rank 0: cut short");
        snprintf(line, sizeof line, "%.*s", (int)(end - packed), packed);
        packed = end + 1;
        if (row < 0) {
            snprintf(config->file, sizeof config->file, "%.*s", CONFIG_TEXT_BYTES - 1, line);
        } else if (!unpack_option(config, row, line, &why)) {
            error_set(STRAIT_ERR_FORMAT, "configuration from rank 0: %s: '%s' %s",
                      config_options[row].key, line, text_string(&why));
            text_free(&why);
            return STRAIT_ERR_FORMAT;
        }
    }
    return STRAIT_OK;
}

strait_status strait_config_create(strait_config **out)
{
    struct strait_config *config = malloc(sizeof *config);

    if (config == NULL) return error_memory("a configuration");
    config_defaults(config);
    *out = config;
    return STRAIT_OK;
}

strait_status strait_config_load(strait_config *config, const char *path)
{
    return config_load(config, path);
}

strait_status strait_config_set(strait_config *config, const char *assignment)
{
    return config_assign(config, assignment);
}

void strait_config_destroy(strait_config *config)
{
    free(config);
}
