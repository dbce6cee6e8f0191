/* SPDX-License-Identifier: Apache-2.0
 * allocations.h - counts what this program allocates, by who asked: this program's own code,
 * with the library that is linked into it, or a shared library such as UCX. */
#ifndef STRAIT_TESTS_ALLOCATIONS_H
#define STRAIT_TESTS_ALLOCATIONS_H

/* From now on, in all threads, from 0 again. */
void allocations_begin(void);
void allocations_end(void);

int allocations_own(void);
int allocations_of_libraries(void);

/* The first that this program asked for: the objects and addresses on its stack, for a
 * message; "" when there was none. */
const char *allocations_first(void);

#endif
