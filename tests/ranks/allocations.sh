#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# allocations.sh - steps that have settled allocate nothing.
. "$SRCDIR/tests/lib/tap.sh"
if [ "$SANITIZERS" = yes ]; then
    skip "allocations in a step" "the sanitizers have an allocator of their own"
else
    for n in 1 2 3; do relay ranks $n "$BUILDDIR/tests/ranks/test_allocations"; done
fi
done_testing
