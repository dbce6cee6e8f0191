/* SPDX-License-Identifier: Apache-2.0
 * replay.c - every input that fuzzing has kept, and each of them with single bits turned. Prints
 * a line of TAP for each target. A corpus is a file of lines, an input in hexadecimal each. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "fuzz/target.h"

enum { TURNS = 64 };

static int digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;

    return at != NULL ? (int)(at - digits) : -1;
}

/* False: the line is no input. */
static bool parse(const char *line, uint8_t *data, size_t *size)
{
    for (*size = 0; digit(line[0]) >= 0 && digit(line[1]) >= 0; line += 2) {
        if (*size == TARGET_INPUT_MAX) return false;
        data[(*size)++] = (uint8_t)(digit(line[0]) << 4 | digit(line[1]));
    }
    return *line == '\n' && *size > 0;
}

static void run_around(uint8_t *data, size_t size, uint64_t stream)
{
    target_run(data, size);
    for (uint64_t turn = 0; size > 0 && turn < TURNS; turn++) {
        uint64_t bit = random_u64(1, stream, turn) % (8 * size);

        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        target_run(data, size);
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

/* How many inputs there were; -1: the file is not what it should be. */
static int replay(const char *folder, const char *name)
{
    char path[4096], line[2 * TARGET_INPUT_MAX + 2];
    uint8_t data[TARGET_INPUT_MAX];
    size_t size;
    int count = 0;
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    if ((file = fopen(path, "re")) == NULL) {
        printf("# %s: %s\n", path, strerror(errno));
        return -1;
    }
    while (count >= 0 && fgets(line, sizeof line, file) != NULL) {
        if (!parse(line, data, &size)) {
            printf("# %s: line %d is no input\n", path, count + 1);
            count = -2;
        } else {
            run_around(data, size, (uint64_t)count);
        }
        count++;
    }
    fclose(file);
    return count;
}

int main(int argc, char **argv)
{
    bool all = true;

    if (argc != 2) {
        fprintf(stderr, "Usage: replay FOLDER\n");
        return 2;
    }
    for (int i = 0; target_name(i) != NULL; i++) {
        int count;

        target_choose(target_name(i));
        count = replay(argv[1], target_name(i));
        all &= count > 0;
        printf("%s - %s: what fuzzing kept, %d inputs, does no harm\n",
               count > 0 ? "ok" : "not ok", target_name(i), count);
        fflush(stdout); /* an input that kills says after which target */
    }
    return all ? 0 : 1;
}
