/* SPDX-License-Identifier: Apache-2.0
 * due_bytes.c - see due_bytes.h. */
#include "ranks/due_bytes.h"

#include <string.h>

#include "lib/ranks.h"
#include "schedule/payload.h"

static uint64_t message_bytes(const struct exchanged *what, const struct codec *codec, size_t n)
{
    return n > 0 ? PAYLOAD_HEADER_BYTES + codec_shape(codec, &what->settings, n).wire_bytes : 0;
}

struct layout layout_of(const int *node)
{
    struct layout l = { .node = node[ranks_rank] };

    for (int r = 0; r < ranks_size; r++) {
        int same = 0;

        for (int other = 0; other < ranks_size; other++) same += node[other] == node[r];
        if (same > l.lanes) l.lanes = same;
        if (node[r] >= l.nodes) l.nodes = node[r] + 1;
        if (node[r] == l.node) l.locals = same;
        l.local += node[r] == l.node && r < ranks_rank;
    }
    return l;
}

/* Of the driver of a lane: to owners or from the owner, and the averages to its node; of
 * others: the gradient to the driver. */
static uint64_t hierarchical_bytes(const struct exchanged *what, size_t n)
{
    struct layout l = layout_of(what->nodes);
    int slices = l.nodes * l.lanes;
    uint64_t bytes = 0;

    for (int c = 0; c < slices; c++) {
        size_t begin = n * (size_t)c / (size_t)slices;
        size_t count = n * ((size_t)c + 1) / (size_t)slices - begin;
        uint64_t dense = message_bytes(what, &codec_fp32, count);
        uint64_t message = l.nodes > 1 ? message_bytes(what, what->codec, count) : dense;

        if (c / l.nodes % l.locals != l.local) bytes += dense;
        else bytes += message * (uint64_t)(l.locals - 1 +
                                           (c % l.nodes == l.node ? l.nodes - 1 : 1));
    }
    return bytes;
}

static uint64_t sra_or_ring_bytes(const struct exchanged *what, size_t n)
{
    size_t ranks = (size_t)ranks_size;
    uint64_t bytes = 0;

    for (size_t c = 0; c < ranks && ranks > 1; c++) {
        size_t count = n * (c + 1) / ranks - n * c / ranks;
        uint64_t message = message_bytes(what, what->codec, count);
        bool own = (int)c == ranks_rank, next = (int)c == (ranks_rank + 1) % ranks_size;

        if (strcmp(what->schedule, "sra") == 0) bytes += message * (own ? ranks - 1 : 1);
        /* every slice but the own on its way in, every one but the next rank's on its way out */
        else bytes += message * (uint64_t)(!own + !next);
    }
    return bytes;
}

uint64_t due_bytes(const struct exchanged *what, size_t n)
{
    bool gather = strcmp(what->schedule, "allgather") == 0;
    bool by_node = strcmp(what->schedule, "hierarchical") == 0;
    struct layout l = layout_of(what->nodes);
    size_t slices = gather ? 1 : (size_t)(by_node ? l.nodes * l.lanes : ranks_size);
    size_t tile = what->slice * slices;
    uint64_t bytes = 0;

    for (size_t begin = 0; begin < n; begin += tile) {
        size_t count = n - begin < tile ? n - begin : tile;

        if (gather) bytes += message_bytes(what, what->codec, count) * (uint64_t)(ranks_size - 1);
        else if (by_node) bytes += hierarchical_bytes(what, count);
        else bytes += sra_or_ring_bytes(what, count);
    }
    return bytes;
}
