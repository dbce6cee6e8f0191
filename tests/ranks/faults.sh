#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# faults.sh - disagreement, absence, damage and misuse.
. "$SRCDIR/tests/lib/tap.sh"
for n in 1 2 3 4; do relay ranks $n "$BUILDDIR/tests/ranks/test_faults"; done
done_testing
