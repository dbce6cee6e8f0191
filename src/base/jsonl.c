/* SPDX-License-Identifier: Apache-2.0
 * jsonl.c - see jsonl.h. Each record goes out in one write, so that a reader never
 * sees half of one and a full disk is noticed at the record that does not fit. */
#include "base/jsonl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"

struct jsonl {
    int fd;
    char *path;
    off_t length; /* of whole records */
};

strait_status jsonl_open(struct jsonl **out, const char *path)
{
    struct jsonl *file = calloc(1, sizeof *file);
    strait_status st = STRAIT_ERR_MEMORY;

    if (file == NULL) goto done;
    file->fd = -1;
    if ((file->path = strdup(path)) == NULL) goto done;
    file->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file->fd < 0) {
        st = error_set(STRAIT_ERR_IO, "%s: cannot create: %s", path, strerror(errno));
        goto done;
    }
    *out = file;
    file = NULL;
    st = STRAIT_OK;
done:
    jsonl_close(file);
    return st;
}

strait_status jsonl_write(struct jsonl *file, cJSON *record)
{
    char *json = cJSON_PrintUnformatted(record);
    struct text line = { 0 };
    strait_status st;

    cJSON_Delete(record);
    if (json != NULL) text_add(&line, "%s\n", json);
    cJSON_free(json);
    st = line.length == 0 ? error_memory("a JSON record")
                          : file_write_all(file->fd, line.bytes, line.length, file->path);
    if (st == STRAIT_OK) file->length += (off_t)line.length;
    /* no half record stays; where even this fails, the error above is the one to tell */
    else if (line.length > 0 && ftruncate(file->fd, file->length) != 0) { }
    text_free(&line);
    return st;
}

strait_status jsonl_close(struct jsonl *file)
{
    strait_status st = STRAIT_OK;

    if (file == NULL) return STRAIT_OK;
    if (file->fd >= 0 && close(file->fd) != 0)
        st = error_set(STRAIT_ERR_IO, "%s: cannot close: %s", file->path, strerror(errno));
    free(file->path);
    free(file);
    return st;
}
