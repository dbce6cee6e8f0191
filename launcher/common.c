/* SPDX-License-Identifier: Apache-2.0
 * common.c - see launcher.h. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "launcher.h"

static int from_environment(const char *const *names, int otherwise)
{
    for (int i = 0; names[i] != NULL; i++)
        if (getenv(names[i]) != NULL) return atoi(getenv(names[i]));
    return otherwise;
}

bool speaks(void)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID",
                                         NULL };

    return from_environment(names, 0) == 0;
}

int job_size(void)
{
    /* SLURM_NTASKS alone says nothing: a batch script has it too, outside any step */
    static const char *const names[] = { "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", NULL };

    return from_environment(names, 1);
}

/* mpirun ends all ranks when one fails: the others must not be faster than the words of the
 * first. */
static bool leave_it_to_the_first(void)
{
    if (speaks()) return false;
    clock_sleep_us(300000);
    return true;
}

int usage_error(const char *command, const char *format, ...)
{
    va_list args;

    if (leave_it_to_the_first()) return EXIT_USAGE;
    fprintf(stderr, "strait%s%s: ", command[0] != '\0' ? " " : "", command);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "; see `strait%s%s --help`\n", command[0] != '\0' ? " " : "", command);
    return EXIT_USAGE;
}

int report_error(strait_status status)
{
    if (!leave_it_to_the_first()) fprintf(stderr, "%s\n", strait_error_message());
    return error_exit_code(status);
}

/* The value of `--set X` or `--set=X` at argv[*i]; NULL: none follows. */
static const char *set_value(int argc, char **argv, int *i)
{
    if (argv[*i][5] == '=') return argv[*i] + 6;
    return *i + 1 < argc ? argv[++*i] : NULL;
}

bool parse_config_arguments(const char *command, int argc, char **argv,
                            struct config_arguments *out)
{
    int set_limit = (int)(sizeof out->sets / sizeof out->sets[0]);

    *out = (struct config_arguments){ 0 };
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];

        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            out->help = true;
            return true;
        }
        if (strcmp(word, "--set") == 0 || strncmp(word, "--set=", 6) == 0) {
            const char *assignment = set_value(argc, argv, &i);

            if (assignment == NULL || out->set_count == set_limit) {
                usage_error(command, "--set wants group.key=value, at most %d times", set_limit);
                return false;
            }
            out->sets[out->set_count++] = assignment;
        } else if (word[0] == '-' && word[1] != '\0') {
            usage_error(command, "unknown option %s", word);
            return false;
        } else if (out->file != NULL) {
            usage_error(command, "one FILE only, but %s and %s were given", out->file, word);
            return false;
        } else {
            out->file = word;
        }
    }
    if (out->file == NULL) usage_error(command, "no configuration FILE was given");
    return out->file != NULL;
}

strait_status load_config(const struct config_arguments *arguments, struct strait_config *config)
{
    struct text errors = { 0 };
    strait_status st;

    config_defaults(config);
    st = config_load(config, arguments->file);
    if (st != STRAIT_OK) text_add(&errors, "%s", strait_error_message());
    for (int i = 0; i < arguments->set_count; i++)
        if (config_assign(config, arguments->sets[i]) != STRAIT_OK)
            text_add(&errors, "%s%s", errors.length > 0 ? "\n" : "", strait_error_message());
    st = errors.length > 0 ? error_set(STRAIT_ERR_CONFIG, "%s", text_string(&errors))
                           : config_check(config);
    text_free(&errors);
    return st;
}
