/* SPDX-License-Identifier: Apache-2.0
 * view.c - see view.h. */
#include "schedule/view.h"

#include <string.h>

/* The part that holds element `begin`. */
static int part_of(const struct view *view, size_t begin)
{
    int low = 0, high = view->count - 1;

    while (low < high) {
        int middle = (low + high + 1) / 2;

        if (view->parts[middle].begin <= begin) low = middle;
        else high = middle - 1;
    }
    return low;
}

static float *in_place(const struct view *view, size_t begin, size_t n)
{
    const struct view_part *part = &view->parts[part_of(view, begin)];

    return begin + n <= part[1].begin ? part->at + (begin - part->begin) : NULL;
}

const float *view_read(const struct view *view, size_t begin, size_t n, float *scratch)
{
    const float *direct = in_place(view, begin, n);
    int p = part_of(view, begin);

    if (direct != NULL) return direct;
    for (size_t done = 0; done < n; p++) {
        const struct view_part *part = &view->parts[p];
        size_t from = begin + done - part->begin, left = part[1].begin - part->begin - from;
        size_t count = left < n - done ? left : n - done;

        memcpy(scratch + done, part->at + from, count * sizeof *scratch);
        done += count;
    }
    return scratch;
}

float *view_target(const struct view *view, size_t begin, size_t n, float *scratch)
{
    float *direct = in_place(view, begin, n);

    return direct != NULL ? direct : scratch;
}

void view_written(const struct view *view, size_t begin, size_t n, const float *from)
{
    int p = part_of(view, begin);

    if (in_place(view, begin, n) != NULL) return;
    for (size_t done = 0; done < n; p++) {
        const struct view_part *part = &view->parts[p];
        size_t to = begin + done - part->begin, left = part[1].begin - part->begin - to;
        size_t count = left < n - done ? left : n - done;

        memcpy(part->at + to, from + done, count * sizeof *from);
        done += count;
    }
}
