/* SPDX-License-Identifier: Apache-2.0
 * config_file.c - read a libconfig file over a configuration.
 *
 * All errors of a file are found before any is reported, and a file with errors
 * changes nothing. */
#include <libconfig.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/file.h"

enum { CONFIG_FILE_LIMIT = 1 << 20 };

struct reading {
    struct strait_config config; /* becomes the caller's when no error was found */
    const char *path;
    struct text errors;
};

static void complain(struct reading *r, const config_setting_t *at, const char *key,
                     const char *what)
{
    const char *file = config_setting_source_file(at);

    text_add(&r->errors, "%s%s:%u: %s: %s", r->errors.length > 0 ? "\n" : "",
             file != NULL ? file : r->path, config_setting_source_line(at), key, what);
}

static void complain_unknown(struct reading *r, const config_setting_t *at, const char *key)
{
    const struct option *nearest = option_nearest(key);
    struct text what = { 0 };

    text_add(&what, "unknown key");
    if (nearest != NULL) {
        text_add(&what, "; did you mean %s? allowed there: ", nearest->key);
        option_allowed(nearest, &what);
    } else {
        text_add(&what, "; allowed: the keys that `strait config reference` lists");
    }
    complain(r, at, key, text_string(&what));
    text_free(&what);
}

/* A path in a file is relative to the file's folder. */
static bool set_path(struct reading *r, const struct option *option, const char *value,
                     struct text *why)
{
    const char *slash = strrchr(r->path, '/');
    char *absolute = realpath(r->path, NULL);
    struct text path = { 0 };
    bool ok;

    if (absolute != NULL) slash = strrchr(absolute, '/');
    if (*value == '/' || *value == '\0' || slash == NULL)
        text_add(&path, "%s", value);
    else
        text_add(&path, "%.*s/%s", (int)(slash - (absolute != NULL ? absolute : r->path)),
                 absolute != NULL ? absolute : r->path, value);
    ok = option_set_string(option, &r->config, text_string(&path), why);
    text_free(&path);
    free(absolute);
    return ok;
}

static bool read_list(const config_setting_t *setting, struct config_list *list)
{
    list->count = config_setting_length(setting);
    if (list->count > CONFIG_LIST_MAX) return false;
    for (int i = 0; i < list->count; i++) {
        config_setting_t *element = config_setting_get_elem(setting, (unsigned)i);
        int type = config_setting_type(element);

        if (type != CONFIG_TYPE_INT && type != CONFIG_TYPE_INT64) return false;
        list->values[i] = config_setting_get_int64(element);
    }
    return true;
}

static bool set(struct reading *r, const struct option *option, const config_setting_t *setting,
                struct text *why)
{
    struct config_list list;

    switch (config_setting_type(setting)) {
    case CONFIG_TYPE_INT:
    case CONFIG_TYPE_INT64:
        return option_set_int(option, &r->config, config_setting_get_int64(setting), why);
    case CONFIG_TYPE_FLOAT:
        return option_set_real(option, &r->config, config_setting_get_float(setting), why);
    case CONFIG_TYPE_BOOL:
        return option_set_bool(option, &r->config, config_setting_get_bool(setting) != 0, why);
    case CONFIG_TYPE_STRING:
        if (option->type == OPTION_PATH)
            return set_path(r, option, config_setting_get_string(setting), why);
        return option_set_string(option, &r->config, config_setting_get_string(setting), why);
    case CONFIG_TYPE_ARRAY:
    case CONFIG_TYPE_LIST:
        if (read_list(setting, &list)) return option_set_list(option, &r->config, &list, why);
        break;
    default:
        break;
    }
    text_add(why, "a value of another form; allowed: ");
    option_allowed(option, why);
    return false;
}

static void read_setting(struct reading *r, const char *group, const config_setting_t *setting)
{
    const char *name = config_setting_name(setting);
    const struct option *option;
    struct text key = { 0 }, why = { 0 };

    text_add(&key, "%s%s%s", group, group[0] != '\0' ? "." : "", name);
    option = option_find(text_string(&key));
    if (option == NULL) {
        complain_unknown(r, setting, text_string(&key));
    } else if (!set(r, option, setting, &why)) {
        complain(r, setting, option->key, text_string(&why));
    } else {
        r->config.origin[option - config_options].kind = FROM_FILE;
        r->config.origin[option - config_options].line = (int)config_setting_source_line(setting);
    }
    text_free(&key);
    text_free(&why);
}

static void read_all(struct reading *r, const config_setting_t *root)
{
    for (int g = 0; g < config_setting_length(root); g++) {
        config_setting_t *group = config_setting_get_elem(root, (unsigned)g);

        if (!config_setting_is_group(group)) {
            read_setting(r, "", group);
            continue;
        }
        for (int i = 0; i < config_setting_length(group); i++)
            read_setting(r, config_setting_name(group),
                         config_setting_get_elem(group, (unsigned)i));
    }
}

strait_status config_load(struct strait_config *config, const char *path)
{
    struct reading r = { .config = *config, .path = path };
    config_t parsed;
    char *content = NULL;
    size_t bytes;
    strait_status st;

    config_init(&parsed);
    if (strlen(path) >= CONFIG_TEXT_BYTES) {
        st = error_set(STRAIT_ERR_CONFIG, "%s: the path is too long", path);
        goto done;
    }
    if (file_read(path, CONFIG_FILE_LIMIT, &content, &bytes) != STRAIT_OK) {
        st = error_set(STRAIT_ERR_CONFIG, "cannot read the configuration: %s",
                       strait_error_message());
        goto done;
    }
    if (strlen(content) != bytes) {
        st = error_set(STRAIT_ERR_CONFIG, "%s:1: a binary file; allowed: groups as in "
                       "docs/configuration.md", path);
        goto done;
    }
    if (config_read_string(&parsed, content) != CONFIG_TRUE) {
        st = error_set(STRAIT_ERR_CONFIG, "%s:%d: %s; allowed: groups as in docs/configuration.md",
                       path, config_error_line(&parsed), config_error_text(&parsed));
        goto done;
    }
    read_all(&r, config_root_setting(&parsed));
    st = r.errors.length > 0 ? error_set(STRAIT_ERR_CONFIG, "%s", text_string(&r.errors))
                             : STRAIT_OK;
    if (st != STRAIT_OK) goto done;
    strcpy(r.config.file, path);
    *config = r.config;
done:
    free(content);
    config_destroy(&parsed);
    text_free(&r.errors);
    return st;
}
