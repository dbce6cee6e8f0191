/* SPDX-License-Identifier: Apache-2.0
 * config_print.c - the effective configuration and the reference page. */
#include <string.h>

#include "base/config.h"

static int group_length(const char *key)
{
    return (int)(strchr(key, '.') - key);
}

static bool same_group(const struct option *a, const struct option *b)
{
    return strncmp(a->key, b->key, (size_t)group_length(a->key) + 1) == 0;
}

static void write_origin(const struct strait_config *config, int row, struct text *out)
{
    const struct config_origin *origin = &config->origin[row];

    if (origin->kind == FROM_FILE) text_add(out, "%s:%d", config->file, origin->line);
    else text_add(out, "%s", origin->kind == FROM_SET ? "--set" : "default");
}

void config_print(const struct strait_config *config, struct text *out)
{
    for (int i = 0; i < config_option_count; i++) {
        const struct option *option = &config_options[i];
        bool last = i + 1 == config_option_count || !same_group(option, option + 1);
        struct text line = { 0 };

        if (i == 0 || !same_group(option - 1, option))
            text_add(out, "%.*s = {\n", group_length(option->key), option->key);
        text_add(&line, "  %s = ", strchr(option->key, '.') + 1);
        option_write(option, config, &line);
        text_add(out, "%s;%*s # ", text_string(&line),
                 line.length < 40 ? 40 - (int)line.length : 0, "");
        write_origin(config, i, out);
        text_add(out, "\n%s", last ? "};\n" : "");
        text_free(&line);
    }
}

static const char *type_name(const struct option *option)
{
    static const char *const names[] = {
        [OPTION_INT] = "integer", [OPTION_REAL] = "number", [OPTION_BOOL] = "boolean",
        [OPTION_CHOICE] = "choice", [OPTION_STRING] = "string", [OPTION_PATH] = "path",
        [OPTION_LIST] = "list",
    };

    return names[option->type];
}

void config_reference(struct text *out)
{
    text_add(out,
             "# Configuration\n\n"
             "<!-- Made by `strait config reference`; `make update-reference` renews it. -->\n\n"
             "A configuration is a [libconfig](https://hyperrealm.github.io/libconfig/) file of\n"
             "groups; `--set group.key=value` on the command line goes over it. A relative path\n"
             "is taken from the folder of the file it stands in, and on the command line from\n"
             "the folder the command is given in. `strait config print FILE` shows every value\n"
             "with its origin, `strait config check FILE` every error at once.\n");
    for (int i = 0; i < config_option_count; i++) {
        const struct option *option = &config_options[i];

        if (i == 0 || !same_group(option - 1, option))
            text_add(out,
                     "\n## %.*s\n\n| key | type | unit | default | allowed | meaning |\n"
                     "|---|---|---|---|---|---|\n",
                     group_length(option->key), option->key);
        text_add(out, "| `%s` | %s | %s | `%s` | ", option->key, type_name(option), option->unit,
                 option->fallback[0] != '\0' ? option->fallback : "\"\"");
        option_allowed(option, out);
        text_add(out, " | %s |\n", option->help);
    }
}
