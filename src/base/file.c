/* SPDX-License-Identifier: Apache-2.0
 * file.c - see file.h. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

strait_status file_read(const char *path, size_t limit, char **out, size_t *bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    char *content = NULL;
    size_t have = 0;
    ssize_t got = 0;
    strait_status st = STRAIT_OK;

    if (fd < 0 || fstat(fd, &info) != 0) {
        st = error_set(STRAIT_ERR_IO, "%s: cannot open: %s", path, strerror(errno));
        goto done;
    }
    if (!S_ISREG(info.st_mode) || (size_t)info.st_size > limit) {
        st = error_set(STRAIT_ERR_DATA, "%s: not a plain file of at most %zu bytes", path, limit);
        goto done;
    }
    if ((content = malloc((size_t)info.st_size + 1)) == NULL) {
        st = error_memory(path);
        goto done;
    }
    while (have < (size_t)info.st_size &&
           (got = read(fd, content + have, (size_t)info.st_size - have)) > 0)
        have += (size_t)got;
    if (got < 0) {
        st = error_set(STRAIT_ERR_IO, "%s: cannot read: %s", path, strerror(errno));
        goto done;
    }
    content[have] = '\0';
    *out = content;
    *bytes = have;
    content = NULL;
done:
    free(content);
    if (fd >= 0) close(fd);
    return st;
}

strait_status file_write_all(int fd, const void *bytes, size_t count, const char *path)
{
    const char *from = bytes;

    while (count > 0) {
        ssize_t done = write(fd, from, count);

        if (done < 0 && errno == EINTR) continue;
        if (done < 0)
            return error_set(STRAIT_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
        from += done;
        count -= (size_t)done;
    }
    return STRAIT_OK;
}

strait_status file_write(const char *path, const void *bytes, size_t count)
{
    size_t length = strlen(path) + 5;
    char *aside = malloc(length);
    int fd = -1;
    strait_status st = STRAIT_OK;

    if (aside == NULL) return error_memory(path);
    snprintf(aside, length, "%s.new", path);
    fd = open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        st = error_set(STRAIT_ERR_IO, "%s: cannot create: %s", aside, strerror(errno));
        goto done;
    }
    if ((st = file_write_all(fd, bytes, count, path))) goto done;
    if (fsync(fd) != 0 || rename(aside, path) != 0)
        st = error_set(STRAIT_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
done:
    if (fd >= 0) close(fd);
    if (st != STRAIT_OK && fd >= 0) unlink(aside);
    free(aside);
    return st;
}
