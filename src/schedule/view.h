/* SPDX-License-Identifier: Apache-2.0
 * view.h - a bucket's elements where the caller keeps them: one array per tensor.
 *
 * Gradients are encoded from and averages decoded to the caller's own memory. Only a run
 * that crosses from one tensor into the next goes through `scratch`, which is small and
 * stays in the cache. */
#ifndef STRAIT_SCHEDULE_VIEW_H
#define STRAIT_SCHEDULE_VIEW_H

#include <stddef.h>

struct view_part {
    size_t begin; /* in the bucket */
    float *at;
};

struct view {
    struct view_part *parts; /* ascending, without gaps; parts[count].begin is the end */
    int count;
};

/* Elements [begin, begin + n) in one piece: in place, or gathered into scratch. */
const float *view_read(const struct view *view, size_t begin, size_t n, float *scratch);
/* Where to write them: in place, or scratch. */
float *view_target(const struct view *view, size_t begin, size_t n, float *scratch);
/* They were written to `from`, which view_target() gave. */
void view_written(const struct view *view, size_t begin, size_t n, const float *from);

#endif
