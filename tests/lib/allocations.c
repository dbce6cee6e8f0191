/* SPDX-License-Identifier: Apache-2.0
 * allocations.c - see allocations.h.
 *
 * The functions below take the place of libc's in the whole process and pass the calls on.
 * Who asked is the first frame of the stack outside this file and libc: so strdup() on
 * behalf of the program counts as the program's, and on behalf of UCX as UCX's. */
#include "lib/allocations.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* seen by the shared libraries; with a frame of its own */
#define REPLACED __attribute__((noinline, visibility("default")))

enum { DEPTH = 24 };

/* glibc's own names for what is replaced */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

extern const char __executable_start, etext; /* the linker's */

static atomic_bool counting;
static atomic_int own, of_libraries;
static _Thread_local bool inside; /* unwinding and dladdr() may allocate themselves */
static void *first[DEPTH];
static int first_depth;
static void *libc_base;

static void *base_of(void *address)
{
    Dl_info info;

    return dladdr(address, &info) != 0 ? info.dli_fbase : NULL;
}

static bool is_own(const void *address)
{
    return (const char *)address >= &__executable_start && (const char *)address < &etext;
}

/* Not inlined: frame 0 is this function's, frame 1 the replaced one's. */
__attribute__((noinline)) static void note(void)
{
    void *frames[DEPTH];
    int depth, at = 2;

    if (!atomic_load(&counting) || inside) return;
    inside = true;
    depth = backtrace(frames, DEPTH);
    while (at < depth && base_of(frames[at]) == libc_base) at++;
    if (at == depth || !is_own(frames[at])) atomic_fetch_add(&of_libraries, 1);
    else if (atomic_fetch_add(&own, 1) == 0) {
        memcpy(first, frames, sizeof first);
        first_depth = depth;
    }
    inside = false;
}

REPLACED void *malloc(size_t bytes)
{
    note();
    return __libc_malloc(bytes);
}

REPLACED void *calloc(size_t count, size_t bytes)
{
    note();
    return __libc_calloc(count, bytes);
}

REPLACED void *realloc(void *old, size_t bytes)
{
    note();
    return __libc_realloc(old, bytes);
}

REPLACED void *aligned_alloc(size_t alignment, size_t bytes)
{
    note();
    return __libc_memalign(alignment, bytes);
}

REPLACED void *memalign(size_t alignment, size_t bytes)
{
    note();
    return __libc_memalign(alignment, bytes);
}

REPLACED int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    note();
    *out = __libc_memalign(alignment, bytes);
    return *out != NULL ? 0 : ENOMEM;
}

void allocations_begin(void)
{
    void *frames[DEPTH];

    backtrace(frames, DEPTH); /* the first call loads the unwinder */
    libc_base = base_of(dlsym(RTLD_NEXT, "malloc"));
    own = of_libraries = first_depth = 0;
    atomic_store(&counting, true);
}

void allocations_end(void)
{
    atomic_store(&counting, false);
}

int allocations_own(void)
{
    return own;
}

int allocations_of_libraries(void)
{
    return of_libraries;
}

const char *allocations_first(void)
{
    static char text[1024];
    size_t length = 0;

    text[0] = '\0';
    for (int i = 2; i < first_depth && length < sizeof text - 1; i++) {
        Dl_info info;
        const char *object = dladdr(first[i], &info) != 0 ? strrchr(info.dli_fname, '/') : NULL;

        length += (size_t)snprintf(text + length, sizeof text - length, " %s+%#zx",
                                   object != NULL ? object + 1 : "?",
                                   (size_t)((char *)first[i] - (char *)base_of(first[i])));
    }
    return text;
}
