/* SPDX-License-Identifier: Apache-2.0
 * idx.c - the IDX format of MNIST and its kin (Y. LeCun, C. Cortes, C. Burges).
 *
 * Big-endian: two zero bytes, a type (8: unsigned byte), the number of dimensions, the
 * size of each, then the bytes. Images have two or more dimensions, labels one. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "train/dataset.h"

struct idx {
    char *bytes;
    const uint8_t *values;
    size_t count, per_item; /* items, and values in each */
};

static uint32_t be32_get(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static strait_status bad(const char *path, const char *what)
{
    return error_set(STRAIT_ERR_DATA, "%s: %s", path, what);
}

static strait_status parse(struct idx *idx, size_t bytes, const char *path)
{
    const uint8_t *head = (const uint8_t *)idx->bytes;
    size_t dims, total;

    if (bytes >= 2 && head[0] == 0x1f && head[1] == 0x8b)
        return bad(path, "compressed; unpack it first (gunzip)");
    if (bytes < 8 || head[0] != 0 || head[1] != 0) return bad(path, "not an idx file");
    if (head[2] != 8) return bad(path, "its values are not unsigned bytes (type 8)");
    dims = head[3];
    if (dims < 1 || dims > 8 || bytes < 4 + 4 * dims) return bad(path, "not an idx file");
    idx->count = be32_get(head + 4);
    idx->per_item = 1;
    for (size_t i = 1; i < dims; i++)
        if (__builtin_mul_overflow(idx->per_item, be32_get(head + 4 + 4 * i), &idx->per_item))
            return bad(path, "its dimensions are too large");
    if (__builtin_mul_overflow(idx->count, idx->per_item, &total) ||
        total != bytes - 4 - 4 * dims)
        return error_set(STRAIT_ERR_DATA, "%s: %zu items of %zu bytes are announced, %zu bytes "
                         "follow; is the file cut short?", path, idx->count, idx->per_item,
                         bytes - 4 - 4 * dims);
    idx->values = head + 4 + 4 * dims;
    return STRAIT_OK;
}

static strait_status read_one(struct idx *idx, const char *path)
{
    size_t bytes;
    strait_status st = file_read(path, (size_t)8 << 30, &idx->bytes, &bytes);

    return st == STRAIT_OK ? parse(idx, bytes, path) : st;
}

strait_status dataset_read_idx(struct dataset *set, const char *images, const char *labels)
{
    struct idx x = { 0 }, y = { 0 };
    strait_status st;

    if ((st = read_one(&x, images))) goto done;
    if ((st = read_one(&y, labels))) goto done;
    if (y.per_item != 1) st = bad(labels, "more than one value a label");
    else if (x.per_item == 0) st = bad(images, "images without pixels");
    else if (x.count != y.count)
        st = error_set(STRAIT_ERR_DATA, "%s has %zu images, %s has %zu labels", images, x.count,
                       labels, y.count);
    else st = dataset_allocate(set, x.count, x.per_item);
    if (st != STRAIT_OK) goto done;
    for (size_t i = 0; i < x.count * x.per_item; i++) set->x[i] = x.values[i];
    for (size_t i = 0; i < y.count; i++) set->labels[i] = y.values[i];
done:
    free(x.bytes);
    free(y.bytes);
    return st;
}
