/* SPDX-License-Identifier: Apache-2.0
 * rundir.c - see rundir.h. */
#include "train/rundir.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"

static strait_status cannot_create(const char *path)
{
    return error_set(STRAIT_ERR_IO, "%s: cannot create the run folder: %s", path, strerror(errno));
}

/* Make `path` and the folders above it. */
static strait_status make_folders(const char *path)
{
    char part[2 * CONFIG_TEXT_BYTES];

    snprintf(part, sizeof part, "%s", path);
    for (char *slash = strchr(part + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash != NULL) *slash = '\0';
        if (mkdir(part, 0755) != 0 && errno != EEXIST) return cannot_create(part);
        if (slash == NULL) return STRAIT_OK;
        *slash = '/';
    }
}

/* A folder of its own, also when two runs start within one second. */
static strait_status make_own_folder(struct rundir *dir, const struct strait_config *config)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm parts;

    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &parts));
    for (int again = 1; again < 1000; again++) {
        int used = snprintf(dir->path, sizeof dir->path, "%s/%s-%s", config->run.dir, stamp,
                            config->run.name);

        if (again > 1) snprintf(dir->path + used, sizeof dir->path - (size_t)used, "-%d", again);
        if (mkdir(dir->path, 0755) == 0) return STRAIT_OK;
        if (errno != EEXIST) break;
    }
    return cannot_create(dir->path);
}

strait_status rundir_open(struct rundir *dir, const struct strait_config *config)
{
    char path[sizeof dir->path + 32];
    struct text effective = { 0 };
    strait_status st;

    if ((st = make_folders(config->run.dir))) goto done;
    if ((st = make_own_folder(dir, config))) goto done;
    config_print(config, &effective);
    snprintf(path, sizeof path, "%s/config.conf", dir->path);
    if ((st = file_write(path, text_string(&effective), effective.length))) goto done;
    snprintf(path, sizeof path, "%s/metrics.jsonl", dir->path);
    st = jsonl_open(&dir->metrics, path);
done:
    text_free(&effective);
    return st;
}

strait_status rundir_close(struct rundir *dir)
{
    strait_status st = jsonl_close(dir->metrics);

    dir->metrics = NULL;
    return st;
}
