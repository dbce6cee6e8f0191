#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# interface.sh - the library as others meet it: header, symbols, pkg-config, a program.
. "$SRCDIR/tests/lib/tap.sh"

echo '#include <strait.h>' >alone.c
check "the header compiles alone as C" 0 "" $CC $PUBLIC_CPPFLAGS -std=c99 -Wall -Wextra -Werror -pedantic -fsyntax-only alone.c
cp alone.c alone.cc
if command -v c++ >/dev/null; then
    check "the header compiles alone as C++" 0 "" c++ $PUBLIC_CPPFLAGS -DOMPI_SKIP_MPICXX -std=c++11 -Wall -Wextra -Werror -fsyntax-only alone.cc
else
    skip "the header compiles alone as C++" "no C++ compiler here"
fi

lib=$(ls "$BUILDDIR"/.libs/libstrait.so)
nm -D --defined-only "$lib" | awk '{ print $3 }' | grep -vE '^(strait_|__bss_start$|_edata$|_end$)' >out
[ ! -s out ]
ok "the library exports strait_* and nothing else"
for name in $(grep -oE '\bstrait_[a-z_]+\(' "$SRCDIR/include/strait.h" | tr -d '(' | sort -u); do
    nm -D --defined-only "$lib" | grep -q " $name\$" || echo "$name is declared, not exported"
done >out
[ ! -s out ]
ok "every declared function is exported"
check "the library has a soname" 0 "libstrait.so.0" readelf -d "$lib"

# the example of the header, as a user's program, against the shared library
cat >user.c <<'X'
#include <stdio.h>
#include <strait.h>
int main(int argc, char **argv)
{
    strait_config *config;
    strait_context *ctx;
    strait_tensor weight = { .name = "fc.weight", .ndim = 2, .shape = { 128, 64 } };
    static float grad[128 * 64];
    int id, level, rank, bad = 0;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strait_config_create(&config) || strait_config_set(config, "comm.codec=int8") ||
        strait_open(&ctx, config, MPI_COMM_WORLD) || strait_register(ctx, &weight, &id) ||
        strait_commit(ctx)) {
        fprintf(stderr, "%s\n", strait_error_message());
        return 1;
    }
    strait_config_destroy(config);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < 128 * 64; i++) grad[i] = (float)(rank + 1);
        if (strait_grad_ready(ctx, id, grad) || strait_wait(ctx)) return 1;
        for (int i = 0; i < 128 * 64; i++) bad += grad[i] < 1.99f || grad[i] > 2.01f;
    }
    strait_close(ctx);
    MPI_Finalize();
    if (rank == 0) printf("average right: %s\n", bad ? "no" : "yes");
    return bad != 0;
}
X
if [ "$SANITIZERS" = yes ]; then
    skip "a user's program links and runs" "the library is built with sanitizers"
else
    libs=$(pkg-config --libs ompi-c 2>/dev/null || mpicc --showme:link)
    $CC $PUBLIC_CPPFLAGS -Wall -Werror user.c -o user -L"$BUILDDIR/.libs" -lstrait $libs \
        -Wl,-rpath,"$BUILDDIR/.libs" >out 2>&1
    check "a user's program links and runs" 0 "average right: yes" ranks 3 ./user
fi
done_testing
