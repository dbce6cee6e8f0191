#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# factors.sh - low-rank factors over every schedule and transport with 1, 2, 3, 4 and 7 ranks.
. "$SRCDIR/tests/lib/tap.sh"
for n in 1 2 3 4 7; do relay ranks $n "$BUILDDIR/tests/ranks/test_factors"; done
done_testing
