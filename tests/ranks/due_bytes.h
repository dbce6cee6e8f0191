/* SPDX-License-Identifier: Apache-2.0
 * due_bytes.h - what a schedule must send: by its description, not by its code. */
#ifndef STRAIT_TESTS_DUE_BYTES_H
#define STRAIT_TESTS_DUE_BYTES_H

#include "codec/codec.h"

struct layout {
    int nodes, lanes, node, local, locals; /* the last three: of this rank */
};

/* Of the ranks on these nodes, by rank. */
struct layout layout_of(const int *nodes);

struct exchanged {
    const struct codec *codec;
    struct codec_settings settings;
    const char *schedule;
    size_t slice;     /* elements */
    const int *nodes; /* by rank, for hierarchical */
};

/* Bytes that this rank sends per step for n elements, headers included. Not of dense. */
uint64_t due_bytes(const struct exchanged *what, size_t n);

#endif
