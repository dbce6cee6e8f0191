/* SPDX-License-Identifier: Apache-2.0
 * cmd_config.c - `strait config check|print|reference`. */
#include <string.h>

#include "launcher.h"

static void print_help(void)
{
    printf("Usage: strait config check FILE [--set group.key=value]...\n"
           "       strait config print FILE [--set group.key=value]...\n"
           "       strait config reference\n\n"
           "  check      report every error of FILE, a line each: file:line: key: what; allowed\n"
           "  print      the effective configuration, each value with where it came from\n"
           "  reference  all keys with type, unit, default, bounds and meaning (Markdown)\n");
}

static int print_text(struct text *text)
{
    if (speaks()) fputs(text_string(text), stdout);
    text_free(text);
    if (fflush(stdout) == 0 && !ferror(stdout)) return 0;
    fprintf(stderr, "strait config: cannot write to standard output\n");
    return 1;
}

int cmd_config(int argc, char **argv)
{
    const char *action = argc > 0 ? argv[0] : "";
    bool check = strcmp(action, "check") == 0, print = strcmp(action, "print") == 0;
    struct config_arguments arguments;
    struct strait_config config;
    struct text out = { 0 };
    strait_status st;

    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            if (speaks()) print_help();
            return 0;
        }
    if (strcmp(action, "reference") == 0 && argc == 1) {
        config_reference(&out);
        return print_text(&out);
    }
    if (!check && !print) return usage_error("config", "say check, print or reference");
    if (!parse_config_arguments(check ? "config check" : "config print", argc - 1, argv + 1,
                                &arguments))
        return EXIT_USAGE;
    if ((st = load_config(&arguments, &config))) return report_error(st);
    if (print) config_print(&config, &out);
    else text_add(&out, "%s: no errors\n", arguments.file);
    return print_text(&out);
}
